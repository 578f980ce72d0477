import { type ClientDocument, ofRepository } from "./document.ts";

const LISTED = `number title body state databaseId author { login } createdAt updatedAt labels(first: 100) { nodes { name id description } } comments { totalCount }`;
const LIST = (
  declared: string,
  filter: string,
  fields: string,
) => `query($owner: String!, $repo: String!, $states: [IssueState!]!, $orderBy: IssueOrderField!, $direction: OrderDirection!, $first: Int!, $after: String${declared}) {
  repository(owner: $owner, name: $repo) {
    issues(first: $first, after: $after, states: $states, orderBy: {field: $orderBy, direction: $direction}${filter}) {
      nodes { ${fields} } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount
    }
    isPrivate
  }
}`;
const listed = ({ owner, name }: { owner: string; name: string }) => ({
  owner,
  repo: name,
  states: ["OPEN"],
  orderBy: "CREATED_AT",
  direction: "DESC",
  first: 30,
});
const numbered = (at: Parameters<typeof ofRepository>[0]) => ({
  owner: at.owner,
  repo: at.name,
  issueNumber: at.issue,
});
const OF_ISSUE = (fields: string) =>
  `query($owner: String!, $repo: String!, $issueNumber: Int!) { repository(owner: $owner, name: $repo) { issue(number: $issueNumber) { ${fields} } } }`;

export const mcp: readonly ClientDocument[] = [
  { name: "MCP: list_issues, the second try", query: LIST("", "", LISTED), variables: listed },
  {
    name: "MCP: list_issues, the first try",
    query: LIST(
      ", $fields: [IssueFieldValueFilter!]",
      ", filterBy: {issueFieldValues: $fields}",
      `${LISTED} issueFieldValues(first: 25) { nodes { __typename } }`,
    ),
    variables: listed,
  },
  {
    name: "MCP: issue_read get_labels",
    query: OF_ISSUE("labels(first: 100) { nodes { id name color description } totalCount }"),
    variables: numbered,
  },
  {
    name: "MCP: issue_read get_parent",
    query: OF_ISSUE("parent { number title state url repository { name owner { login } } }"),
    variables: numbered,
  },
  {
    name: "MCP: issue_read enrichment",
    query: OF_ISSUE(`id parent { number } subIssuesSummary { total completed percentCompleted }
      closedByPullRequestsReferences(first: 10, includeClosedPrs: true) { totalCount nodes { number state url } }`),
    variables: numbered,
  },
  {
    name: "MCP: pull_request_read get_review_comments",
    query: `query($owner: String!, $repo: String!, $prNum: Int!, $first: Int!, $commentsPerThread: Int!, $after: String) {
      repository(owner: $owner, name: $repo) { pullRequest(number: $prNum) { reviewThreads(first: $first, after: $after) {
        nodes { id isResolved isOutdated isCollapsed comments(first: $commentsPerThread) { nodes { id body path line author { login } createdAt updatedAt url } totalCount } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount
      } } }
    }`,
    variables: ({ owner, name, pull }) => ({ owner, repo: name, prNum: pull, first: 30, commentsPerThread: 100 }),
  },
  {
    name: "MCP: get_label",
    query: `query($owner: String!, $repo: String!, $name: String!) { repository(owner: $owner, name: $repo) { label(name: $name) { id name color description } } }`,
    variables: ({ owner, name, label }) => ({ owner, repo: name, name: label }),
  },
  {
    name: "MCP: lockdown repo access",
    query: `query($owner: String!, $name: String!, $username: String!) {
      viewer { login } repository(owner: $owner, name: $name) { isPrivate collaborators(query: $username, first: 1) { edges { permission node { login } } } }
    }`,
    variables: (at) => ({ ...ofRepository(at), username: at.login }),
  },
  {
    name: "MCP: pull_request_review_write create",
    query: `mutation($input: AddPullRequestReviewInput!) { addPullRequestReview(input: $input) { pullRequestReview { id } } }`,
    variables: ({ pullId }) => ({ input: { pullRequestId: pullId, body: "seen" } }),
  },
  {
    name: "MCP: issue_write close",
    query: `mutation($input: CloseIssueInput!) { closeIssue(input: $input) { issue { id number url state } } }`,
    variables: ({ issueId }) => ({ input: { issueId, stateReason: "COMPLETED" } }),
  },
];
