/**
 * Each commit waits for a synchronous replica. Two workers apply more than one worker does. They wait for each other only
 * if somebody listens to changes.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { listen } from "../../db/announcement.ts";
import { sql } from "../../db/sql.ts";
import { enqueueBursts } from "../../src/queues/queues.ts";
import { connectTo } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { openReplicated } from "../support/replicas.ts";
import { arrive, type MirroredWorld, opened, openMirrored, statuses } from "../workers/arrived.ts";

/** How many deliveries are applied: `npm run proofs slow-commits` sets it, and by default there are none. */
const DELIVERIES = Number(process.env.COMMITS ?? 0);
const reason = DELIVERIES > 0 ? "" : "(skipped: COMMITS=10000 plays it)";
const COMMIT_MS = 5;
const SAMPLE_MS = 5;

interface Way {
  workers: number;
  isHeard: boolean;
}

/** `late`: how many deliveries were applied after the first quarter. `seconds`: how long that took. */
type Applied = Record<"commitMs" | "heard" | "queuedMs" | "replicatingMs" | "late" | "seconds", number>;

test.skipIf(DELIVERIES === 0)(
  `with commits that take ${COMMIT_MS} ms, workers do not queue for a listener that is not there ${reason}`,
  async () => {
    await using servers = await openReplicated({ replicas: 1 });
    const { primary, replicas } = servers;
    await replicas[0]?.set("recovery_min_apply_delay", `${COMMIT_MS}ms`);
    await using world = await openMirrored({ DATABASE_URL: primary.url });
    const ways: Way[] = [1, 2].flatMap((workers) => [false, true].map((isHeard) => ({ workers, isHeard })));
    const all = new Map(ways.map((way): [Way, Applied[]] => [way, []]));
    // Every way is measured twice, in one order and then in the reverse one. So the growth of the tables and a busy
    // machine do the same to all ways.
    for (const [round, way] of [...ways, ...ways.toReversed()].entries()) {
      await primary.set("synchronous_standby_names", "");
      const edits = Array.from({ length: DELIVERIES / 2 }, (_, at) =>
        opened(world, at + 1, `edited ${round}`, new Date(Date.UTC(2026, 0, 1, round)).toISOString()),
      );
      const ids = await arrive(world, edits);
      // A commit waits until the replica shows it.
      await primary.set("synchronous_commit", "remote_apply");
      await primary.set("synchronous_standby_names", "*");
      all.get(way)?.push(await applied(world, ids, way));
    }
    for (const [{ workers, isHeard }, runs] of all) {
      const sum = (of: keyof Applied) => runs.reduce((total, one) => total + one[of], 0);
      const commitMs = Math.min(...runs.map((one) => one.commitMs));
      const perSecond = Math.round(sum("late") / sum("seconds"));
      const rest = { heard: sum("heard"), queuedMs: sum("queuedMs"), replicatingMs: sum("replicatingMs") };
      printFigures("slow commits", { deliveries: DELIVERIES, workers, isHeard, commitMs, perSecond, ...rest });
      expect(commitMs).toBeGreaterThanOrEqual(COMMIT_MS);
      if (!isHeard) expect(rest.queuedMs).toBe(0);
    }
  },
  600_000,
);

/** Has so many worker processes apply the deliveries, with or without a listener to changes. */
async function applied(
  { ctx, env, ...world }: MirroredWorld,
  ids: string[],
  { workers, isHeard }: Way,
): Promise<Applied> {
  await using resources = new AsyncDisposableStack();
  let heard = 0;
  const onText = () => {
    heard += 1;
  };
  const onLost = (error: Error) => expect.unreachable(error.message);
  if (isHeard) resources.use(await listen(ctx.config.databaseUrl, { onText, onLost }));
  const watcher = await connectTo(ctx.config.databaseUrl);
  resources.defer(() => watcher.end());
  const commitMs = await commitsFor(ctx.config.databaseUrl);
  const programs = Array.from({ length: workers }, () =>
    startProgram("workers/main.ts", { ...env, LOG_LEVEL: "info" }),
  );
  onTestFinished(async () => void (await Promise.all(programs.map((one) => one.kill()))));
  await Promise.all(programs.map((one) => one.said("Working")));
  let isOver = false;
  let [queuedMs, replicatingMs] = [0, 0];
  const watching = (async () => {
    let before = performance.now();
    for (; !isOver; await delay(SAMPLE_MS)) {
      const { rows } =
        await watcher.query(`select count(*) filter (where wait_event_type = 'Lock' and wait_event = 'object')::int as queued,
          count(*) filter (where wait_event = 'SyncRep')::int as replicating
        from pg_stat_activity where datname = current_database()`);
      const now = performance.now();
      queuedMs += rows[0].queued * (now - before);
      replicatingMs += rows[0].replicating * (now - before);
      before = now;
    }
  })();
  for (let start = 0; start < ids.length; start += 1_000) await enqueueBursts(ctx, ids.slice(start, start + 1_000));
  await until("all are settled", async () => {
    const left = await ctx.db.count(sql`select from deliveries where status = 'pending' limit 1`);
    return left === 0;
  });
  isOver = true;
  await watching;
  await Promise.all(programs.map((one) => one.stop()));
  expect(new Set(await statuses({ ctx, env, ...world }, ids))).toEqual(new Set(["applied"]));
  // During the first quarter a process compiles more than it applies.
  const [row] = await ctx.db.query<{ late: number; seconds: number }>(sql`
    with ours as (select settled_at from deliveries where id = any(${ids}::uuid[])),
      warm as (select percentile_disc(0.25) within group (order by settled_at) as at from ours)
    select count(*) filter (where settled_at > at)::int as late,
      extract(epoch from max(settled_at) - max(at))::float8 as seconds from ours, warm`);
  if (!row) throw new Error("Postgres has counted nothing");
  return { commitMs, heard, queuedMs: Math.round(queuedMs), replicatingMs: Math.round(replicatingMs), ...row };
}

/** The median time of single commits, one after the other on one connection. */
async function commitsFor(url: string): Promise<number> {
  const client = await connectTo(url);
  try {
    await client.query("create table if not exists commits_of_a_test (at timestamptz)");
    const took: number[] = [];
    for (let nth = 0; nth < 21; nth++) {
      const from = performance.now();
      await client.query("insert into commits_of_a_test values (now())");
      took.push(performance.now() - from);
    }
    return took.sort((a, b) => a - b)[10] ?? 0;
  } finally {
    await client.end();
  }
}
