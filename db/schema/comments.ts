import { integer, pgTable, primaryKey, sql, text } from "../drizzle.ts";
import { id, instant, observed, words } from "./columns.ts";

/** One row is one comment in the conversation of an issue or pull request. */
export const issueComments = pgTable(
  "issue_comments",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    issueNumber: integer("issue_number").notNull(),
    userId: id("user_id"),
    authorAssociation: text("author_association"),
    body: text("body"),
    createdAt: instant("created_at").notNull(),
    updatedAt: instant("updated_at").notNull(),
    search: words("search").generatedAlwaysAs(sql`search_words(body)`),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);
