import { sql } from "../db/sql.ts";
import { parseConfig } from "../src/config.ts";
import { type Context, openContext } from "../src/context.ts";
import { openWorkerRedis } from "../src/operations/redis.ts";
import type { Simulator } from "../src/simulator/control/running.ts";
import { generateWorld } from "../src/simulator/generate/generate.ts";
import { openSimulator } from "../src/simulator/simulator.ts";
import { addSelections, resolveSelections } from "../src/sync/following/selection.ts";
import { findId, placeRepositoryHook } from "../src/upstream/hooks/hooks.ts";
import { openWeb } from "../src/web.ts";
import { openWorkers } from "../workers/main.ts";
import { type BenchDatabase, benchRedis, openBenchDatabase } from "./databases.ts";
import { shared } from "./measure.ts";

export interface History extends AsyncDisposable {
  simulator: Simulator;
  /** A mirror as it was before the deliveries, which wait in its inbox. */
  prepared: BenchDatabase;
  deliveries: number;
  payloadBytes: { median: number; mean: number; most: number };
}

/** `TAIN_LARGE=1`: 100,000 deliveries. */
const DELIVERIES = Number(process.env.DELIVERIES ?? (process.env.TAIN_LARGE === "1" ? 100_000 : 2_000));

let opened: Promise<History> | undefined;

/** The one history of this run, which ends with it. */
export function sharedHistory(): Promise<History> {
  opened ??= openHistory(DELIVERIES).then((history) => shared.use(history));
  return opened;
}

/** An upstream that was mirrored, and then went on. Its deliveries were not applied. */
async function openHistory(atLeast: number): Promise<History> {
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
  generateWorld(simulator.world, { seed: 1, repositories: 12, issues: 600, pulls: 250 });
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
  const web = openWeb(ctx);
  const url = `${await web.listen({ host: "127.0.0.1", port: 0 })}/webhooks`;
  for (const fullName of names) {
    const secret = ctx.config.webhookSecrets[0] as string;
    await placeRepositoryHook(ctx.upstream, {
      repository: { id: await findId(ctx.upstream, `/repos/${fullName}`), fullName },
      url,
      secret,
      events: ["*"],
    });
  }
  const live = simulator.startLive({ ratePerSecond: 0, seed: 1 });
  while (simulator.webhooks.tally.sent < atLeast) {
    // Waiting here keeps no more than a few hundred webhooks in memory.
    for (let step = 0; step < 200 && simulator.webhooks.tally.sent < atLeast; step++) live.step();
    await simulator.quiet();
  }
  await web.close();
  const rows = await ctx.db.query<{ deliveries: number; median: number; mean: number; most: number }>(sql`
    select count(*)::int as deliveries, percentile_disc(0.5) within group (order by length(payload))::int as median,
      avg(length(payload))::int as mean, max(length(payload))::int as most from deliveries where status = 'pending'`);
  const { deliveries, ...payloadBytes } = rows[0] as { deliveries: number; median: number; mean: number; most: number };
  return { simulator, prepared, deliveries, payloadBytes, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

export interface Mirror extends AsyncDisposable {
  ctx: Context;
  env: NodeJS.ProcessEnv;
  work(): Promise<AsyncDisposable>;
}

export async function openMirror(
  database: BenchDatabase,
  upstream: Pick<Simulator, "url">,
  name: string,
  aheadMs: () => number = () => 0,
): Promise<Mirror> {
  const resources = new AsyncDisposableStack();
  const redis = benchRedis();
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: upstream.url,
    UPSTREAM_TOKEN: "bench-token",
    WEBHOOK_SECRET: "bench-webhook-secret",
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

/** Waits until the query counts nothing left. */
export async function waitFor(ctx: Context, countLeft: string, everyMs = 200): Promise<void> {
  for (;;) {
    const [row] = await ctx.db.query<{ left: number }>(sql.script(countLeft));
    if (row?.left === 0) return;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
