import { eq } from "drizzle-orm";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { repositorySyncs } from "../../schema.ts";
import { forgetValidatorsLike } from "../../upstream/conditional/validators.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { isDueSince } from "../hook-deliveries/told-nothing.ts";
import { HEAD, readHead, type Sums } from "../reads/head-sums.ts";
import { readOpenPulls } from "../reads/open-pulls.ts";
import { headsOf } from "./heads.ts";

/**
 * How often to ask about heads whose checks are unfinished: no webhook says that a check run has begun, and webhooks
 * get lost.
 */
const WAITING_MS = 5 * 60_000;
/** Rows of commits that are nobody's head are kept so long after they were last seen. */
const KEPT_MS = 24 * 3_600_000;
const PRUNED_AT_ONCE = 1_000;

/**
 * Of a repository `r` with its row `s` of `repository_syncs`: upstream has to be asked again about all of its heads.
 */
export function confirmationDue(ctx: Pick<Context, "clock" | "config">): SQL {
  const waiting = sql`exists (select from ${headsOf(sql`r.id`)} where
    exists (select from check_runs t where t.repository_id = r.id and t.head_sha = h.sha and t.status <> 'completed'
      and t.deleted_at is null)
    or exists (select from commit_statuses t where t.repository_id = r.id and t.sha = h.sha and t.state = 'pending'
      and t.deleted_at is null and not exists (select from commit_statuses n where n.repository_id = t.repository_id and n.sha = t.sha
        and folded(n.context) = folded(t.context) and n.deleted_at is null and n.id > t.id)))`;
  return sql`(${isDueSince(ctx, sql`s.checks_confirmed_at`, ["checks"])}
    or (s.checks_confirmed_at <= ${new Date(ctx.clock.now().getTime() - WAITING_MS)} and ${waiting}))`;
}

export async function areChecksDue(
  ctx: Pick<Context, "db" | "clock" | "config">,
  repositoryId: number,
): Promise<boolean> {
  return (
    (await ctx.db.count(sql`
      select from repositories r join repository_syncs s on s.repository_id = r.id
        where r.id = ${repositoryId} and ${confirmationDue(ctx)}`)) > 0
  );
}

/**
 * Asks upstream how many checks the heads of open pull requests have in each state. A head with the same counts here is
 * confirmed. Answers the heads that differ, which have to be read: a webhook was lost. Checks of commits that are no
 * longer a head are forgotten after a while.
 * @throws PullsNotShownError when upstream's GraphQL does not show the repository
 */
export async function confirmHeads(ctx: Context, repository: MirroredRepository): Promise<string[]> {
  const startedAt = ctx.clock.now();
  const pulls = await readOpenPulls(ctx, repository, { fields: HEAD, readPull: readHead });
  const heads = new Map(pulls.map((pull) => [pull.headRefOid, pull.statusCheckRollup?.contexts ?? null]));
  const differing = await settleHeads(ctx, repository, { heads, startedAt, areAll: true });
  await forgetOthers(ctx, repository.id);
  return differing;
}

interface HeadsRead {
  heads: ReadonlyMap<string, Sums | null>;
  startedAt: Date;
  /** Whether these are the heads of all open pull requests. */
  areAll: boolean;
}

/** Confirms the heads whose checks are counted here as at upstream. Answers the other heads, which have to be read. */
export async function settleHeads(
  ctx: Context,
  repository: MirroredRepository,
  { heads, startedAt, areAll }: HeadsRead,
): Promise<string[]> {
  return await whileMirrored(ctx, repository, async (tx) => {
    const ours = await countStored(tx, repository.id, [...heads.keys()]);
    const settled = [...heads].map(([sha, theirs]) => ({ sha, isSame: saysSame(theirs, ours.get(sha) ?? NO_STATES) }));
    // Heads that are read next keep their rows until then.
    const stored = areAll ? settled : settled.filter(({ isSame }) => isSame);
    // The time is set back by the lag: these heads are not news, so every replica knows them.
    const heardAt = new Date(startedAt.getTime() - REPLICA_LAG_MS);
    await tx.query(sql`
      insert into checked_commits (repository_id, sha, heard_at, read_at)
        select ${repository.id}, x.sha, ${heardAt}::timestamptz, case when x."isSame" then ${startedAt}::timestamptz end
          from json_to_recordset(${sql.json(stored)}) as x(sha text, "isSame" boolean) order by x.sha
        on conflict (repository_id, sha) do update set read_at = excluded.read_at`);
    if (areAll)
      await tx
        .update(repositorySyncs)
        .set({ checksConfirmedAt: startedAt })
        .where(eq(repositorySyncs.repositoryId, repository.id));
    tx.touch([repository.id]);
    return settled.filter(({ isSame }) => !isSame).map(({ sha }) => sha);
  });
}

type StateCounts = { runs: ReadonlyMap<string, number>; statuses: ReadonlyMap<string, number> };
const NO_STATES: StateCounts = { runs: new Map(), statuses: new Map() };

/**
 * Counts checks as upstream does, by state: the last run of each suite and name, and the last status of each context.
 */
async function countStored(
  tx: Pick<Context["db"], "query">,
  repositoryId: number,
  shas: readonly string[],
): Promise<Map<string, StateCounts>> {
  const rows = await tx.query<{ sha: string; kind: "runs" | "statuses"; state: string; count: number }>(sql`
    select sha, 'runs' as kind, state, count(*) as count from (
        select distinct on (t.head_sha, t.check_suite_id, t.name) t.head_sha as sha,
            upper(case when t.status = 'completed' then t.conclusion else t.status end) as state
          from check_runs t where t.repository_id = ${repositoryId} and t.head_sha = any(${shas}::text[]) and t.deleted_at is null
          order by t.head_sha, t.check_suite_id, t.name, t.id desc) runs group by 1, 3
    union all select sha, 'statuses', state, count(*) from (
        select distinct on (t.sha, folded(t.context)) t.sha, upper(t.state) as state
          from commit_statuses t where t.repository_id = ${repositoryId} and t.sha = any(${shas}::text[]) and t.deleted_at is null
          order by t.sha, folded(t.context), t.id desc) statuses group by 1, 3`);
  const ours = new Map<string, StateCounts>();
  for (const [sha, some] of Map.groupBy(rows, (row) => row.sha)) {
    const tally = (kind: "runs" | "statuses") =>
      new Map(some.filter((row) => row.kind === kind).map(({ state, count }) => [state, count]));
    ours.set(sha, { runs: tally("runs"), statuses: tally("statuses") });
  }
  return ours;
}

/** Whether upstream's counts equal ours. States with a count of zero are ignored. Pure. */
function saysSame(theirs: Sums | null, ours: StateCounts): boolean {
  const isSame = (total: number, states: Sums["checkRunCountsByState"], own: ReadonlyMap<string, number>) => {
    if (total === 0) return own.size === 0;
    const shown = (states ?? []).filter(({ count }) => count > 0);
    return shown.length === own.size && shown.every(({ state, count }) => own.get(state) === count);
  };
  if (theirs === null) return ours.runs.size === 0 && ours.statuses.size === 0;
  return (
    isSame(theirs.checkRunCount, theirs.checkRunCountsByState, ours.runs) &&
    isSame(theirs.statusContextCount, theirs.statusContextCountsByState, ours.statuses)
  );
}

/**
 * Deletes the checks of commits that are no longer a head, and their validators: a 304 would call the deleted rows
 * current.
 */
async function forgetOthers(ctx: Pick<Context, "db" | "clock">, repositoryId: number): Promise<void> {
  const until = new Date(ctx.clock.now().getTime() - KEPT_MS);
  const isHead = sql`exists (select from ${headsOf(sql`${repositoryId}::bigint`)} where h.sha = t.sha)`;
  await ctx.db.transaction(async (tx) => {
    const gone = await tx.query<{ sha: string }>(sql`
      select sha from (
          select t.head_sha as sha, max(t.seen_at) as seen_at from check_runs t where t.repository_id = ${repositoryId} group by 1
          union all select t.head_sha, max(t.seen_at) from check_suites t where t.repository_id = ${repositoryId} group by 1
          union all select t.sha, max(t.seen_at) from commit_statuses t where t.repository_id = ${repositoryId} and t.sha is not null group by 1
          union all select t.sha, t.heard_at from checked_commits t where t.repository_id = ${repositoryId}) t
        where not ${isHead} group by sha having max(seen_at) < ${until} order by sha limit ${PRUNED_AT_ONCE}`);
    if (gone.length === 0) return;
    const shas = gone.map(({ sha }) => sha);
    const paths = shas.map((sha) => `/repositories/${repositoryId}/commits/${sha}/%`);
    await forgetValidatorsLike(tx, paths);
    for (const [table, column] of [
      ["check_runs", "head_sha"],
      ["check_suites", "head_sha"],
      ["commit_statuses", "sha"],
      ["checked_commits", "sha"],
    ] as const)
      await tx.query(sql`
        delete from ${sql.identifier(table)}
          where repository_id = ${repositoryId} and ${sql.identifier(column)} = any(${shas}::text[])`);
  });
}
