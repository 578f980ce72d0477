import { boolean, index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one deployment of a commit to an environment. */
export const deployments = pgTable(
  "deployments",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    sha: text().notNull(),
    ref: text().notNull(),
    task: text().notNull(),
    environment: text().notNull(),
    description: text(),
    creatorId: int8("creator_id"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "deployments_pkey" }),
    index("deployments_created").on(
      table.repositoryId,
      table.createdAt.desc().nullsFirst(),
      table.id.desc().nullsFirst(),
    ),
  ],
);

/** One row is the list of deployments of one repository: whether it is all here. */
export const deploymentLists = pgTable("deployment_lists", {
  repositoryId: int8("repository_id").primaryKey(),
  heardAt: timestamptz("heard_at"),
  readAt: timestamptz("read_at"),
  walkedAt: timestamptz("walked_at"),
  isHalfStored: boolean("is_half_stored").default(false).notNull(),
});
