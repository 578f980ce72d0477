import { observed, table } from "./table.ts";

/** One row is one comment in the conversation of an issue or pull request. */
export const issueComments = table(
  "issue_comments",
  {
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
  },
  { generated: ["search"] },
);
