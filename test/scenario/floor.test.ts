import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type Context, openContext } from "../../src/context.ts";
import { MERGEABILITY } from "../../src/mirror/store/merge-rule.ts";
import type { MeterReading } from "../../src/simulator/quota/meter.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { backfill, restartBackfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { compare } from "../support/comparison.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { type FloorSize, fillFloorWorld, floorOf, fullSize, sizeDividedBy } from "../support/floor-world.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** The large size takes minutes, so it has to be asked for. */
const wantsLarge = process.env.TAIN_LARGE === "1";
/** A few pages of comments are enough. */
const SMALL: FloorSize = { ...sizeDividedBy(40), comments: 350, reviewComments: 150 };
/** Longer than upstream needs to work anything out, and than the interval between sweeps. */
const LONG_MS = 10 * 60_000;

test.each([
  {
    reading: "costs nothing",
    chargeCounts: false,
    size: SMALL,
    pointsOf: (size: FloorSize) => floorOf(size).points,
  },
  {
    reading: "costs like any other",
    chargeCounts: true,
    // At this size whole pages would cost more.
    size: SMALL,
    // The first page costs two points and shows the price. On the pages after it a point buys 74 pull requests.
    pointsOf: ({ pulls }: FloorSize) => 2 + Math.ceil((pulls - 100) / 74),
  },
])(
  "where a connection that is only counted $reading, a repository is copied whole for hardly more than upstream's rules make the least, and again for nothing",
  async ({ chargeCounts, size, pointsOf }) => {
    // Beside the floor a first copy reads the repository by its name. It reads a few samples each of reviews and merges
    // by accounts that are gone. It also asks how much there is, and what can be merged.
    const first = { rest: floorOf(size).requests + 1 + 10, points: pointsOf(size) + 2 };
    await copyTwice(size, chargeCounts, {
      first,
      again: { rest: 0, points: 5 },
      audit: { rest: 0, points: pointsOf(size) },
    });
  },
  LONG_TEST_MS,
);

test.skipIf(!wantsLarge)(
  "10,000 issues, 5,000 pull requests, 60,000 comments, 20,000 review comments and 15,000 reviews (TAIN_LARGE=1)",
  async () => {
    await copyTwice(fullSize, false, {
      first: { rest: 1_030, points: 55 },
      again: { rest: 0, points: 5 },
      audit: { rest: 0, points: floorOf(fullSize).points },
    });
  },
  3_600_000,
);

interface Cost {
  /** The REST requests that were charged. */
  rest: number;
  points: number;
}

/**
 * Copies the repository, follows it, copies it again, and once more with another token. Upstream counts the cost of
 * each.
 */
async function copyTwice(
  size: FloorSize,
  chargeCounts: boolean,
  most: { first: Cost; again: Cost; audit: Cost },
): Promise<void> {
  // This test does not measure how fast upstream lets the mirror go.
  const limits = { restPointsPerMinute: Number.POSITIVE_INFINITY, graphqlPointsPerMinute: Number.POSITIVE_INFINITY };
  await using world = await openWorld({
    simulator: { quota: { limits, chargeCounts } },
    fill: (simulator) => void fillFloorWorld(simulator, size),
    copiedWithinMs: 1_800_000,
  });
  const { meter } = world.simulator;
  const costs: Record<string, Cost> = { floor: { rest: floorOf(size).requests, points: floorOf(size).points } };
  const measure = async (what: string, act: () => Promise<unknown>) => {
    meter.reset();
    await patiently(world, act);
    await world.settle();
    costs[what] = costOf(meter.read());
  };

  await measure("first copy", () => world.mirror(world.first));
  await isEqual(world, { butMergeability: true });
  // Upstream has worked out by now what can be merged.
  letTimePass(world);
  await measure("first catch-up and sweep", () => follow(world.ctx));
  await isEqual(world);
  letTimePass(world);
  await restart(world.ctx);
  await measure("copy again, catch-up, sweep", () => copyAgain(world.ctx));
  letTimePass(world);
  await measure("first audit", () => auditOnce(world.ctx));
  await isEqual(world);
  await measure("second audit", () => auditOnce(world.ctx));

  world.simulator.tokens.create({ token: "rotated", login: "mirror-owner", repositories: "all", write: true });
  world.simulator.tokens.delete(UPSTREAM_TOKEN);
  await using resources = new AsyncDisposableStack();
  const config = { ...world.ctx.config, upstreamTokens: ["rotated"] };
  const rotated = await openContext(config, resources, { name: "rotated", clock: world.ctx.clock });
  letTimePass(world);
  await restart(rotated);
  await measure("after a rotation: copy again, catch-up, sweep", () => copyAgain(rotated));
  await measure("after a rotation: audit", () => auditOnce(rotated));
  printFigures("floor", { size, chargeCounts, costs });

  expectAtMost(costs, ["first copy"], most.first);
  expectAtMost(costs, ["copy again, catch-up, sweep", "after a rotation: copy again, catch-up, sweep"], most.again);
  expectAtMost(costs, ["second audit", "after a rotation: audit"], most.audit);
}

function expectAtMost(costs: Record<string, Cost>, names: string[], { rest, points }: Cost): void {
  for (const name of names) {
    expect(costs[name]?.rest, name).toBeLessThanOrEqual(rest);
    expect(costs[name]?.points, name).toBeLessThanOrEqual(points);
  }
}

/** The cost without GraphQL's points, which are a quota of their own. */
function costOf({ routes, points }: MeterReading): Cost {
  const rest = Object.entries(routes).filter(([route]) => route !== "POST /graphql");
  return { rest: rest.reduce((sum, [, { charged }]) => sum + charged, 0), points };
}

function letTimePass(world: TestWorld): void {
  (world.simulator.world.clock as { advance?: (ms: number) => void }).advance?.(LONG_MS);
  world.advance(LONG_MS);
}

/**
 * Works as a worker does: work that our own pace holds up continues where it stopped. Only the mirror's clock does not
 * wait.
 */
async function patiently(world: TestWorld, act: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await act();
      return;
    } catch (error) {
      if (!(error instanceof QuotaSpentError)) throw error;
      world.advance(error.resetAt.getTime() - world.ctx.clock.now().getTime());
    }
  }
}

const signal = new AbortController().signal;

async function repositoryIn(ctx: Context): Promise<{ repositoryId: number }> {
  const rows = await ctx.db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  return { repositoryId: Number(rows[0]?.id) };
}

async function follow(ctx: Context): Promise<void> {
  await catchUp(ctx, await repositoryIn(ctx), signal);
  await sweep(ctx);
}

async function restart(ctx: Context): Promise<void> {
  await restartBackfill(ctx, (await repositoryIn(ctx)).repositoryId);
}

async function copyAgain(ctx: Context): Promise<void> {
  await backfill(ctx, await repositoryIn(ctx), signal);
  await follow(ctx);
}

async function auditOnce(ctx: Context): Promise<void> {
  const report = await audit(ctx, { ...(await repositoryIn(ctx)), repair: true, signal });
  expect(report && driftCount(report)).toBe(0);
}

/**
 * @param butMergeability leaves out whether and how pull requests can be merged, which upstream works out only once it
 * is asked
 */
async function isEqual(world: TestWorld, { butMergeability = false } = {}): Promise<void> {
  const { differences } = await compare(
    world.ctx,
    world.simulator,
    world.first,
    (kind, path) => butMergeability && kind === "pull_request" && MERGEABILITY.has(path),
  );
  expect(differences).toEqual([]);
}
