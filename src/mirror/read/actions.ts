import type { Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { findEach } from "./each.ts";

/** @param named its id, or the name of its file */
export async function findWorkflow(
  db: Queries,
  repositoryId: number,
  named: number | string,
): Promise<(StoredDocument & { id: number }) | null> {
  const isIt = typeof named === "number" ? sql`t.id = ${named}` : sql`substring(t.path from '[^/]*$') = ${named}`;
  const [row] = await db.prepared<{ id: number; document: string }>(sql`
    select t.id, t.document::text as document from workflows t
      where t.repository_id = ${repositoryId} and t.deleted_at is null and ${isIt} order by t.id limit 1`);
  return row ? { repositoryId, ...row } : null;
}

/** Absent: any. */
export interface WorkflowRunFilter {
  workflowId?: number;
  /** A login. */
  actor?: string;
  branch?: string;
  event?: string;
  /** A status or a conclusion. */
  status?: string;
  /** From the first on, and before the second; null is no bound. */
  created?: { from: Date | null; until: Date | null };
  headSha?: string;
  checkSuiteId?: number;
}

/** Of the rows `t` of runs: those that pass the filter. */
export function runsAmong(filter: WorkflowRunFilter): SQL[] {
  const { workflowId, actor, branch, event, status, created, headSha, checkSuiteId } = filter;
  const when = (value: unknown, condition: SQL) => (value === undefined || value === null ? [] : [condition]);
  return [
    ...when(workflowId, sql`t.workflow_id = ${workflowId ?? 0}`),
    ...when(actor, sql`t.actor_id in (select u.id from users u where folded(u.login) = folded(${actor ?? ""}))`),
    ...when(branch, sql`t.head_branch = ${branch ?? ""}`),
    ...when(event, sql`t.event = ${event ?? ""}`),
    ...when(status, sql`(t.status = ${status ?? ""} or t.conclusion = ${status ?? ""})`),
    ...when(created?.from, sql`t.created_at >= ${created?.from ?? null}::timestamptz`),
    ...when(created?.until, sql`t.created_at < ${created?.until ?? null}::timestamptz`),
    ...when(headSha, sql`t.head_sha = ${headSha ?? ""}`),
    ...when(checkSuiteId, sql`t.check_suite_id = ${checkSuiteId ?? 0}`),
  ];
}

/** Of the rows `t` of jobs: those of the run, perhaps of its latest attempt alone. */
export function jobsAmong(runId: number, attempts: "latest" | "all"): SQL[] {
  const isLatest = sql`t.run_attempt is not distinct from (select r.run_attempt from workflow_runs r
    where r.repository_id = t.repository_id and r.id = t.run_id)`;
  return [sql`t.run_id = ${runId}`, ...(attempts === "latest" ? [isLatest] : [])];
}

/** A job, its run, and whether it has ended. */
export async function findJob(
  db: Queries,
  repositoryId: number,
  id: number,
): Promise<(StoredDocument & { runId: number; isCompleted: boolean }) | null> {
  const [row] = await db.prepared<{ runId: number; isCompleted: boolean; document: string }>(sql`
    select t.run_id as "runId", t.status = 'completed' as "isCompleted", t.document::text as document from workflow_jobs t
      where t.repository_id = ${repositoryId} and t.id = ${id} and t.deleted_at is null`);
  return row ? { repositoryId, ...row } : null;
}

/** A run and its workflow, as stored documents. */
export interface SuiteRun {
  run: string;
  workflow: string;
}

/** The runs that these check suites sum up. Null: the mirror knows of none. */
export async function findSuiteRuns(
  db: Queries,
  suites: readonly { repositoryId: number; id: number }[],
): Promise<(SuiteRun | null)[]> {
  return await findEach<SuiteRun>(
    db,
    suites,
    ["repositoryId", "id"],
    (x) => sql`
    select x.at, t.document::text as run, w.document::text as workflow
      from ${x} join workflow_runs t on t.repository_id = x.repository_id and t.check_suite_id = x.id and t.deleted_at is null
      join workflows w on w.repository_id = t.repository_id and w.id = t.workflow_id`,
  );
}
