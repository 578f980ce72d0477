import { expect, test } from "vitest";
import { queueCounts } from "../../src/queues/counts.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { callerOf } from "../../src/simulator/quota/quota.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { LONG_TEST_MS, PATIENCE_MS } from "../support/bounds.ts";
import { testEnvironment, UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { type Program, startProgram } from "../support/program.ts";
import { openTap, type UpstreamTap } from "../support/upstream-tap.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** The large size takes minutes, so it has to be asked for. */
const wantsLarge = process.env.TAIN_LARGE === "1";
const WORKERS = 3;
/** How many requests three workers may have leave for at once. They would send many more within seconds. */
const MOST_UNDER_WAY = 12;

interface Spent extends AsyncDisposable {
  world: TestWorld;
  tap: UpstreamTap;
  /** Starts the worker processes, and waits until they look for work. */
  work(): Promise<void>;
  /** Gives the workers all work. */
  begin(): Promise<void>;
}

/** Repositories that wait to be copied by worker processes. The token has `limit` requests and points an hour. */
async function openBacklog({ limit, repositories }: { limit: number; repositories: number }): Promise<Spent> {
  const resources = new AsyncDisposableStack();
  const env: NodeJS.ProcessEnv = {};
  let tap: UpstreamTap | undefined;
  const world = resources.use(
    await openWorld({
      workers: false,
      env,
      fill: async (simulator) => {
        generateWorld(simulator.world, { seed: 3, repositories, issues: repositories * 10 });
        const token = { token: UPSTREAM_TOKEN, login: "mirror-owner", repositories: "all", write: true } as const;
        simulator.tokens.create({ ...token, limit });
        tap = await openTap(simulator.url);
        env.UPSTREAM_URL = tap.url;
      },
    }),
  );
  if (!tap) throw new Error("There is no tap");
  // The tap is closed before the world, but after the workers: a worker that still asks needs an upstream.
  resources.use(tap);
  const { config } = world.ctx;
  const stores = {
    database: config.databaseUrl,
    redis: { url: config.redisUrl, prefix: config.redisPrefix },
    upstream: tap.url,
  };
  const programs: Program[] = [];
  resources.defer(async () => void (await Promise.all(programs.map((program) => program.kill()))));
  return {
    world,
    tap,
    work: async () => {
      for (let started = 0; started < WORKERS; started++)
        programs.push(startProgram("workers/main.ts", testEnvironment(stores, { UPSTREAM_TOKEN, LOG_LEVEL: "warn" })));
      await until(
        "all workers look for work",
        async () => (await world.ctx.queues.backfill.getWorkers()).length >= WORKERS,
      );
    },
    begin: async () => {
      await addSelections(world.ctx, ["octo-works/*"]);
      await resolveSelections(world.ctx);
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Waits until every unfinished copy waits for a later moment. */
async function untilAllWait({ world }: Spent, withinMs: number): Promise<void> {
  const allWait = async () => {
    const { backfill, refresh } = await queueCounts(world.ctx);
    return (
      backfill !== undefined &&
      backfill.delayed > 0 &&
      backfill.waiting + backfill.active + (refresh?.active ?? 0) === 0
    );
  };
  await until("all copies wait for the quota", allWait, withinMs);
}

function coreOf({ simulator }: TestWorld) {
  const token = simulator.tokens.find(UPSTREAM_TOKEN);
  if (!token) throw new Error("Upstream does not know the mirror's token");
  return simulator.quota.state(callerOf(token, ""), "core");
}

test.each([
  { limit: 60, repositories: 100, leftMs: 15_000 },
  ...(wantsLarge ? [{ limit: 500, repositories: 850, leftMs: 120_000 }] : []),
])(
  "$limit requests an hour, and work for ten times as many by worker processes: upstream never has to refuse, a caller's write is answered, work resumes at the reset",
  async (size) => {
    const openedAt = performance.now();
    await using spent = await openBacklog(size);
    const { world, tap } = spent;
    const { simulator, ctx } = world;
    await spent.work();
    const leftMs = Math.max(size.leftMs, Math.round(3 * (performance.now() - openedAt)));
    const withinMs = Math.max(PATIENCE_MS, 2 * leftMs);
    // The rest of the quota's window: seconds, but long enough to use the quota up, and longer on a slow machine. What
    // the mirror knew of the window is forgotten.
    const clock = simulator.world.clock as SettableClock;
    clock.advance(coreOf(world).reset * 1_000 - clock.now() - leftMs);
    const known = await ctx.redis.keys(`${ctx.config.redisPrefix}:quota:*`);
    await ctx.redis.del(...known);
    await spent.begin();

    const windowEnds = coreOf(world).reset;
    await untilAllWait(spent, withinMs);
    const first = coreOf(world);
    expect(first.reset, "the window ended before it was used up: this machine is too busy").toBe(windowEnds);
    const spentMs = leftMs - (first.reset * 1_000 - simulator.world.clock.now());
    expect(first.used).toBeGreaterThanOrEqual(size.limit * 0.8);
    const seenBefore = tap.exchanges.length;
    // The list of an owner is asked for every minute, as long as something is left, and is free while it is unchanged.
    const work = () =>
      tap.exchanges
        .slice(seenBefore)
        .filter(({ method, path, status }) => method === "GET" && path !== "/user" && status !== 304);
    const startedAt = performance.now();
    const resetAt = startedAt + first.reset * 1_000 - simulator.world.clock.now();
    const written = await fetch(`${world.url}/repos/${world.first}/issues`, {
      method: "POST",
      headers: { authorization: `token ${world.token}`, "user-agent": "test", "content-type": "application/json" },
      body: JSON.stringify({ title: "written while the quota is spent" }),
    });
    const writeMs = performance.now() - startedAt;
    expect(written.status).toBe(201);
    expect(startedAt + writeMs, "the write was answered only when work might resume").toBeLessThan(resetAt);

    await until("work resumes", async () => work().length > 0, withinMs);
    const lateMs = Math.round((work()[0]?.arrivedAt ?? 0) - resetAt);
    const early = work().filter(({ arrivedAt }) => arrivedAt < resetAt);
    expect(early, "asked before the quota was there again").toEqual([]);
    await untilAllWait(spent, withinMs);
    const second = coreOf(world);
    expect(second.reset).toBeGreaterThan(first.reset);
    expect(second.used).toBeGreaterThanOrEqual(size.limit * 0.8);
    const { primaryLimited, secondaryLimited, requests } = simulator.meter.read();
    printFigures("spent quota", {
      ...size,
      leftMs,
      requests,
      refused: primaryLimited + secondaryLimited,
      shareUsed: Math.min(first.used, second.used) / size.limit,
      spentMs,
      writeMs: Math.round(writeMs),
      lateMs,
    });
    expect({ primaryLimited, secondaryLimited }).toEqual({ primaryLimited: 0, secondaryLimited: 0 });
  },
  LONG_TEST_MS,
);

test.each([
  { retryAfter: 4, silentMs: 4_000 },
  // GitHub docs: without the header a client waits at least a minute.
  ...(wantsLarge ? [{ retryAfter: undefined, silentMs: 60_000 }] : []),
])(
  "after a secondary limit (Retry-After: $retryAfter) no worker process asks upstream for anything before $silentMs ms have passed",
  async ({ retryAfter, silentMs }) => {
    await using spent = await openBacklog({ limit: 100_000, repositories: 60 });
    const { world, tap } = spent;
    await spent.begin();
    world.simulator.setFaults({
      http: [{ kind: "secondary-limit", times: 1, ...(retryAfter === undefined ? {} : { retryAfter }) }],
    });
    const refused = tap.answered(({ status }) => status === 403 || status === 429);
    await spent.work();
    const { answeredAt } = await refused;
    if (answeredAt === null) throw new Error("The refusal was not answered");
    const since = (ms: number) => tap.exchanges.filter(({ arrivedAt }) => arrivedAt > answeredAt + ms);
    await until("work goes on", async () => since(silentMs).length > 0);
    // Requests that other workers had leave to send before they could know do not count here, however late they arrive.
    const early = since(0).length - since(silentMs).length;
    printFigures("secondary limit", { retryAfter, silentMs, early });
    expect(early).toBeLessThanOrEqual(MOST_UNDER_WAY);
    expect(world.simulator.meter.read().secondaryLimited).toBe(1);
  },
);
