import type { ClientDocument, ofRepository } from "./document.ts";

const COMMIT = (files: string) =>
  `author { avatarUrl email name user { name url } } authoredDate message oid url ${files}`;
const HISTORY = (
  files: string,
) => `query($owner: String!, $repo: String!, $per_page: Int!, $cursor: String, $commitSince: GitTimestamp) {
  repository(owner: $owner, name: $repo) { defaultBranchRef { target { ... on Commit {
    history(first: $per_page, after: $cursor, since: $commitSince) { edges { cursor node { ${COMMIT(files)} } } }
  } } } }
}`;
const BRANCHES = (
  commits: string,
) => `query($owner: String!, $repo: String!, $per_page: Int!, $cursor: String, $commitSince: GitTimestamp) {
  repository(owner: $owner, name: $repo) { refs(first: $per_page, refPrefix: "refs/heads/", after: $cursor) { edges { cursor node {
    name associatedPullRequests(first: 1) { nodes { title } } target { ... on Commit { ${COMMIT("")} ${commits} } }
  } } } }
}`;
const since = (at: Parameters<typeof ofRepository>[0]) => ({
  owner: at.owner,
  repo: at.name,
  per_page: 20,
  commitSince: "2020-01-01T00:00:00Z",
});
const REPOSITORY =
  "id: databaseId node_id: id full_name: nameWithOwner owner { login } html_url: url name updated_at: updatedAt";

export const jira: readonly ClientDocument[] = [
  {
    name: "GitHub for Jira: ViewerRepositoryCountQuery",
    query: "query ViewerRepositoryCount { viewer { repositories { totalCount } } }",
  },
  {
    name: "GitHub for Jira: GetRepositoriesQuery",
    query: `query($per_page: Int!, $order_by: RepositoryOrderField!, $cursor: String) { viewer {
      repositories(first: $per_page, after: $cursor, orderBy: {field: $order_by, direction: DESC}) {
        totalCount pageInfo { endCursor hasNextPage } edges { node { ${REPOSITORY} } }
      }
    } }`,
    variables: () => ({ per_page: 20, order_by: "UPDATED_AT" }),
  },
  {
    name: "GitHub for Jira: getPullRequests",
    query: `query($owner: String!, $repo: String!, $per_page: Int!, $cursor: String) { repository(owner: $owner, name: $repo) {
      pullRequests(first: $per_page, orderBy: {field: CREATED_AT, direction: DESC}, after: $cursor) { edges { cursor node {
        id number state mergedAt updatedAt createdAt title body url baseRefName headRefName isDraft
        author { avatarUrl login url ... on User { email name } } repository { url }
        headRef { name repository { url } target { ... on Commit { author { avatarUrl email name } } } }
        comments { totalCount } reviews(first: 50) { nodes { state author { avatarUrl login url ... on User { email } } submittedAt } }
      } } }
    } }`,
    variables: ({ owner, name }) => ({ owner, repo: name, per_page: 20 }),
  },
  { name: "GitHub for Jira: getCommitsQueryWithChangedFiles", query: HISTORY("changedFiles"), variables: since },
  { name: "GitHub for Jira: getCommitsQueryWithoutChangedFiles", query: HISTORY(""), variables: since },
  {
    name: "GitHub for Jira: getBranchesQueryWithChangedFiles",
    query: BRANCHES(`changedFiles history(first: 50, since: $commitSince) { nodes { ${COMMIT("changedFiles")} } }`),
    variables: since,
  },
  {
    name: "GitHub for Jira: getBranchesQueryWithoutChangedFiles",
    query: BRANCHES(`history(first: 50, since: $commitSince) { nodes { ${COMMIT("")} } }`),
    variables: since,
  },
  {
    name: "GitHub for Jira: getBranchesQueryWithoutCommits",
    query: BRANCHES("").replace(", $commitSince: GitTimestamp", ""),
    variables: ({ owner, name }) => ({ owner, repo: name, per_page: 20 }),
  },
  {
    name: "GitHub for Jira: getDeploymentsQueryWithStatuses",
    query: `query($owner: String!, $repo: String!, $per_page: Int!, $cursor: String) { repository(owner: $owner, name: $repo) {
      deployments(first: $per_page, after: $cursor, orderBy: {field: CREATED_AT, direction: DESC}) { edges { cursor node {
        createdAt updatedAt repository { name owner { login } } databaseId commitOid task ref { name id } description environment
        latestStatus { environmentUrl logUrl state id updatedAt } statuses(first: 10) { nodes { createdAt state logUrl } }
      } } }
    } }`,
    variables: ({ owner, name }) => ({ owner, repo: name, per_page: 20 }),
  },
  {
    name: "GitHub for Jira: SearchRepositoriesQuery",
    query: `query($query_string: String!, $per_page: Int!, $cursor: String) {
      search(type: REPOSITORY, query: $query_string, first: $per_page, after: $cursor) { repositoryCount nodes { ... on Repository { ${REPOSITORY} } } }
    }`,
    variables: ({ owner, name }) => ({ query_string: `${name} in:name user:${owner}`, per_page: 10 }),
  },
  {
    name: "GitHub for Jira: UserOrganizationsQuery",
    query: "query($first: Int!) { viewer { login organizations(first: $first) { nodes { login } } } }",
    variables: () => ({ first: 10 }),
  },
];
