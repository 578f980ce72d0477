import type { Database } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { findEach, findRowsOfEach } from "./each.ts";
import { BY_ID, resourceSource } from "./resources.ts";

/** Failures of any kind, of check runs and of statuses. */
export const FAILED_STATES: ReadonlySet<string> = new Set([
  "FAILURE",
  "CANCELLED",
  "TIMED_OUT",
  "ACTION_REQUIRED",
  "STARTUP_FAILURE",
  "STALE",
]);
/** Neutral and skipped runs count as passed. */
export const PASSED_STATES: ReadonlySet<string> = new Set(["SUCCESS", "NEUTRAL", "SKIPPED"]);

/** A commit whose checks are followed, and which of its lists are complete here. */
export interface CheckedHead {
  sha: string;
  runs: boolean;
  statuses: boolean;
  suites: boolean;
}

interface StoredCheck {
  id: number;
  document: string;
}

/** The values of a stored check run that decide its state. */
interface RunState extends StoredCheck {
  status: string;
  conclusion: string | null;
}

/** The values of a stored status that decide its state. */
interface StatusState extends StoredCheck {
  state: string;
}

/** Which checks of each commit are certain here; null: the commit is no head that the mirror knows. */
export async function findCheckedHeads(
  db: Database,
  heads: readonly { repositoryId: number; sha: string }[],
): Promise<(CheckedHead | null)[]> {
  return await findEach<CheckedHead>(
    db,
    heads,
    ["repositoryId", "sha"],
    (x) => sql`
    select x.at, c.sha, c.read_at is not null as runs,
        c.read_at is not null and not exists (select from commit_statuses t where t.repository_id = c.repository_id
          and t.sha = c.sha and t.node_id is null and t.deleted_at is null) as statuses,
        c.suites_read_at is not null and not exists (select from check_runs t where t.repository_id = c.repository_id
          and t.head_sha = c.sha and t.deleted_at is null and not exists (select from check_suites s
            where s.repository_id = t.repository_id and s.id = t.check_suite_id and s.deleted_at is null)) as suites
      from ${x} join checked_commits c on c.repository_id = x.repository_id and c.sha = x.sha
      where c.is_default_head or exists (select from pull_requests p where p.repository_id = c.repository_id
        and p.head_sha = c.sha and p.state = 'open' and p.deleted_at is null)`,
  );
}

/** The commit that a branch of the repository's own ends in, as far as the mirror follows it. */
export async function findBranchHead(db: Database, repositoryId: number, branch: string): Promise<string | null> {
  const [row] = await db.prepared<{ sha: string }>(sql`
    select c.sha from checked_commits c join repositories r on r.id = c.repository_id
      where c.repository_id = ${repositoryId} and c.is_default_head and r.default_branch = ${branch}
    union all select p.head_sha from pull_requests p where p.repository_id = ${repositoryId} and p.head_ref = ${branch}
      and p.head_repository_id = ${repositoryId} and p.state = 'open' and p.deleted_at is null and p.head_sha is not null
    limit 1`);
  return row?.sha ?? null;
}

export interface RunFilter {
  name: string | null;
  status: string | null;
  appId: number | null;
  /** "latest": the last run of each suite and name. */
  filter: "latest" | "all";
}

/** The check runs of a commit or of a suite, the newest first. */
export async function findCheckRuns(
  db: Database,
  repositoryId: number,
  of: { sha: string } | { suiteId: number },
  { name, status, appId, filter }: RunFilter,
): Promise<StoredCheck[]> {
  const where = [
    sql`t.repository_id = ${repositoryId}`,
    sql`t.deleted_at is null`,
    "sha" in of ? sql`t.head_sha = ${of.sha}` : sql`t.check_suite_id = ${of.suiteId}`,
  ];
  if (name !== null) where.push(sql`t.name = ${name}`);
  if (appId !== null) where.push(sql`t.app_id = ${appId}`);
  const latest = filter === "latest" ? sql`distinct on (t.check_suite_id, t.name)` : sql``;
  const order = filter === "latest" ? sql`t.check_suite_id, t.name, t.id desc` : sql`t.id desc`;
  return await db.prepared<StoredCheck>(sql`
    select id, document::text as document from (
        select ${latest} t.id, t.document, t.status from check_runs t where ${sql.and(where)} order by ${order}) t
      where ${status === null ? sql`true` : sql`t.status = ${status}`} order by t.id desc`);
}

/** The check suites of a commit. */
export async function findCheckSuites(
  db: Database,
  repositoryId: number,
  sha: string,
  { appId, runName }: { appId: number | null; runName: string | null },
): Promise<StoredCheck[]> {
  const where = [sql`t.repository_id = ${repositoryId}`, sql`t.head_sha = ${sha}`, sql`t.deleted_at is null`];
  if (appId !== null) where.push(sql`t.app_id = ${appId}`);
  if (runName !== null)
    where.push(sql`exists (select from check_runs u where u.repository_id = t.repository_id and u.check_suite_id = t.id
      and u.name = ${runName} and u.deleted_at is null)`);
  return await db.prepared<StoredCheck>(sql`
    select t.id, t.document::text as document from check_suites t where ${sql.and(where)} order by t.id`);
}

/** The check suites of each of these commits. */
export async function findSuitesOf(
  db: Database,
  commits: readonly { repositoryId: number; sha: string }[],
): Promise<StoredDocument[][]> {
  return await findRowsOfEach<StoredDocument>(
    db,
    commits,
    ["repositoryId", "sha"],
    (x) => sql`
    select x.at, x.repository_id as "repositoryId", t.document::text as document
      from ${x} join check_suites t on t.repository_id = x.repository_id and t.head_sha = x.sha and t.deleted_at is null
      order by x.at, t.id`,
  );
}

/** The check runs of a suite, in the order in which they were made. */
export const suiteRunSource = resourceSource("check_run", {
  ...{ among: [sql`t.check_suite_id = x.n`], ...BY_ID, direction: "asc" },
});

/** All statuses of a commit, the newest first. */
export async function findStatuses(db: Database, repositoryId: number, sha: string): Promise<StoredCheck[]> {
  return await db.prepared<StoredCheck>(sql`
    select t.id, t.document::text as document from commit_statuses t
      where t.repository_id = ${repositoryId} and t.sha = ${sha} and t.deleted_at is null
      order by t.created_at desc, t.id desc`);
}

/** One check run or suite, and the commit that it checks. */
export async function findCheck(
  db: Database,
  of: "check_runs" | "check_suites",
  repositoryId: number,
  id: number,
): Promise<(StoredCheck & { sha: string }) | null> {
  const [row] = await db.prepared<StoredCheck & { sha: string }>(sql`
    select t.id, t.document::text as document, t.head_sha as sha from ${sql.identifier(of)} t
      where t.repository_id = ${repositoryId} and t.id = ${id} and t.deleted_at is null`);
  return row ?? null;
}

/** A rollup is made of the last run of each suite and name, and of the last status of each context. */
export interface Rollup {
  runs: RunState[];
  statuses: StatusState[];
}

/** The rollups of these commits, in their order. If documents are not wanted, they are empty. */
export async function findRollups(
  db: Database,
  heads: readonly { repositoryId: number; sha: string }[],
  { withDocuments }: { withDocuments: boolean },
): Promise<Rollup[]> {
  const document = withDocuments ? sql`document::text` : sql`''`;
  const [runs, statuses] = await Promise.all([
    findRowsOfEach<RunState>(
      db,
      heads,
      ["repositoryId", "sha"],
      (x) => sql`
      select at, id, ${document} as document, status, conclusion from (
          select distinct on (x.at, t.check_suite_id, t.name) x.at, t.id, t.document, t.status, t.conclusion
            from ${x} join check_runs t on t.repository_id = x.repository_id and t.head_sha = x.sha and t.deleted_at is null
            order by x.at, t.check_suite_id, t.name, t.id desc) t order by at, id`,
    ),
    findRowsOfEach<StatusState>(
      db,
      heads,
      ["repositoryId", "sha"],
      (x) => sql`
      select at, id, ${document} as document, state from (
          ${latestStatuses(x)}) t order by at, id`,
    ),
  ]);
  return heads.map((_, at) => ({ runs: runs[at] ?? [], statuses: statuses[at] ?? [] }));
}

/** The newest status of each commit `x` and context. The case of a context does not matter. */
function latestStatuses(x: SQL): SQL {
  return sql`select distinct on (x.at, folded(t.context)) x.at, t.id, t.document, t.state
    from ${x} join commit_statuses t on t.repository_id = x.repository_id and t.sha = x.sha and t.deleted_at is null
    order by x.at, folded(t.context), t.created_at desc, t.id desc`;
}
