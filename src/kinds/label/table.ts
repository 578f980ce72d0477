import { sql } from "drizzle-orm";
import { boolean, index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one label of one repository. */
export const labels = pgTable(
  "labels",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    name: text().notNull(),
    color: text(),
    description: text(),
    default: boolean(),
    updatedAt: timestamptz("updated_at"),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "labels_pkey" }),
    index("labels_folded_name").on(table.repositoryId, sql`folded(name)`),
    index("labels_name").on(table.repositoryId, sql`lower(name)`),
  ],
);
