import { boolean, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one workflow of Actions: a file that says what is run, and when. */
export const workflows = pgTable(
  "workflows",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    name: text().notNull(),
    path: text().notNull(),
    state: text().notNull(),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id], name: "workflows_pkey" })],
);

/** One row is the list of workflows of one repository: whether it is all here. */
export const workflowLists = pgTable("workflow_lists", {
  repositoryId: int8("repository_id").primaryKey(),
  heardAt: timestamptz("heard_at"),
  readAt: timestamptz("read_at"),
  isHalfStored: boolean("is_half_stored").default(false).notNull(),
});
