import { sql } from "drizzle-orm";
import { boolean, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one run of a workflow, with its latest attempt. */
export const workflowRuns = pgTable(
  "workflow_runs",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    workflowId: int8("workflow_id").notNull(),
    checkSuiteId: int8("check_suite_id"),
    name: text(),
    event: text().notNull(),
    headSha: text("head_sha").notNull(),
    headBranch: text("head_branch"),
    runNumber: integer("run_number"),
    runAttempt: integer("run_attempt"),
    status: text(),
    conclusion: text(),
    actorId: int8("actor_id"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "workflow_runs_pkey" }),
    index("workflow_runs_created").on(
      table.repositoryId,
      table.createdAt.desc().nullsFirst(),
      table.id.desc().nullsFirst(),
    ),
    index("workflow_runs_workflow").on(
      table.repositoryId,
      table.workflowId,
      table.createdAt.desc().nullsFirst(),
      table.id.desc().nullsFirst(),
    ),
    index("workflow_runs_suite").on(table.repositoryId, table.checkSuiteId),
    index("workflow_runs_head").on(table.repositoryId, table.headSha),
    index("workflow_runs_unfinished").on(table.repositoryId).where(sql`status <> 'completed'::text`),
  ],
);

/** One row is the list of runs of one repository: whether it is all here. */
export const workflowRunLists = pgTable("workflow_run_lists", {
  repositoryId: int8("repository_id").primaryKey(),
  heardAt: timestamptz("heard_at"),
  readAt: timestamptz("read_at"),
  walkedAt: timestamptz("walked_at"),
  isHalfStored: boolean("is_half_stored").default(false).notNull(),
});
