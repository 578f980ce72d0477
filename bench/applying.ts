import { readFile } from "node:fs/promises";
import { sql } from "../db/sql.ts";
import type { Context } from "../src/context.ts";
import type { Kind, ResourceKey } from "../src/kinds/contract/kind.ts";
import { enqueueBursts } from "../src/queues/queues.ts";
import type { Simulator } from "../src/simulator/control/running.ts";
import { catchUp } from "../src/sync/catch-up/catch-up.ts";
import { Refreshes } from "../src/sync/refresh/refresh.ts";
import { compare } from "../test/support/comparison.ts";
import { type BenchDatabase, openBenchDatabase } from "./databases.ts";
import { type History, openMirror, waitFor } from "./history.ts";
import { startServer } from "./processes.ts";

export interface Applied {
  /** Measured after a quarter was applied: until then a process compiles more than it applies. */
  perSecond: number;
  lost: number;
  /** CPU time for a delivery, in microseconds: of the workers, and of the server processes of Postgres. */
  workerMicros: number;
  postgresMicros: number;
}

/** Has so many worker processes apply the deliveries of the history. `then` is called with the mirror after that. */
export async function applyBy(
  processes: number,
  history: History,
  then: (database: BenchDatabase) => Promise<void> = async () => {},
): Promise<Applied> {
  await using database = await openBenchDatabase(history.prepared);
  const applied = await applyFrom(database, processes, history);
  await then(database);
  return applied;
}

async function applyFrom(
  database: BenchDatabase,
  processes: number,
  { simulator, deliveries }: History,
): Promise<Applied> {
  await using mirror = await openMirror(database, simulator, "dispatch");
  const { ctx, env } = mirror;
  const ids = await ctx.db.query<{ id: string }>(sql`
    select id from deliveries where status = 'pending' order by received_at, id`);
  for (let start = 0; start < ids.length; start += 1_000)
    await enqueueBursts(
      ctx,
      ids.slice(start, start + 1_000).map(({ id }) => id),
    );
  const postgresBefore = await postgresCpuSeconds(ctx);
  await using workers = new AsyncDisposableStack();
  const started = await Promise.all(
    Array.from({ length: processes }, async () =>
      workers.use(await startServer("apply-worker.ts", env as Record<string, string>)),
    ),
  );
  const before = await cpuSecondsOf(started);
  await waitFor(ctx, "select count(*)::int as left from deliveries where status = 'pending'");
  const workerSeconds = (await cpuSecondsOf(started)) - before;
  const postgresSeconds = (await postgresCpuSeconds(ctx)) - postgresBefore;
  const rows = await ctx.db.query<{ settled: number; late: number; seconds: number }>(sql`
    with applied as (select settled_at from deliveries
      where id = any(${ids.map(({ id }) => id)}::uuid[]) and status in ('applied', 'ignored')),
      warm as (select percentile_disc(0.25) within group (order by settled_at) as at from applied)
    select count(*)::int as settled, count(*) filter (where settled_at > at)::int as late,
      extract(epoch from max(settled_at) - max(at))::float8 as seconds from applied, warm`);
  const { settled, late, seconds } = rows[0] as { settled: number; late: number; seconds: number };
  return {
    perSecond: late / seconds,
    lost: deliveries - settled,
    workerMicros: (workerSeconds / deliveries) * 1e6,
    postgresMicros: (postgresSeconds / deliveries) * 1e6,
  };
}

async function cpuSecondsOf(processes: readonly { cpuSeconds(): Promise<number> }[]): Promise<number> {
  const seconds = await Promise.all(processes.map((one) => one.cpuSeconds()));
  return seconds.reduce((sum, one) => sum + one, 0);
}

const TICKS_PER_SECOND = 100;

/**
 * The CPU time of the server processes that serve this database now. NaN where Postgres runs elsewhere or the kernel
 * does not say.
 */
export async function postgresCpuSeconds({ db }: Pick<Context, "db">): Promise<number> {
  const rows = await db.query<{ pid: number }>(sql`
    select pid from pg_stat_activity where datname = current_database()`);
  const ticks = await Promise.all(
    rows.map(async ({ pid }) => {
      const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
      const fields = stat.slice(stat.lastIndexOf(")")).split(" ");
      return Number(fields[12]) + Number(fields[13]);
    }),
  );
  return ticks.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
}

/** No webhook and no date tells of new contributors, or of changes to a pull request's fork. */
const AUDITED = /^(author_association$|head\.(repo|user)(\.|$))/;

/**
 * Differences from upstream after one catch-up, once every doubt is settled. Differences that only an audit can find
 * are left out.
 */
export async function driftOf(
  database: BenchDatabase,
  { simulator }: { simulator: Pick<Simulator, "url"> },
): Promise<string[]> {
  // The clock is past every replica's lag, so that one read settles a doubt.
  let aheadMs = 600_000;
  await using mirror = await openMirror(database, simulator, "comparison", () => aheadMs);
  const { ctx } = mirror;
  const rows = await ctx.db.query<{ id: string }>(sql`
    select repository_id as id from repository_syncs where state = 'live'`);
  for (const { id } of rows) await catchUp(ctx, { repositoryId: Number(id) }, new AbortController().signal);
  const refreshes = new Refreshes(ctx);
  for (let { marks } = await openMarks(ctx); marks.length > 0; { marks } = await openMarks(ctx)) {
    // The pace that upstream asks for is kept by a clock that runs ahead.
    aheadMs += 60_000;
    const some = marks.slice(0, 500);
    for (let start = 0; start < some.length; start += 8)
      await Promise.all(some.slice(start, start + 8).map((mark) => refreshes.refresh(mark)));
  }
  const differences: string[] = [];
  for (const { id } of rows) {
    const found = await compare(ctx, simulator, id, (_kind, path) => AUDITED.test(path));
    differences.push(...found.differences.map((one) => `repository ${id}: ${one}`));
  }
  return differences;
}

async function openMarks(ctx: Context): Promise<{ marks: ResourceKey[] }> {
  const rows = await ctx.db.query<{ kind: Kind; repositoryId: number; key: number }>(sql`
    select kind, repository_id as "repositoryId", key from refresh_marks where not_before <= ${ctx.clock.now()} order by not_before`);
  return { marks: rows };
}
