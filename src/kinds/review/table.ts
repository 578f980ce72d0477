import { index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one review of a pull request. */
export const pullRequestReviews = pgTable(
  "pull_request_reviews",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    pullNumber: integer("pull_number").notNull(),
    userId: int8("user_id"),
    authorAssociation: text("author_association"),
    state: text().notNull(),
    body: text(),
    commitId: text("commit_id"),
    submittedAt: timestamptz("submitted_at"),
    updatedAt: timestamptz("updated_at"),
    detail: json(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "pull_request_reviews_pkey" }),
    index("pull_request_reviews_pull").on(table.repositoryId, table.pullNumber, table.id),
  ],
);
