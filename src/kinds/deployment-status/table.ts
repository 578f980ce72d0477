import { index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one status of one deployment; the newest counts. */
export const deploymentStatuses = pgTable(
  "deployment_statuses",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    deploymentId: int8("deployment_id").notNull(),
    state: text().notNull(),
    environment: text(),
    description: text(),
    environmentUrl: text("environment_url"),
    logUrl: text("log_url"),
    creatorId: int8("creator_id"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "deployment_statuses_pkey" }),
    index("deployment_statuses_deployment").on(table.repositoryId, table.deploymentId, table.id.desc().nullsFirst()),
  ],
);

/** One row is the list of statuses of one deployment: when it was last all here. */
export const deploymentStatusLists = pgTable(
  "deployment_status_lists",
  {
    repositoryId: int8("repository_id").notNull(),
    parentId: int8("parent_id").notNull(),
    readAt: timestamptz("read_at"),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.parentId], name: "deployment_status_lists_pkey" })],
);
