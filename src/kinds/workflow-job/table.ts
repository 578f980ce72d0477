import { index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one job of one attempt of a run. Its steps are in the document. */
export const workflowJobs = pgTable(
  "workflow_jobs",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    runId: int8("run_id").notNull(),
    runAttempt: integer("run_attempt"),
    name: text().notNull(),
    status: text().notNull(),
    conclusion: text(),
    createdAt: timestamptz("created_at"),
    startedAt: timestamptz("started_at"),
    completedAt: timestamptz("completed_at"),
    progress: int8().notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "workflow_jobs_pkey" }),
    index("workflow_jobs_run").on(table.repositoryId, table.runId, table.id),
  ],
);

/** One row is the list of jobs of one run: when it was last all here. Without a row, it never was. */
export const workflowJobLists = pgTable(
  "workflow_job_lists",
  {
    repositoryId: int8("repository_id").notNull(),
    parentId: int8("parent_id").notNull(),
    readAt: timestamptz("read_at"),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.parentId], name: "workflow_job_lists_pkey" })],
);
