import { observed, table } from "./table.ts";

/**
 * One row is one number of a repository: an issue, or the issue side of a pull request.
 * `id` is null while only the pull request side has been seen; such a row is not served as an issue.
 */
export const issues = table(
  "issues",
  {
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
  },
  { generated: ["search"] },
);

/** One row is an issue that left for another repository, of which upstream answers with its new place. */
export const issueTransfers = table("issue_transfers", {
  repository_id: "bigint",
  number: "integer",
  to_repository_id: "bigint",
  to_number: "integer",
});

/**
 * One row says that an issue or pull request carries a label. What lists by label ask of the issue stands in it again; a
 * trigger keeps that true.
 */
export const issueLabels = table("issue_labels", {
  repository_id: "bigint",
  label_id: "bigint",
  number: "integer",
  state: "text",
  is_pull_request: "boolean",
  is_shown: "boolean",
  created_at: "timestamptz",
});

/** One row says that an issue or pull request is assigned to a user. */
export const issueAssignees = table("issue_assignees", {
  repository_id: "bigint",
  user_id: "bigint",
  number: "integer",
});
