import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { parseConfig } from "../src/config.ts";
import { type Context, openContext } from "../src/context.ts";
import type { Kind, ResourceKey } from "../src/mirror/resource.ts";
import { enqueueDeliveries } from "../src/operations/queues.ts";
import { openWorkerRedis } from "../src/operations/redis.ts";
import { generateWorld } from "../src/simulator/generate.ts";
import { openSimulator, type Simulator } from "../src/simulator/simulator.ts";
import { catchUp } from "../src/sync/catch-up.ts";
import { refresh } from "../src/sync/refresh.ts";
import { addSelections, resolveSelections } from "../src/sync/selection.ts";
import { ensureRepositoryHook } from "../src/upstream/hooks.ts";
import { buildWeb } from "../src/web.ts";
import { compare } from "../test/support/comparison.ts";
import { openWorkers } from "../workers/main.ts";
import { type BenchDatabase, benchRedis, openBenchDatabase } from "./databases.ts";
import { type Benchmark, comparison, type Measured, median } from "./measure.ts";
import { profileFlags } from "./profile.ts";
import { applyPlainly } from "./reference/apply.ts";

/** Deliveries from the queue to visible rows, by one worker process and by two. */
export const benchmark: Benchmark = {
  about:
    "deliveries applied per second from the queue, by one worker process, against one prepared, committed upsert per row over one connection",
  run,
};

/** `TAIN_LARGE=1` applies 100,000, by one process and by two. */
const LARGE = process.env.TAIN_LARGE === "1";
const DELIVERIES = Number(process.env.DELIVERIES ?? (LARGE ? 100_000 : 2_000));
const ROUNDS = Number(process.env.ROUNDS ?? (LARGE ? 1 : 5));

interface Applied {
  perSecond: number;
  lost: number;
}

async function run(): Promise<Measured> {
  await using world = await openHistory();
  const ours: Applied[] = [];
  const both: Applied[] = [];
  const reference: number[] = [];
  let drift: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await using one = await openBenchDatabase(world.prepared);
    ours.push(await applyBy(1, one, world));
    drift = drift.concat(await driftOf(one, world));
    await using two = await openBenchDatabase(world.prepared);
    both.push(await applyBy(2, two, world));
    drift = drift.concat(await driftOf(two, world));
    await using plain = await openBenchDatabase(world.prepared);
    const { deliveries, seconds } = await applyPlainly(plain.url, world.simulator.url);
    reference.push(deliveries / seconds);
  }
  return {
    ...comparison(
      ours.map(({ perSecond }, round) => [perSecond, reference[round] as number]),
      { unit: "deliveries/s", goal: { atLeast: 1 } },
    ),
    notes: {
      deliveries: world.deliveries,
      payloadBytes: world.payloadBytes,
      perSecondTwoProcesses: Math.round(median(both.map(({ perSecond }) => perSecond))),
      lost: [...ours, ...both].reduce((sum, { lost }) => sum + lost, 0),
      drift: drift.length,
      ...(drift.length > 0 ? { differences: drift.slice(0, 10) } : {}),
    },
  };
}

interface History extends AsyncDisposable {
  simulator: Simulator;
  /** A mirror in which the deliveries wait, all the rest being as it was before them. */
  prepared: BenchDatabase;
  deliveries: number;
  payloadBytes: { median: number; mean: number; most: number };
}

/** An upstream that was mirrored, and then went on, while nobody applied what it sent. */
async function openHistory(): Promise<History> {
  const resources = new AsyncDisposableStack();
  const simulator = resources.use(
    await openSimulator({
      seed: 1,
      worldOptions: { mergeableDelayMs: 0 },
      tokens: [{ token: "bench-token", login: "mirror-owner", repositories: "all", write: true }],
    }),
  );
  // GraphQL shows a limit as a 32-bit integer.
  for (const limit of Object.keys(simulator.quota.limits) as (keyof typeof simulator.quota.limits)[])
    simulator.quota.limits[limit] = 1_000_000_000;
  generateWorld(simulator.world, { seed: 1, repositories: 12, issues: 1_200, pulls: 500 });
  const prepared = resources.use(await openBenchDatabase());
  await using mirror = await openMirror(prepared, simulator, "set-up");
  const { ctx } = mirror;
  const names = [...simulator.world.repositories.values()]
    .filter(({ fork }) => !fork)
    .map((one) => simulator.world.fullName(one));
  await addSelections(ctx, names);
  await resolveSelections(ctx);
  {
    await using workers = await mirror.work();
    await waitFor(ctx, "select count(*)::int as left from repository_syncs where state <> 'live'");
    void workers;
  }
  const app = buildWeb(ctx);
  await app.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/webhooks`;
  for (const fullName of names) {
    const secret = ctx.config.webhookSecrets[0] as string;
    await ensureRepositoryHook(ctx.upstream, { fullName, url, secret, events: ["*"] });
  }
  const live = simulator.startLive({ ratePerSecond: 0, seed: 1 });
  while (simulator.webhooks.tally.sent < DELIVERIES) {
    // So that no more wait in memory than a few hundred.
    for (let step = 0; step < 200 && simulator.webhooks.tally.sent < DELIVERIES; step++) live.step();
    await simulator.quiet();
  }
  await app.close();
  const { rows } = await ctx.db.$client.query<{ deliveries: number; median: number; mean: number; most: number }>(
    `select count(*)::int as deliveries, percentile_disc(0.5) within group (order by length(payload))::int as median,
      avg(length(payload))::int as mean, max(length(payload))::int as most from deliveries where status = 'pending'`,
  );
  const { deliveries, ...payloadBytes } = rows[0] as { deliveries: number; median: number; mean: number; most: number };
  return { simulator, prepared, deliveries, payloadBytes, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

interface Mirror extends AsyncDisposable {
  ctx: Context;
  env: NodeJS.ProcessEnv;
  work(): Promise<AsyncDisposable>;
}

async function openMirror(
  database: BenchDatabase,
  simulator: Simulator,
  name: string,
  aheadMs: () => number = () => 0,
): Promise<Mirror> {
  const resources = new AsyncDisposableStack();
  const redis = benchRedis();
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: simulator.url,
    UPSTREAM_TOKEN: "bench-token",
    WEBHOOK_SECRET: "bench-secret",
    LOG_LEVEL: process.env.LOG_LEVEL ?? "error",
    HOST: "127.0.0.1",
    PORT: "0",
  };
  const clock = { now: () => new Date(Date.now() + aheadMs()) };
  const ctx = await openContext(parseConfig(env), resources, { name: `bench ${name}`, clock });
  return {
    ctx,
    env,
    async work() {
      const working = new AsyncDisposableStack();
      const stopping = new AbortController();
      const jobs = openWorkerRedis(ctx, `bench ${name}`);
      working.defer(() => jobs.disconnect());
      openWorkers({ ...ctx, jobs, stopping: stopping.signal }, working);
      working.defer(() => stopping.abort());
      return working;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** From the first delivery that was settled to the last, with as many worker processes. */
async function applyBy(
  processes: number,
  database: BenchDatabase,
  { simulator, deliveries }: History,
): Promise<Applied> {
  await using mirror = await openMirror(database, simulator, "dispatch");
  const { ctx, env } = mirror;
  const { rows: ids } = await ctx.db.$client.query<{ id: string }>(
    "select id from deliveries where status = 'pending' order by received_at, id",
  );
  for (let start = 0; start < ids.length; start += 1_000)
    await enqueueDeliveries(
      ctx,
      ids.slice(start, start + 1_000).map(({ id }) => id),
    );
  const children = Array.from({ length: processes }, () => startWorker(env));
  try {
    await waitFor(ctx, "select count(*)::int as left from deliveries where status = 'pending'");
  } finally {
    for (const child of children) {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    }
  }
  const { rows } = await ctx.db.$client.query<{ settled: number; seconds: number }>(
    `select count(*) filter (where status in ('applied', 'ignored'))::int as settled,
      extract(epoch from max(settled_at) - min(settled_at))::float8 as seconds from deliveries where id = any($1::uuid[])`,
    [ids.map(({ id }) => id)],
  );
  const { settled, seconds } = rows[0] as { settled: number; seconds: number };
  return { perSecond: settled / seconds, lost: deliveries - settled };
}

function startWorker(env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(process.execPath, [...profileFlags(), fileURLToPath(new URL("apply-worker.ts", import.meta.url))], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
}

/** What differs from upstream after one catch-up, and once every doubt was asked about; what only an audit can tell is left out. */
async function driftOf(database: BenchDatabase, { simulator }: History): Promise<string[]> {
  // Past every replica's lag, so that one read settles a doubt.
  let aheadMs = 600_000;
  await using mirror = await openMirror(database, simulator, "comparison", () => aheadMs);
  const { ctx } = mirror;
  const { rows } = await ctx.db.$client.query<{ id: string }>(
    "select repository_id as id from repository_syncs where state = 'live'",
  );
  for (const { id } of rows) await catchUp(ctx, { repositoryId: Number(id) }, new AbortController().signal);
  for (let { marks } = await openMarks(ctx); marks.length > 0; { marks } = await openMarks(ctx)) {
    // The pace that upstream asks for is kept by a clock that runs ahead.
    aheadMs += 60_000;
    const some = marks.slice(0, 500);
    for (let start = 0; start < some.length; start += 8)
      await Promise.all(some.slice(start, start + 8).map((mark) => refresh(ctx, mark)));
  }
  const differences: string[] = [];
  for (const { id } of rows) {
    const found = await compare(ctx, simulator, id, (_kind, path) => path === "author_association");
    differences.push(...found.differences);
  }
  return differences;
}

async function openMarks(ctx: Context): Promise<{ marks: ResourceKey[] }> {
  const { rows } = await ctx.db.$client.query<{ kind: Kind; repository_id: string; key: string }>(
    "select kind, repository_id, key from refresh_marks where not_before <= $1 order by not_before",
    [ctx.clock.now()],
  );
  return {
    marks: rows.map(({ kind, repository_id, key }) => ({
      kind,
      repositoryId: Number(repository_id),
      key: Number(key),
    })),
  };
}

async function waitFor(ctx: Context, countLeft: string): Promise<void> {
  for (;;) {
    const { rows } = await ctx.db.$client.query<{ left: number }>(countLeft);
    if (rows[0]?.left === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
