/**
 * The fields that our schema lacks of each client's document, as `Type.field`; of three documents, that all of it is
 * refused. A document without a line has none, and gets none again.
 */
export const LACKS: Readonly<Record<string, readonly string[] | "refused">> = {
  "gh: pr view": ["AutoMergeRequest.authorEmail", "AutoMergeRequest.enabledAt"],
  "gh: pr status": ["AutoMergeRequest.enabledAt", "BranchProtectionRule.requiresApprovingReviews"],
  "gh: issue view --json projectItems": ["Issue.projectItems"],
  "gh-dash: SearchPullRequests": ["Repository.branchProtectionRules"],
  "gh-dash: SearchIssues": ["Repository.branchProtectionRules"],
  "gh-dash: FetchPullRequest": [
    "CheckSuite.creator",
    "Commit.deployments",
    "PullRequest.suggestedReviewers",
    "Repository.branchProtectionRules",
    "ReviewRequest.asCodeOwner",
  ],
  "Renovate: repoInfoQuery": ["Repository.hasVulnerabilityAlertsEnabled"],
  "Renovate: enableAutoMergeMutation": "refused",
  "Renovate: datasource tags": ["Tag.tagger"],
  "Backstage pull-requests-board: useGetPullRequestDetails": ["PullRequest.lastEditedAt"],
  "DevLake: accounts": ["User.organizations"],
  "policy-bot: comments and reviews": [
    "IssueComment.lastEditedAt",
    "PullRequestReview.lastEditedAt",
    "PullRequestReview.onBehalfOf",
    "PullRequestReviewComment.lastEditedAt",
  ],
  "policy-bot: commits": ["Commit.committedViaWeb", "Commit.signature"],
  "Kodiak: GetEventInfo": [
    "Commit.signature",
    "PullRequest.bodyHTML",
    "PullRequest.bodyText",
    "Ref.id",
    "Ref.rules",
    "Repository.branchProtectionRules",
    "ReviewRequest.asCodeOwner",
  ],
  "GitHub for Jira: getCommitsQueryWithChangedFiles": ["Commit.changedFiles"],
  "GitHub for Jira: getBranchesQueryWithChangedFiles": ["Commit.changedFiles"],
  "GitHub for Jira: getDeploymentsQueryWithStatuses": ["Ref.id"],
  "GitHub for Jira: UserOrganizationsQuery": ["User.organizations"],
  // It asks for what the published schema does not have yet. The client tries again without.
  "MCP: list_issues, the first try": "refused",
  "MCP: issue_read enrichment": ["Issue.closedByPullRequestsReferences"],
  "MCP: lockdown repo access": ["Repository.collaborators"],
  "MCP: pull_request_review_write create": "refused",
};
