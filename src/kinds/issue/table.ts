import { sql } from "drizzle-orm";
import { boolean, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz, tsvector } from "../../../db/schema/columns.ts";

/**
 * One row is one number of a repository: an issue, or the issue side of a pull request.
 * `id` is null while only the pull request side has been seen; such a row is not served as an issue.
 */
export const issues = pgTable(
  "issues",
  {
    repositoryId: int8("repository_id").notNull(),
    number: integer().notNull(),
    id: int8(),
    nodeId: text("node_id"),
    isPullRequest: boolean("is_pull_request").notNull(),
    title: text().notNull(),
    body: text(),
    state: text().notNull(),
    stateReason: text("state_reason"),
    locked: boolean(),
    activeLockReason: text("active_lock_reason"),
    draft: boolean(),
    userId: int8("user_id"),
    authorAssociation: text("author_association"),
    milestoneId: int8("milestone_id"),
    comments: integer(),
    closedById: int8("closed_by_id"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    closedAt: timestamptz("closed_at"),
    search: tsvector().generatedAlwaysAs(
      sql`(setweight(search_words(title), 'A'::"char") || setweight(search_words(body), 'B'::"char"))`,
    ),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.number], name: "issues_pkey" }),
    index("issues_by_user").on(table.userId, table.repositoryId, table.number),
    index("issues_comments").on(table.repositoryId, table.comments, table.number),
    index("issues_created").on(table.repositoryId, table.createdAt, table.number),
    index("issues_id").on(table.id),
    index("issues_milestone")
      .on(table.repositoryId, table.milestoneId, table.createdAt, table.number)
      .where(sql`(milestone_id IS NOT NULL)`),
    index("issues_open_created")
      .on(table.repositoryId, table.createdAt, table.number)
      .where(sql`(state = 'open'::text)`),
    index("issues_search").using("gin", table.search),
    index("issues_shown")
      .on(table.repositoryId, table.state)
      .where(sql`((id IS NOT NULL) AND (deleted_at IS NULL) AND (NOT is_pull_request))`),
    index("issues_updated").on(table.repositoryId, table.updatedAt, table.number),
    index("issues_user").on(table.repositoryId, table.userId, table.createdAt, table.number),
  ],
);
