import { integer, pgTable, primaryKey, text } from "../drizzle.ts";
import { id, instant, jsonText, observed } from "./columns.ts";

/** One row is one review of a pull request. */
export const pullRequestReviews = pgTable(
  "pull_request_reviews",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    pullNumber: integer("pull_number").notNull(),
    userId: id("user_id"),
    authorAssociation: text("author_association"),
    state: text("state").notNull(),
    body: text("body"),
    commitId: text("commit_id"),
    submittedAt: instant("submitted_at"),
    updatedAt: instant("updated_at"),
    /** The keys that upstream sends only in webhooks and GraphQL. */
    detail: jsonText("detail"),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);

/** One row is one comment on the diff of a pull request. */
export const pullRequestReviewComments = pgTable(
  "pull_request_review_comments",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    pullNumber: integer("pull_number").notNull(),
    reviewId: id("review_id"),
    inReplyToId: id("in_reply_to_id"),
    userId: id("user_id"),
    authorAssociation: text("author_association"),
    path: text("path"),
    line: integer("line"),
    side: text("side"),
    commitId: text("commit_id"),
    body: text("body"),
    createdAt: instant("created_at").notNull(),
    updatedAt: instant("updated_at").notNull(),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);
