import { type ClientDocument, ofRepository } from "./document.ts";

export const renovate: readonly ClientDocument[] = [
  {
    name: "Renovate: repoInfoQuery",
    query: `query($owner: String!, $name: String!, $user: String!) { repository(owner: $owner, name: $name) {
      id isFork parent { nameWithOwner } isArchived nameWithOwner hasIssuesEnabled autoMergeAllowed hasVulnerabilityAlertsEnabled
      mergeCommitAllowed rebaseMergeAllowed squashMergeAllowed mergeQueue { id }
      defaultBranchRef { name target { oid } }
      issues(orderBy: {field: UPDATED_AT, direction: DESC}, filterBy: {createdBy: $user}, first: 5) { nodes { number state title body updatedAt } }
    } }`,
    variables: (at) => ({ ...ofRepository(at), user: at.login }),
  },
  {
    name: "Renovate: getIssuesQuery",
    query: `query($owner: String!, $name: String!, $user: String, $count: Int, $cursor: String) { repository(owner: $owner, name: $name) {
      issues(orderBy: {field: UPDATED_AT, direction: DESC}, filterBy: {createdBy: $user}, first: $count, after: $cursor) {
        pageInfo { endCursor hasNextPage } nodes { number state title body updatedAt }
      }
    } }`,
    variables: (at) => ({ ...ofRepository(at), user: at.login, count: 100 }),
  },
  {
    name: "Renovate: repoMergeQueueQuery",
    query: "query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { mergeQueue { id } } }",
    variables: ofRepository,
  },
  {
    name: "Renovate: prIsInMergeQueueQuery",
    query: `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
      pullRequest(number: $number) { isInMergeQueue }
    } }`,
    variables: (at) => ({ ...ofRepository(at), number: at.pull }),
  },
  {
    name: "Renovate: enableAutoMergeMutation",
    query: `mutation EnableAutoMerge($pullRequestId: ID!, $mergeMethod: PullRequestMergeMethod!) {
      enablePullRequestAutoMerge(input: {pullRequestId: $pullRequestId, mergeMethod: $mergeMethod}) { pullRequest { number } }
    }`,
    variables: ({ pullId }) => ({ pullRequestId: pullId, mergeMethod: "SQUASH" }),
  },
  { name: "Renovate: getAppDetails", query: "query { viewer { login databaseId } }" },
  {
    name: "Renovate: datasource releases",
    query: `query($owner: String!, $name: String!, $cursor: String, $count: Int!) { repository(owner: $owner, name: $name) {
      isRepoPrivate: isPrivate
      payload: releases(first: $count, after: $cursor, orderBy: {field: CREATED_AT, direction: DESC}) {
        nodes { version: tagName releaseTimestamp: publishedAt isDraft isPrerelease url id: databaseId name description }
        pageInfo { hasNextPage endCursor }
      }
    } }`,
    variables: (at) => ({ ...ofRepository(at), count: 100 }),
  },
  {
    name: "Renovate: datasource tags",
    query: `query($owner: String!, $name: String!, $cursor: String, $count: Int!) { repository(owner: $owner, name: $name) {
      isRepoPrivate: isPrivate
      payload: refs(first: $count, after: $cursor, orderBy: {field: TAG_COMMIT_DATE, direction: DESC}, refPrefix: "refs/tags/") {
        nodes { version: name target { type: __typename
          ... on Commit { hash: oid releaseTimestamp: committedDate }
          ... on Tag { target { ... on Commit { hash: oid } } tagger { releaseTimestamp: date } }
        } }
        pageInfo { hasNextPage endCursor }
      }
    } }`,
    variables: (at) => ({ ...ofRepository(at), count: 100 }),
  },
];

const PROW_SEARCH = (fields: string) => `query($query: String!, $cursor: String) {
  rateLimit { cost remaining } search(type: ISSUE, first: 37, after: $cursor, query: $query) { pageInfo { hasNextPage endCursor } nodes { ${fields} } }
}`;
const LABELS = "labels(first: 100) { nodes { name } }";

export const prow: readonly ClientDocument[] = [
  {
    name: "Prow tide: searchQuery",
    query: PROW_SEARCH(`... on PullRequest {
      number author { login } baseRef { name prefix } headRefName headRefOid mergeable canBeRebased reviewDecision isDraft
      repository { name nameWithOwner owner { login } }
      commits(last: 4) { nodes { commit { status { contexts { context description state } } oid } } }
      ${LABELS} milestone { title } title body updatedAt
    }`),
    variables: ({ owner, name }) => ({ query: `is:pr state:open archived:false repo:"${owner}/${name}" label:lgtm` }),
  },
  {
    name: "Prow needs-rebase: searchQuery",
    query: PROW_SEARCH(
      `... on PullRequest { number author { login } repository { name owner { login } } ${LABELS} mergeable state }`,
    ),
    variables: ({ owner, name }) => ({ query: `archived:false is:pr is:open repo:"${owner}/${name}"` }),
  },
  {
    name: "Prow tide blockers: searchQuery",
    query: PROW_SEARCH("... on Issue { number title url repository { name owner { login } } }"),
    variables: ({ owner, name }) => ({ query: `is:issue state:open label:bug repo:"${owner}/${name}"` }),
  },
];

export const releasePlease: readonly ClientDocument[] = [
  {
    name: "release-please: mergedPullRequests",
    query: `query mergedPullRequests($owner: String!, $repo: String!, $num: Int!, $maxFilesChanged: Int, $targetBranch: String!, $cursor: String) {
      repository(owner: $owner, name: $repo) {
        pullRequests(first: $num, after: $cursor, baseRefName: $targetBranch, states: [MERGED], orderBy: {field: CREATED_AT, direction: DESC}) {
          nodes {
            number title baseRefName headRefName labels(first: 10) { nodes { name } } body mergeCommit { oid }
            files(first: $maxFilesChanged) { nodes { path } pageInfo { endCursor hasNextPage } }
          }
          pageInfo { endCursor hasNextPage }
        }
      }
    }`,
    variables: ({ owner, name }) => ({ owner, repo: name, num: 25, targetBranch: "main", maxFilesChanged: 64 }),
  },
  {
    name: "release-please: releases",
    query: `query releases($owner: String!, $repo: String!, $num: Int!, $cursor: String) { repository(owner: $owner, name: $repo) {
      releases(first: $num, after: $cursor, orderBy: {field: CREATED_AT, direction: DESC}) {
        nodes { name tag { name } tagCommit { oid } url description isDraft } pageInfo { endCursor hasNextPage }
      }
    } }`,
    variables: ({ owner, name }) => ({ owner, repo: name, num: 10 }),
  },
  {
    name: "release-please: pullRequestsSince",
    query: `query pullRequestsSince($owner: String!, $repo: String!, $num: Int!, $maxFilesChanged: Int, $targetBranch: String!, $cursor: String) {
      repository(owner: $owner, name: $repo) { ref(qualifiedName: $targetBranch) { target { ... on Commit {
        history(first: $num, after: $cursor) {
          nodes { sha: oid message associatedPullRequests(first: 10) { nodes {
            number title baseRefName headRefName labels(first: 10) { nodes { name } } body mergeCommit { oid }
            files(first: $maxFilesChanged) { nodes { path } pageInfo { endCursor hasNextPage } }
          } } }
          pageInfo { hasNextPage endCursor }
        }
      } } } }
    }`,
    variables: ({ owner, name }) => ({ owner, repo: name, num: 25, targetBranch: "main", maxFilesChanged: 64 }),
  },
];

export const semanticRelease: readonly ClientDocument[] = [
  {
    name: "semantic-release: getSRIssues",
    query: `query getSRIssues($owner: String!, $repo: String!, $filter: IssueFilters) { repository(owner: $owner, name: $repo) {
      issues(first: 100, states: OPEN, filterBy: $filter) { nodes { number title body } }
    } }`,
    variables: ({ owner, name }) => ({ owner, repo: name, filter: { labels: ["bug"] } }),
  },
  {
    name: "semantic-release: getAssociatedPRs",
    query: `query getAssociatedPRs($owner: String!, $repo: String!, $oid: GitObjectID!) { repository(owner: $owner, name: $repo) {
      commit: object(oid: $oid) { ... on Commit { oid associatedPullRequests(first: 100) {
        pageInfo { endCursor hasNextPage } nodes { url number body author { login url __typename } mergeCommit { oid } labels(first: 10) { nodes { name } } }
      } } }
    } }`,
    variables: ({ owner, name, oid }) => ({ owner, repo: name, oid }),
  },
  {
    name: "semantic-release: getRelatedIssues",
    query: `query getRelatedIssues($owner: String!, $repo: String!, $number: Int!) { repository(owner: $owner, name: $repo) {
      issue1: issueOrPullRequest(number: $number) {
        __typename ... on Issue { id number state } ... on PullRequest { id number state }
      }
    } }`,
    variables: ({ owner, name, issue }) => ({ owner, repo: name, number: issue }),
  },
];
