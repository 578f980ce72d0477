import { observed, table } from "./table.ts";

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
