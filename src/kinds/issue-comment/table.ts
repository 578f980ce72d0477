import { sql } from "drizzle-orm";
import { index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz, tsvector } from "../../../db/schema/columns.ts";

/** One row is one comment in the conversation of an issue or pull request. */
export const issueComments = pgTable(
  "issue_comments",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    issueNumber: integer("issue_number").notNull(),
    userId: int8("user_id"),
    authorAssociation: text("author_association"),
    body: text(),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    search: tsvector().generatedAlwaysAs(sql`search_words(body)`),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "issue_comments_pkey" }),
    index("issue_comments_issue").on(table.repositoryId, table.issueNumber, table.id),
    index("issue_comments_search").using("gin", table.search),
    index("issue_comments_updated").on(table.repositoryId, table.updatedAt, table.id),
    index("issue_comments_user").on(table.userId, table.repositoryId, table.issueNumber),
  ],
);
