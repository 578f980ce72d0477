import { index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one milestone of one repository. */
export const milestones = pgTable(
  "milestones",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    number: integer().notNull(),
    title: text().notNull(),
    description: text(),
    state: text().notNull(),
    creatorId: int8("creator_id"),
    openIssues: integer("open_issues"),
    closedIssues: integer("closed_issues"),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
    dueOn: timestamptz("due_on"),
    closedAt: timestamptz("closed_at"),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "milestones_pkey" }),
    index("milestones_number").on(table.repositoryId, table.number),
  ],
);
