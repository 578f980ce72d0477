import { index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one comment on the diff of a pull request. */
export const pullRequestReviewComments = pgTable(
  "pull_request_review_comments",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    pullNumber: integer("pull_number").notNull(),
    reviewId: int8("review_id"),
    inReplyToId: int8("in_reply_to_id"),
    userId: int8("user_id"),
    authorAssociation: text("author_association"),
    path: text(),
    line: integer(),
    side: text(),
    commitId: text("commit_id"),
    body: text(),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "pull_request_review_comments_pkey" }),
    index("pull_request_review_comments_pull").on(table.repositoryId, table.pullNumber, table.id),
    index("pull_request_review_comments_updated").on(table.repositoryId, table.updatedAt, table.id),
  ],
);
