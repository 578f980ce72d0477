import { listed, observed, table } from "./table.ts";

/** One row is one repository that upstream showed us: a mirrored one, or one met as the head of a pull request. */
export const repositories = table("repositories", {
  id: "bigint",
  node_id: "text?",
  name: "text",
  full_name: "text",
  owner_id: "bigint?",
  html_url: "text?",
  private: "boolean",
  visibility: "text?",
  description: "text?",
  fork: "boolean?",
  archived: "boolean?",
  disabled: "boolean?",
  has_issues: "boolean?",
  default_branch: "text?",
  language: "text?",
  stargazers_count: "integer?",
  forks_count: "integer?",
  open_issues_count: "integer?",
  size: "integer?",
  created_at: "timestamptz?",
  updated_at: "timestamptz?",
  pushed_at: "timestamptz?",
  /** The keys that upstream sends only for a single repository. */
  detail: "json?",
  ...observed,
});

/** One row is one account: a person, bot or organisation, mirrored once however often it is embedded. */
export const users = table("users", {
  id: "bigint",
  node_id: "text?",
  login: "text",
  type: "text?",
  name: "text?",
  avatar_url: "text?",
  site_admin: "boolean?",
  updated_at: "timestamptz?",
  ...observed,
});

/** One row is one label of one repository. */
export const labels = table("labels", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  name: "text",
  color: "text?",
  description: "text?",
  default: "boolean?",
  updated_at: "timestamptz?",
  ...observed,
});

/** One row is one milestone of one repository. */
export const milestones = table("milestones", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  number: "integer",
  title: "text",
  description: "text?",
  state: "text",
  creator_id: "bigint?",
  open_issues: "integer?",
  closed_issues: "integer?",
  created_at: "timestamptz?",
  updated_at: "timestamptz?",
  due_on: "timestamptz?",
  closed_at: "timestamptz?",
  ...observed,
});

/**
 * One row is one number of a repository: an issue, or the issue side of a pull request.
 * `id` is null while only the pull request side has been seen; such a row is not served as an issue.
 */
export const issues = table("issues", {
  repository_id: "bigint",
  number: "integer",
  id: "bigint?",
  node_id: "text?",
  is_pull_request: "boolean",
  title: "text",
  body: "text?",
  state: "text",
  state_reason: "text?",
  locked: "boolean?",
  active_lock_reason: "text?",
  draft: "boolean?",
  user_id: "bigint?",
  author_association: "text?",
  milestone_id: "bigint?",
  comments: "integer?",
  closed_by_id: "bigint?",
  created_at: "timestamptz",
  updated_at: "timestamptz",
  closed_at: "timestamptz?",
  search: "tsvector?",
  ...observed,
});

/** One row is one pull request; the issue side of it is the row of `issues` with the same number. */
export const pullRequests = table("pull_requests", {
  repository_id: "bigint",
  number: "integer",
  id: "bigint?",
  node_id: "text?",
  title: "text",
  body: "text?",
  state: "text",
  locked: "boolean?",
  draft: "boolean?",
  user_id: "bigint?",
  author_association: "text?",
  milestone_id: "bigint?",
  head_label: "text?",
  head_ref: "text?",
  head_sha: "text?",
  head_repository_id: "bigint?",
  base_ref: "text?",
  base_sha: "text?",
  merge_commit_sha: "text?",
  merged: "boolean?",
  merged_by_id: "bigint?",
  mergeable: "boolean?",
  mergeable_state: "text?",
  comments: "integer?",
  review_comments: "integer?",
  commits: "integer?",
  additions: "integer?",
  deletions: "integer?",
  changed_files: "integer?",
  created_at: "timestamptz",
  updated_at: "timestamptz",
  closed_at: "timestamptz?",
  merged_at: "timestamptz?",
  /** The keys that upstream sends only for a single pull request. */
  detail: "json?",
  ...observed,
});

/** One row is one comment in the conversation of an issue or pull request. */
export const issueComments = table("issue_comments", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  issue_number: "integer",
  user_id: "bigint?",
  author_association: "text?",
  body: "text?",
  created_at: "timestamptz",
  updated_at: "timestamptz",
  search: "tsvector?",
  ...observed,
});

/** One row is one review of a pull request. */
export const pullRequestReviews = table("pull_request_reviews", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  pull_number: "integer",
  user_id: "bigint?",
  author_association: "text?",
  state: "text",
  body: "text?",
  commit_id: "text?",
  submitted_at: "timestamptz?",
  updated_at: "timestamptz?",
  /** The keys that upstream sends only in webhooks and GraphQL. */
  detail: "json?",
  ...observed,
});

/** One row is one comment on the diff of a pull request. */
export const pullRequestReviewComments = table("pull_request_review_comments", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  pull_number: "integer",
  review_id: "bigint?",
  in_reply_to_id: "bigint?",
  user_id: "bigint?",
  author_association: "text?",
  path: "text?",
  line: "integer?",
  side: "text?",
  commit_id: "text?",
  body: "text?",
  created_at: "timestamptz",
  updated_at: "timestamptz",
  ...observed,
});

/** One row is one check run: one job of one App on one commit. */
export const checkRuns = table("check_runs", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  head_sha: "text",
  check_suite_id: "bigint?",
  app_id: "bigint?",
  name: "text",
  status: "text",
  conclusion: "text?",
  started_at: "timestamptz?",
  completed_at: "timestamptz?",
  progress: "bigint",
  ...observed,
});

/** One row is one check suite: the check runs of one App for one push. */
export const checkSuites = table("check_suites", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  head_sha: "text",
  head_branch: "text?",
  app_id: "bigint?",
  status: "text?",
  conclusion: "text?",
  created_at: "timestamptz?",
  updated_at: "timestamptz?",
  ...observed,
});

/** One row is one commit of one pull request, as upstream listed it. */
export const pullRequestCommits = table("pull_request_commits", {
  ...listed,
  sha: "text",
  node_id: "text?",
  message: "text?",
  author_id: "bigint?",
  committer_id: "bigint?",
  authored_at: "timestamptz?",
  committed_at: "timestamptz?",
});

/** One row is one file that a pull request changes, as upstream listed it. */
export const pullRequestFiles = table("pull_request_files", {
  ...listed,
  filename: "text",
  previous_filename: "text?",
  status: "text",
  additions: "integer?",
  deletions: "integer?",
  changes: "integer?",
  sha: "text?",
  head_sha: "text?",
});

/** One row is one thread of review comments of one pull request, as upstream listed it. */
export const pullRequestThreads = table("pull_request_threads", {
  ...listed,
  node_id: "text",
  root_id: "bigint",
  is_resolved: "boolean",
  is_outdated: "boolean",
});

/** One row is one release, with its assets in the document. */
export const releases = table("releases", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  tag_name: "text",
  target_commitish: "text?",
  name: "text?",
  draft: "boolean",
  prerelease: "boolean?",
  author_id: "bigint?",
  created_at: "timestamptz",
  published_at: "timestamptz?",
  updated_at: "timestamptz?",
  ...observed,
});

/** One row is one status that was said of one commit; the newest of each context counts. */
export const commitStatuses = table("commit_statuses", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  sha: "text?",
  context: "text",
  state: "text",
  description: "text?",
  target_url: "text?",
  creator_id: "bigint?",
  created_at: "timestamptz",
  updated_at: "timestamptz",
  ...observed,
});
