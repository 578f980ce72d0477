import { index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one status that was said of one commit; the newest of each context counts. */
export const commitStatuses = pgTable(
  "commit_statuses",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    sha: text(),
    context: text().notNull(),
    state: text().notNull(),
    description: text(),
    targetUrl: text("target_url"),
    creatorId: int8("creator_id"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "commit_statuses_pkey" }),
    index("commit_statuses_head").on(table.repositoryId, table.sha),
  ],
);
