import { index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one check run: one job of one App on one commit. */
export const checkRuns = pgTable(
  "check_runs",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    headSha: text("head_sha").notNull(),
    checkSuiteId: int8("check_suite_id"),
    appId: int8("app_id"),
    name: text().notNull(),
    status: text().notNull(),
    conclusion: text(),
    startedAt: timestamptz("started_at"),
    completedAt: timestamptz("completed_at"),
    progress: int8().notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "check_runs_pkey" }),
    index("check_runs_head").on(table.repositoryId, table.headSha),
  ],
);
