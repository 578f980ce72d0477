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
