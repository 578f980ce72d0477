import type { ClientDocument } from "./document.ts";

const PROTECTION =
  "branchProtectionRules(first: 1) { nodes { requiredApprovingReviewCount requiresApprovingReviews requiresCodeOwnerReviews requiresStatusChecks } }";
const REPOSITORY = `repository { name nameWithOwner isArchived ${PROTECTION} }`;
const THREADS = `reviewThreads(last: 20) { nodes {
  id isOutdated originalLine startLine line path comments(first: 10) { nodes { author { login } body updatedAt startLine line } }
} }`;

const LISTED = `number title body author { login } authorAssociation updatedAt createdAt url state mergeable reviewDecision additions deletions
  headRefName baseRefName headRepository { name } headRef { name } ${REPOSITORY} assignees(first: 3) { nodes { login } }
  comments { totalCount } reviewThreads(last: 20) { totalCount } reviews(last: 3) { totalCount }
  reviewRequests(last: 5) { totalCount } labels(first: 6) { nodes { color name } } isDraft mergeStateStatus isInMergeQueue`;

export const ghDash: readonly ClientDocument[] = [
  {
    name: "gh-dash: SearchPullRequests",
    query: `query SearchPullRequests($query: String!, $limit: Int!, $endCursor: String) {
      search(type: ISSUE, first: $limit, after: $endCursor, query: $query) {
        nodes { ... on PullRequest { ${LISTED} commits(last: 1) { nodes { commit { statusCheckRollup { state } } } } } }
        issueCount pageInfo { hasNextPage startCursor endCursor }
      }
    }`,
    variables: ({ owner, name }) => ({ query: `is:pr repo:${owner}/${name} sort:updated`, limit: 20 }),
  },
  {
    name: "gh-dash: SearchIssues",
    query: `query SearchIssues($query: String!, $limit: Int!, $endCursor: String) {
      search(type: ISSUE, first: $limit, after: $endCursor, query: $query) {
        nodes { ... on Issue {
          number title body state author { login } authorAssociation updatedAt createdAt url ${REPOSITORY}
          assignees(first: 3) { nodes { login } } comments(first: 15) { nodes { author { login } body updatedAt } totalCount }
          reactions(first: 1) { totalCount } labels(first: 20) { nodes { color name } }
        } }
        issueCount pageInfo { hasNextPage startCursor endCursor }
      }
    }`,
    variables: ({ owner, name }) => ({ query: `is:issue repo:${owner}/${name} sort:updated`, limit: 20 }),
  },
  {
    name: "gh-dash: FetchPullRequest",
    query: `query FetchPullRequest($url: URI!) { resource(url: $url) { ... on PullRequest {
      ${LISTED} ${THREADS.replace("reviewThreads", "threads: reviewThreads")}
      allComments: comments(last: 50, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { author { login } body updatedAt } }
      allReviews: reviews(last: 50) { nodes { author { login } body state updatedAt } }
      asked: reviewRequests(last: 100) { nodes { asCodeOwner requestedReviewer { ... on User { login } ... on Team { slug name } ... on Bot { login } } } }
      suggestedReviewers { isAuthor isCommenter reviewer { login } }
      files(first: 100) { nodes { additions deletions path changeType } }
      lastCommit: commits(last: 1) { nodes { commit {
        deployments(last: 10) { nodes { task description } } statusCheckRollup { state contexts(last: 100) {
          totalCount checkRunCount checkRunCountsByState { count state } statusContextCount statusContextCountsByState { count state }
          nodes { __typename ... on CheckRun { name status conclusion checkSuite { creator { login } workflowRun { workflow { name } } } } ... on StatusContext { context state creator { login } } }
        } }
      } } }
      allCommits: commits(last: 100) { nodes { commit {
        abbreviatedOid committedDate messageHeadline author { name user { login } } statusCheckRollup { state } checkSuites(first: 1) { totalCount }
      } } }
    } } }`,
    variables: ({ owner, name, pull }) => ({ url: `https://github.com/${owner}/${name}/pull/${pull}` }),
  },
];
