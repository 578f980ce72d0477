import { type ClientDocument, ofRepository } from "./document.ts";

const AUTHOR = "author { login ... on User { id name } }";
const LABELS = "labels(first: 100) { nodes { id name description color } totalCount }";
const ASSIGNEES = "assignees(first: 100) { nodes { id login name } totalCount }";
const MILESTONE = "milestone { number title description dueOn }";
const PROJECT_CARDS = "projectCards(first: 100) { nodes { project { name } column { name } } totalCount }";
const COMMENTS = `comments(first: 100) {
  nodes { id author { login } authorAssociation body createdAt includesCreatedEdit isMinimized minimizedReason reactionGroups { content users { totalCount } } url viewerDidAuthor }
  pageInfo { hasNextPage endCursor } totalCount
}`;
const REVIEWS =
  "reviews(first: 100) { nodes { id author { login } authorAssociation submittedAt body state commit { oid } } totalCount }";
const REVIEW_REQUESTS =
  "reviewRequests(first: 100) { nodes { requestedReviewer { __typename ... on User { login } ... on Team { organization { login } name slug } } } }";
const HEAD = "headRefName headRepositoryOwner { id login ... on User { name } } isCrossRepository";
/** `isRequired` is asked of pull requests that have such rules. */
const rollup = (
  required: string,
) => `statusCheckRollup: commits(last: 1) { nodes { commit { statusCheckRollup { contexts(first: 100) {
  nodes {
    __typename
    ... on StatusContext { context state targetUrl createdAt description ${required} }
    ... on CheckRun { name checkSuite { workflowRun { event workflow { name } } } status conclusion startedAt completedAt detailsUrl ${required} }
  }
  pageInfo { hasNextPage endCursor }
} } } } }`;

const LISTED = `number title state url ${HEAD} isDraft createdAt`;
const VIEWED = `id url title body state number createdAt updatedAt closed closedAt ${AUTHOR} ${ASSIGNEES} ${LABELS}`;

export const gh: readonly ClientDocument[] = [
  {
    name: "gh: pr list",
    query: `fragment pr on PullRequest { ${LISTED} }
      query PullRequestList($owner: String!, $name: String!, $limit: Int!, $endCursor: String, $baseBranch: String, $headBranch: String, $state: [PullRequestState!] = OPEN) {
        repository(owner: $owner, name: $name) {
          pullRequests(states: $state, baseRefName: $baseBranch, headRefName: $headBranch, first: $limit, after: $endCursor, orderBy: {field: CREATED_AT, direction: DESC}) {
            totalCount nodes { ...pr } pageInfo { hasNextPage endCursor }
          }
        }
      }`,
    variables: (at) => ({ ...ofRepository(at), limit: 30, state: ["OPEN"] }),
  },
  {
    name: "gh: pr list --search",
    query: `fragment pr on PullRequest { ${LISTED} }
      query PullRequestSearch($q: String!, $limit: Int!, $endCursor: String) {
        search(query: $q, type: ISSUE, first: $limit, after: $endCursor) {
          issueCount nodes { ...pr } pageInfo { hasNextPage endCursor }
        }
      }`,
    variables: ({ owner, name }) => ({ q: `repo:${owner}/${name} state:open type:pr sort:created-desc`, limit: 30 }),
  },
  {
    name: "gh: pr view",
    query: `query PullRequestByNumber($owner: String!, $repo: String!, $number: Int!) {
      repository(owner: $owner, name: $repo) { pullRequest(number: $number) {
        ${VIEWED} ${MILESTONE} ${PROJECT_CARDS} ${COMMENTS} ${REVIEWS} ${REVIEW_REQUESTS} ${HEAD} ${rollup("")}
        additions deletions changedFiles isDraft maintainerCanModify mergeable mergeStateStatus baseRefName reviewDecision
        headRepository { id name } latestReviews(first: 100) { nodes { author { login } state body } }
        mergeCommit { oid } potentialMergeCommit { oid } mergedAt mergedBy { login ... on User { id name } }
        autoMergeRequest { authorEmail commitBody commitHeadline mergeMethod enabledAt enabledBy { login ... on User { id name } } }
        reactionGroups { content users { totalCount } } commits { totalCount }
      } }
    }`,
    variables: ({ owner, name, pull }) => ({ owner, repo: name, number: pull }),
  },
  {
    name: "gh: pr status",
    query: `fragment pr on PullRequest {
        ${LISTED} mergeStateStatus reviewDecision ${rollup("")} autoMergeRequest { mergeMethod enabledAt }
        baseRef { branchProtectionRule { requiresStrictStatusChecks requiresApprovingReviews } }
      }
      query PullRequestStatus($owner: String!, $repo: String!, $mine: String!, $asked: String!, $per_page: Int = 10) {
        repository(owner: $owner, name: $repo) {
          defaultBranchRef { name }
          pullRequests(first: $per_page, orderBy: {field: CREATED_AT, direction: DESC}) { totalCount edges { node { ...pr } } }
        }
        viewerCreated: search(query: $mine, type: ISSUE, first: $per_page) { totalCount: issueCount edges { node { ...pr } } }
        reviewRequested: search(query: $asked, type: ISSUE, first: $per_page) { totalCount: issueCount edges { node { ...pr } } }
      }`,
    variables: ({ owner, name }) => ({
      owner,
      repo: name,
      mine: `repo:${owner}/${name} state:open is:pr author:@me`,
      asked: `repo:${owner}/${name} state:open is:pr review-requested:@me`,
    }),
  },
  {
    name: "gh: pr checks",
    query: `query PullRequestChecks($id: ID!, $endCursor: String) {
      node(id: $id) { ... on PullRequest { ${rollup("isRequired(pullRequestId: $id)").replace("first: 100", "first: 100, after: $endCursor")} } }
    }`,
    variables: ({ pullId }) => ({ id: pullId }),
  },
  {
    name: "gh: pr checkout",
    query: `query PullRequestByNumber($owner: String!, $repo: String!, $pr_number: Int!) {
      repository(owner: $owner, name: $repo) { pullRequest(number: $pr_number) {
        id number headRefName headRepository { id name } headRepositoryOwner { id login ... on User { name } } isCrossRepository maintainerCanModify
      } }
    }`,
    variables: ({ owner, name, pull }) => ({ owner, repo: name, pr_number: pull }),
  },
  {
    name: "gh: pr merge",
    query: `query PullRequestByNumber($owner: String!, $repo: String!, $pr_number: Int!) {
      repository(owner: $owner, name: $repo) { pullRequest(number: $pr_number) {
        id number state title commits(first: 0) { totalCount } mergeStateStatus headRepositoryOwner { id login } headRefName baseRefName headRefOid isCrossRepository
      } }
    }`,
    variables: ({ owner, name, pull }) => ({ owner, repo: name, pr_number: pull }),
  },
  {
    name: "gh: issue list",
    query: `fragment issue on Issue { number title url state updatedAt ${LABELS} }
      query IssueList($owner: String!, $repo: String!, $limit: Int, $endCursor: String, $states: [IssueState!] = OPEN, $assignee: String, $author: String, $mention: String) {
        repository(owner: $owner, name: $repo) {
          hasIssuesEnabled
          issues(first: $limit, after: $endCursor, orderBy: {field: CREATED_AT, direction: DESC}, states: $states, filterBy: {assignee: $assignee, createdBy: $author, mentioned: $mention}) {
            totalCount nodes { ...issue } pageInfo { hasNextPage endCursor }
          }
        }
      }`,
    variables: ({ owner, name }) => ({ owner, repo: name, limit: 30, states: ["OPEN"] }),
  },
  {
    name: "gh: issue view",
    query: `query IssueByNumber($owner: String!, $repo: String!, $number: Int!) {
      repository(owner: $owner, name: $repo) {
        hasIssuesEnabled
        issue: issueOrPullRequest(number: $number) {
          __typename
          ... on Issue { ${VIEWED} ${MILESTONE} ${COMMENTS} reactionGroups { content users { totalCount } } stateReason }
          ... on PullRequest { ${VIEWED} ${MILESTONE} ${COMMENTS} reactionGroups { content users { totalCount } } }
        }
      }
    }`,
    variables: ({ owner, name, issue }) => ({ owner, repo: name, number: issue }),
  },
  {
    name: "gh: issue view --json projectItems",
    query: `query IssueProjectItems($owner: String!, $name: String!, $number: Int!, $endCursor: String) {
      repository(owner: $owner, name: $name) { issue(number: $number) { projectItems(first: 100, after: $endCursor) {
        nodes { id project { id title } status: fieldValueByName(name: "Status") { ... on ProjectV2ItemFieldSingleSelectValue { optionId name } } }
        pageInfo { hasNextPage endCursor }
      } } }
    }`,
    variables: (at) => ({ ...ofRepository(at), number: at.issue }),
  },
];
