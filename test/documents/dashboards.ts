import { type ClientDocument, ofRepository } from "./document.ts";

export const backstage: readonly ClientDocument[] = [
  {
    name: "Backstage github-issues: issues",
    query: `fragment issues on Repository { issues(states: OPEN, first: 10, orderBy: {field: UPDATED_AT, direction: DESC}) {
        totalCount edges { node {
          assignees(first: 10) { edges { node { avatarUrl login } } } author { login avatarUrl url } repository { nameWithOwner }
          title url participants: assignees(first: 1) { totalCount } updatedAt createdAt comments(last: 1) { totalCount }
        } }
      } }
      query { one: repository(name: "NAME", owner: "OWNER") { ...issues } }`,
  },
  {
    name: "Backstage pull-requests-board: useGetPullRequestDetails",
    query: `query($name: String!, $owner: String!, $pullRequestNumber: Int!) { repository(name: $name, owner: $owner) {
      pullRequest(number: $pullRequestNumber) {
        id title url createdAt lastEditedAt isDraft mergeable state reviewDecision
        latestReviews(first: 10) { nodes { author { login avatarUrl ... on User { id email name } } state } }
        author { login avatarUrl ... on User { id email name } } repository { name owner { login } isArchived }
        labels(first: 10) { nodes { id name } } commits(last: 1) { nodes { commit { statusCheckRollup { state } } } }
      }
    } }`,
    variables: (at) => ({ ...ofRepository(at), pullRequestNumber: at.pull }),
  },
];

const DEVLAKE_USER = "login ... on User { databaseId name company email avatarUrl url }";

export const devlake: readonly ClientDocument[] = [
  {
    name: "DevLake: issues",
    query: `query($pageSize: Int!, $skipCursor: String, $owner: String!, $name: String!) {
      rateLimit { cost limit remaining resetAt }
      repository(owner: $owner, name: $name) { issues(first: $pageSize, after: $skipCursor, orderBy: {field: UPDATED_AT, direction: DESC}) {
        totalCount
        nodes {
          databaseId number state stateReason title body author { ${DEVLAKE_USER} } url closedAt createdAt updatedAt
          assignees(first: 100) { nodes { ${DEVLAKE_USER} } } milestone { number } labels(first: 100) { nodes { id name } }
        }
        pageInfo { endCursor hasNextPage }
      } }
    }`,
    variables: (at) => ({ ...ofRepository(at), pageSize: 100 }),
  },
  {
    name: "DevLake: pull requests",
    query: `query($pageSize: Int!, $skipCursor: String, $owner: String!, $name: String!) {
      repository(owner: $owner, name: $name) { pullRequests(first: $pageSize, after: $skipCursor, orderBy: {field: UPDATED_AT, direction: DESC}) {
        totalCount pageInfo { endCursor hasNextPage }
        nodes {
          databaseId number state title body url isDraft labels(first: 100) { nodes { id name } } author { ${DEVLAKE_USER} }
          assignees(first: 1) { nodes { ${DEVLAKE_USER} } } closedAt mergedAt updatedAt createdAt mergedBy { login ... on User { databaseId } }
          mergeCommit { oid } headRefName headRefOid baseRefName baseRefOid additions deletions
          commits(first: 100) { pageInfo { endCursor hasNextPage } nodes { url commit {
            oid message author { name email date user { databaseId login } } committer { date email name }
          } } }
          reviews(first: 100) { totalCount nodes { author { ${DEVLAKE_USER} } state submittedAt databaseId body } }
          reviewRequests(first: 10) { nodes { requestedReviewer { ... on User { databaseId login } ... on Team { databaseId name } } } }
        }
      } }
    }`,
    variables: (at) => ({ ...ofRepository(at), pageSize: 10 }),
  },
  {
    name: "DevLake: accounts",
    query: `query($login: String!) { user(login: $login) { login name email company avatarUrl url organizations(first: 100) { nodes { email name databaseId login } } } }`,
    variables: ({ login }) => ({ login }),
  },
];

const GRAFANA_USER = "login ... on User { name company email }";
const BY_SEARCH = (fields: string) => `query($query: String!, $cursor: String) {
  search(query: $query, type: ISSUE, first: 100, after: $cursor) { nodes { ${fields} } pageInfo { hasNextPage endCursor } }
}`;
const PULL = `number title url additions deletions state permalink author { ${GRAFANA_USER} } closed isDraft locked merged closedAt mergedAt updatedAt
  createdAt mergedBy { ${GRAFANA_USER} } repository { nameWithOwner } mergeable`;

export const grafana: readonly ClientDocument[] = [
  {
    name: "Grafana: issues",
    query: BY_SEARCH(
      `... on Issue { number title closedAt createdAt closed updatedAt author { ${GRAFANA_USER} } repository { nameWithOwner } labels(first: 10) { nodes { name } } assignees(first: 10) { nodes { login } } }`,
    ),
    variables: ({ owner, name }) => ({ query: `is:issue repo:${owner}/${name} created:2000-01-01..2100-01-01` }),
  },
  {
    name: "Grafana: pull requests",
    query: BY_SEARCH(`... on PullRequest { ${PULL} }`),
    variables: ({ owner, name }) => ({ query: `is:pr repo:${owner}/${name}` }),
  },
  {
    name: "Grafana: pull request reviews",
    query: BY_SEARCH(
      `... on PullRequest { ${PULL} reviews(first: 100) { nodes { author { ${GRAFANA_USER} } url state createdAt updatedAt comments { totalCount } } } }`,
    ),
    variables: ({ owner, name }) => ({ query: `is:pr repo:${owner}/${name}` }),
  },
  {
    name: "Grafana: repositories",
    query: `query($query: String!, $cursor: String) { search(query: $query, type: REPOSITORY, first: 50, after: $cursor) {
      nodes { ... on Repository { name owner { login } nameWithOwner url forkCount isFork isMirror isPrivate createdAt } } pageInfo { hasNextPage endCursor }
    } }`,
    variables: ({ owner }) => ({ query: `org:${owner}` }),
  },
  {
    name: "Grafana: labels",
    query: `query($name: String!, $owner: String!, $query: String, $cursor: String) { repository(name: $name, owner: $owner) {
      labels(first: 100, after: $cursor, query: $query) { nodes { color name description } pageInfo { hasNextPage endCursor } }
    } }`,
    variables: (at) => ({ ...ofRepository(at), query: "" }),
  },
  {
    name: "Grafana: milestones",
    query: `query($name: String!, $owner: String!, $query: String, $cursor: String) { repository(name: $name, owner: $owner) {
      milestones(first: 100, after: $cursor, query: $query) {
        nodes { closed state title dueOn closedAt createdAt creator { ${GRAFANA_USER} } } pageInfo { hasNextPage endCursor }
      }
    } }`,
    variables: ofRepository,
  },
];

const ACTOR = "login ... on User { id }";

export const policyBot: readonly ClientDocument[] = [
  {
    name: "policy-bot: pull request",
    query: `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { pullRequest(number: $number) {
      title body author { login } createdAt state isCrossRepository isDraft headRefOid headRefName headRepository { name owner { login } }
      baseRefName baseRepository { databaseId } labels(first: 100) { nodes { name } }
    } } }`,
    variables: (at) => ({ ...ofRepository(at), number: at.pull }),
  },
  {
    name: "policy-bot: comments and reviews",
    query: `query($owner: String!, $name: String!, $number: Int!, $commentCursor: String, $reviewCursor: String) {
      repository(owner: $owner, name: $name) { pullRequest(number: $number) {
        comments(first: 100, after: $commentCursor) { pageInfo { endCursor hasNextPage } nodes { createdAt lastEditedAt author { login } body } }
        reviews(first: 100, after: $reviewCursor) {
          pageInfo { endCursor hasNextPage }
          nodes { id author { login } body state submittedAt lastEditedAt onBehalfOf(first: 10) { nodes { slug organization { login } } } comments(first: 5) { nodes { body createdAt lastEditedAt author { login } } } }
        }
      } }
    }`,
    variables: (at) => ({ ...ofRepository(at), number: at.pull }),
  },
  {
    name: "policy-bot: commits",
    query: `query($owner: String!, $name: String!, $number: Int!, $cursor: String) { repository(owner: $owner, name: $name) { pullRequest(number: $number) {
      commits(first: 100, after: $cursor) { pageInfo { endCursor hasNextPage } nodes { commit {
        oid author { name email user { login } } committer { name email user { login } } committedViaWeb
        parents(first: 3) { nodes { oid } } signature { __typename isValid state signer { login } email }
      } } }
    } } }`,
    variables: (at) => ({ ...ofRepository(at), number: at.pull }),
  },
  {
    name: "policy-bot: requested reviewers",
    query: `query($owner: String!, $name: String!, $number: Int!, $cursor: String) { repository(owner: $owner, name: $name) { pullRequest(number: $number) {
      timelineItems(first: 100, after: $cursor, itemTypes: [REVIEW_REQUESTED_EVENT, REVIEW_REQUEST_REMOVED_EVENT]) {
        pageInfo { endCursor hasNextPage }
        nodes { __typename ... on ReviewRequestedEvent { createdAt requestedReviewer { ... on User { login } ... on Team { slug } } }
          ... on ReviewRequestRemovedEvent { createdAt requestedReviewer { ... on User { login } ... on Team { slug } } } }
      }
      reviewRequests(first: 100) { nodes { requestedReviewer { __typename ... on User { login } ... on Team { slug } } } }
    } } }`,
    variables: (at) => ({ ...ofRepository(at), number: at.pull }),
  },
];

export const kodiak: readonly ClientDocument[] = [
  {
    name: "Kodiak: GetEventInfo",
    query: `query GetEventInfo($owner: String!, $repo: String!, $configFileExpression: String!, $PRNumber: Int!) { repository(owner: $owner, name: $repo) {
      branchProtectionRules(first: 100) { nodes {
        matchingRefs(first: 100) { nodes { name } } requiresStatusChecks requiredStatusCheckContexts requiresStrictStatusChecks requiresCommitSignatures
        restrictsPushes pushAllowances(first: 100) { nodes { actor { __typename ... on App { databaseId } } } }
      } }
      mergeCommitAllowed rebaseMergeAllowed squashMergeAllowed deleteBranchOnMerge isPrivate
      ref(qualifiedName: "refs/heads/main") { rules(first: 10) { nodes { type } } }
      configFile: object(expression: $configFileExpression) { ... on Blob { text } }
      pullRequest(number: $PRNumber) {
        id author { ${ACTOR} type: __typename } isDraft mergeStateStatus state mergeable isCrossRepository title body bodyText bodyHTML url
        reviewRequests(first: 100) { nodes { asCodeOwner requestedReviewer { __typename ... on User { login } ... on Team { name } } } }
        reviewThreads(first: 100) { nodes { isCollapsed } } headRefName headRef { id } baseRefName
        reviews(first: 100) { nodes { createdAt state author { login type: __typename } authorAssociation } }
        labels(first: 100) { nodes { name } }
        commits(last: 1) { nodes { commit {
          author { user { name databaseId login type: __typename } } parents(first: 10) { totalCount }
          checkSuites(first: 100) { nodes { checkRuns(first: 100) { nodes { name conclusion } } } } signature { isValid } status { contexts { context state } }
        } } }
      }
    } }`,
    variables: ({ owner, name, pull }) => ({
      owner,
      repo: name,
      PRNumber: pull,
      configFileExpression: "main:.kodiak.toml",
    }),
  },
];

export const perceval: readonly ClientDocument[] = [
  {
    name: "GrimoireLab perceval: timelineItems",
    query: `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { issue(number: $number) {
      timelineItems(first: 100, itemTypes: [LABELED_EVENT, UNLABELED_EVENT, CLOSED_EVENT, REOPENED_EVENT]) {
        totalCount pageInfo { endCursor hasNextPage }
        nodes { eventType: __typename ... on LabeledEvent { actor { login } createdAt label { name } } ... on ClosedEvent { actor { login } createdAt } }
      }
    } } }`,
    variables: (at) => ({ ...ofRepository(at), number: at.issue }),
  },
];
