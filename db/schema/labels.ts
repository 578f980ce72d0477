import { boolean, pgTable, primaryKey, text } from "../drizzle.ts";
import { id, instant, observed } from "./columns.ts";

/** One row is one label of one repository. */
export const labels = pgTable(
  "labels",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    name: text("name").notNull(),
    color: text("color"),
    description: text("description"),
    default: boolean("default"),
    updatedAt: instant("updated_at"),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);
