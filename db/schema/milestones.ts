import { integer, pgTable, primaryKey, text } from "../drizzle.ts";
import { id, instant, observed } from "./columns.ts";

/** One row is one milestone of one repository. */
export const milestones = pgTable(
  "milestones",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    number: integer("number").notNull(),
    title: text("title").notNull(),
    description: text("description"),
    state: text("state").notNull(),
    creatorId: id("creator_id"),
    openIssues: integer("open_issues"),
    closedIssues: integer("closed_issues"),
    createdAt: instant("created_at"),
    updatedAt: instant("updated_at"),
    dueOn: instant("due_on"),
    closedAt: instant("closed_at"),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);
