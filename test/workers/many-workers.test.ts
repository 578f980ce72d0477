/**
 * Many workers and schedulers share the work of one. Their connections are bounded, and hardly any work is done twice.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { temporaryDirectories } from "../../scripts/temporary.mjs";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { CLOCK_FILE, makeClock } from "../simulation/clock.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { pass } from "../support/paced.ts";
import { eventually, until } from "../support/patience.ts";
import { openPooler } from "../support/pooler.ts";
import { type Program, startProgramAt } from "../support/program.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** `npm run proofs workers` has fifty workers and ten schedulers behind PgBouncer, for a simulated hour. */
const isProof = process.env.WORKERS !== undefined;
const WORKERS = Number(process.env.WORKERS ?? 3);
const SCHEDULERS = Number(process.env.SCHEDULERS ?? 2);
const MINUTES = Number(process.env.MINUTES ?? 1);
/** One worker works for so many minutes, which shows how much work there is. */
const MINUTES_OF_ONE = 20;
const REPOSITORIES = isProof ? 20 : 2;
const CHANGES_A_MINUTE = 5;
/**
 * Each process stands for several workers or schedulers. There are several processes, so that no event loop carries
 * all.
 */
const PROCESSES = isProof ? 5 : 1;
const MINUTE = 60_000;
const PROGRAM = fileURLToPath(new URL("./small-workers.ts", import.meta.url));
const CLOCK = fileURLToPath(new URL("../simulation/clock.ts", import.meta.url));

/** The most of each that was seen at one moment, and in how many looks anything waited for a lock. */
interface Seen {
  postgres: number;
  redis: number;
  locks: number;
  looks: number;
  looksWithLocks: number;
}

test(
  "what many workers and schedulers do is what one does, on few connections",
  async () => {
    await using resources = new AsyncDisposableStack();
    const [place = "/tmp"] = await temporaryDirectories();
    const directory = await mkdtemp(`${place}/tain-workers-`);
    resources.defer(() => rm(directory, { recursive: true, force: true }));
    const world = resources.use(
      await openWorld({
        workers: false,
        fill: ({ world: upstream }) =>
          void generateWorld(upstream, { seed: 5, repositories: REPOSITORIES, issues: REPOSITORIES * 6, pulls: 6 }),
      }),
    );
    const { ctx, simulator } = world;
    const clock = resources.use(makeClock(join(directory, "clock")));
    const database = ctx.config.databaseUrl;
    const pooler = isProof ? resources.use(await openPooler(database, { directory })) : null;
    const env = {
      ...world.env,
      ...(pooler && { DATABASE_URL: pooler.through(database), DATABASE_DIRECT_URL: database }),
      [CLOCK_FILE]: clock.path,
      ...{ DATABASE_CONNECTIONS: "2", CATCH_UP_INTERVAL: "60s", DELIVERY_CHECK_INTERVAL: "60s", AUDIT_PERIOD: "10m" },
    };
    const start = async (workers: number, schedulers: number, processes: number) => {
      const sizes = { SMALL_WORKERS: String(workers / processes), SMALL_SCHEDULERS: String(schedulers / processes) };
      const started = Array.from({ length: processes }, () =>
        startProgramAt("/", PROGRAM, { ...env, ...sizes }, [], { nodeFlags: ["--import", CLOCK] }),
      );
      await Promise.all(started.map((one) => one.said("All are there")));
      return started;
    };
    const minute = () => {
      clock.advance(MINUTE);
      pass(world, MINUTE);
    };

    const names = [...simulator.world.repositories.values()]
      .filter(({ fork }) => !fork)
      .map((one) => simulator.world.fullName(one));
    const startMany = () => start(WORKERS, SCHEDULERS, PROCESSES);
    const first = isProof ? await start(1, 1, 1) : await startMany();
    await world.mirror(...names);
    await world.listen(...names);
    const live = simulator.startLive({ ratePerSecond: 0, seed: 5 });
    const step = () => void live.step();
    const during = (minutes: number) => play(world, { minutes, minute, step });
    await during(1); // The first minute does the work that a first copy leaves.
    const ofOne = isProof ? await during(MINUTES_OF_ONE) : null;
    let many = first;
    if (isProof) {
      await killAll(first);
      many = await startMany();
      await during(1);
    }
    const ofMany = await during(MINUTES);
    await killAll(many);

    const { seen } = ofMany;
    const requestsByOne = ofOne && ofMany.requests / MINUTES / (ofOne.requests / MINUTES_OF_ONE);
    printFigures("many workers", {
      ...{ workers: WORKERS, schedulers: SCHEDULERS, minutes: MINUTES, repositories: names.length },
      ...{ postgres: seen.postgres, redis: seen.redis, locks: seen.locks, looks: seen.looks },
      ...{ looksWithLocks: seen.looksWithLocks, deliveries: ofMany.deliveries, attempts: ofMany.attempts },
      ...{ requests: ofMany.requests, requestsOfOne: ofOne?.requests, byOne: requestsByOne },
      ...{ problems: ofMany.problems },
    });
    expect(ofMany.deliveries).toBeGreaterThan(0);
    expect(ofMany.problems).toEqual([]);
    if (requestsByOne !== null) expect(requestsByOne).toBeLessThanOrEqual(1.25);
  },
  isProof ? 3_600_000 : LONG_TEST_MS,
);

async function killAll(programs: readonly Program[]): Promise<void> {
  await Promise.all(programs.map((one) => one.kill()));
}

/**
 * Lets the time pass minute by minute. In each minute something changes, and each repository is caught up with once.
 */
async function play(
  world: TestWorld,
  { minutes, minute, step }: { minutes: number; minute: () => void; step: () => void },
) {
  const { ctx, simulator } = world;
  const seen: Seen = { postgres: 0, redis: 0, locks: 0, looks: 0, looksWithLocks: 0 };
  const done = new AbortController();
  const looking = look(world, seen, done.signal);
  simulator.meter.reset();
  const [before] = await tally(world);
  try {
    for (let at = 0; at < minutes; at++) {
      minute();
      const since = ctx.clock.now();
      for (let change = 0; change < CHANGES_A_MINUTE; change++) step();
      await until("each repository was caught up with in this minute", async () => {
        const late = sql`select from repository_syncs where state <> 'live' or confirmed_at < ${since} or confirmed_at is null limit 1`;
        return (await ctx.db.count(late)) === 0;
      });
      await simulator.quiet();
      await eventually(async () =>
        expect(await ctx.db.count(sql`select from deliveries where status = 'pending' limit 1`)).toBe(0),
      );
    }
  } finally {
    done.abort();
    await looking;
  }
  const [after] = await tally(world);
  const problems = await ctx.db.query(sql`select task, key, problem from problems`);
  return {
    seen,
    problems,
    requests: simulator.meter.read().requests,
    deliveries: (after?.deliveries ?? 0) - (before?.deliveries ?? 0),
    attempts: (after?.attempts ?? 0) - (before?.attempts ?? 0),
  };
}

const tally = ({ ctx }: TestWorld) =>
  ctx.db.query<{ deliveries: number; attempts: number }>(sql`
    select count(*)::int as deliveries, coalesce(sum(attempts), 0)::int as attempts from deliveries`);

/** Looks ten times a second, and notes what it sees. */
async function look({ ctx }: TestWorld, seen: Seen, done: AbortSignal): Promise<void> {
  while (!done.aborted) {
    const [row] = await ctx.db.query<{ open: number; waiting: number }>(sql`
      select count(*)::int as open, count(*) filter (where wait_event_type = 'Lock')::int as waiting
        from pg_stat_activity where datname = current_database()`);
    const [, clients] = /^connected_clients:(\d+)/m.exec(await infoOf(ctx.redis)) ?? [];
    seen.postgres = Math.max(seen.postgres, row?.open ?? 0);
    seen.redis = Math.max(seen.redis, Number(clients));
    seen.locks = Math.max(seen.locks, row?.waiting ?? 0);
    seen.looks += 1;
    if ((row?.waiting ?? 0) > 0) seen.looksWithLocks += 1;
    await delay(100, undefined, { signal: done }).catch(() => {});
  }
}

const infoOf = (redis: TestWorld["ctx"]["redis"]) => redis.info("clients");
