import type { Database, Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { workflowJob } from "../../kinds/workflow-job/kind.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { type CountedBounds, findNumberedPage, type PageBounds } from "./numbered-pages.ts";

/** Whether the repository's list of workflows, or of their runs, is here. */
export async function isActionsListHeld(
  db: Queries,
  repositoryId: number,
  of: "workflow_lists" | "workflow_run_lists",
): Promise<boolean> {
  const rows = await db.prepared(sql`
    select from ${sql.identifier(of)} l where l.repository_id = ${repositoryId} and l.read_at is not null`);
  return rows.length > 0;
}

interface FoundPage {
  rows: StoredDocument[];
  total: number;
}

/** A page of the workflows, in the order in which they were made, and how many there are. */
export async function findWorkflows(db: Database, repositoryId: number, page: CountedBounds): Promise<FoundPage> {
  const matching = sql`from workflows t where t.repository_id = ${repositoryId} and t.deleted_at is null`;
  return await findNumberedPage(db, repositoryId, { matching, order: sql`t.id`, ...page });
}

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

/** A page of the runs, the newest first, and how many there are. */
export async function findWorkflowRuns(
  db: Database,
  repositoryId: number,
  { filter, ...page }: CountedBounds & { filter: WorkflowRunFilter },
): Promise<FoundPage> {
  const { workflowId, actor, branch, event, status, created, headSha, checkSuiteId } = filter;
  const when = (value: unknown, condition: SQL) => (value === undefined || value === null ? [] : [condition]);
  const matching = sql`from workflow_runs t where ${sql.and([
    sql`t.repository_id = ${repositoryId} and t.deleted_at is null`,
    ...when(workflowId, sql`t.workflow_id = ${workflowId ?? 0}`),
    ...when(actor, sql`t.actor_id in (select u.id from users u where folded(u.login) = folded(${actor ?? ""}))`),
    ...when(branch, sql`t.head_branch = ${branch ?? ""}`),
    ...when(event, sql`t.event = ${event ?? ""}`),
    ...when(status, sql`(t.status = ${status ?? ""} or t.conclusion = ${status ?? ""})`),
    ...when(created?.from, sql`t.created_at >= ${created?.from ?? null}::timestamptz`),
    ...when(created?.until, sql`t.created_at < ${created?.until ?? null}::timestamptz`),
    ...when(headSha, sql`t.head_sha = ${headSha ?? ""}`),
    ...when(checkSuiteId, sql`t.check_suite_id = ${checkSuiteId ?? 0}`),
  ])}`;
  const order = sql`t.created_at desc, t.id desc`;
  return await findNumberedPage(db, repositoryId, { matching, order, ...page });
}

export async function findWorkflowRun(db: Queries, repositoryId: number, id: number): Promise<StoredDocument | null> {
  const [row] = await db.prepared<{ document: string }>(sql`
    select t.document::text as document from workflow_runs t
      where t.repository_id = ${repositoryId} and t.id = ${id} and t.deleted_at is null`);
  return row ? { repositoryId, ...row } : null;
}

interface RunPlace {
  repositoryId: number;
  runId: number;
}

/** Whether the list of the run's jobs is here. */
export async function areJobsHeld(db: Queries, { repositoryId, runId }: RunPlace): Promise<boolean> {
  const isCurrent = workflowJob.listBelow?.isCurrent ?? sql`false`;
  const rows = await db.prepared(sql`
    select from workflow_runs p join workflow_job_lists l on l.repository_id = p.repository_id and l.parent_id = p.id
      where p.repository_id = ${repositoryId} and p.id = ${runId} and l.read_at is not null and ${isCurrent}`);
  return rows.length > 0;
}

/** A page of a run's jobs, in the order in which they were made, and how many there are. */
export async function findJobs(
  db: Database,
  { repositoryId, runId }: RunPlace,
  { filter, ...page }: PageBounds & { filter: "latest" | "all" },
): Promise<FoundPage> {
  const latest =
    filter === "all"
      ? sql``
      : sql`and t.run_attempt is not distinct from (select r.run_attempt from workflow_runs r
          where r.repository_id = t.repository_id and r.id = t.run_id)`;
  const matching = sql`from workflow_jobs t
    where t.repository_id = ${repositoryId} and t.run_id = ${runId} and t.deleted_at is null ${latest}`;
  return await findNumberedPage(db, repositoryId, { matching, order: sql`t.id`, ...page });
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
  const repositoryIds = suites.map(({ repositoryId }) => repositoryId);
  const ids = suites.map(({ id }) => id);
  const rows = await db.prepared<SuiteRun & { at: number }>(sql`
    select x.at, t.document::text as run, w.document::text as workflow
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(ids, "bigint")}) with ordinality as x(r, s, at)
      join workflow_runs t on t.repository_id = x.r and t.check_suite_id = x.s and t.deleted_at is null
      join workflows w on w.repository_id = t.repository_id and w.id = t.workflow_id`);
  const found = new Map(rows.map(({ at, ...run }) => [at - 1, run]));
  return suites.map((_, at) => found.get(at) ?? null);
}
