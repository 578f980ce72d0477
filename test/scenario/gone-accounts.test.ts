import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { GHOST_ID, type PullIssue } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const PULLS = 40;

/**
 * A copy of forty pull requests. Each has a review by an account that is gone, and was merged by one. REST shows the
 * account as the ghost or as null: `isGhost` says which, by the pull request's place in the order of creation.
 */
async function openCopied(isGhost: (place: number) => boolean): Promise<TestWorld> {
  const world = await openWorld({
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 4, repositories: 1, issues: 0, pulls: PULLS, reviewsPerPull: 0, people: 5 });
      const pulls = [...upstream.issues.values()].filter(isPull).sort((a, b) => a.number - b.number);
      for (const [place, issue] of pulls.entries()) review(issue, isGhost(place) ? GHOST_ID : null);
      function review(issue: PullIssue, authorId: number | null) {
        const at = issue.createdAt + 60;
        upstream.addReview({ issue, authorId, state: "APPROVED", body: "fine", createdAt: at, submittedAt: at });
        if (issue.pull.mergedAt !== null) issue.pull.mergedById = authorId;
      }
    },
  });
  await world.mirror(world.first);
  // Upstream has worked out by then what can be merged.
  (world.simulator.world.clock as SettableClock).advance(60_000);
  world.advance(60_000);
  await world.settleMarks();
  await world.catchUp();
  return world;
}

const singleReads = ({ simulator }: TestWorld) => {
  const { routes } = simulator.meter.read();
  const of = (route: string) => routes[`GET /repos/:owner/:repo/pulls/:number${route}`]?.requests ?? 0;
  return { reviews: of("/reviews"), merges: of("") };
};

const differences = async (world: TestWorld) => (await compare(world.ctx, world.simulator, world.first)).differences;

/** A copy where accounts that are gone are always shown as the ghost. */
let ghosts: TestWorld;
beforeAll(async () => {
  ghosts = await openCopied(() => true);
});
afterAll(async () => await ghosts?.[Symbol.asyncDispose]());

async function expectFewReads(world: TestWorld): Promise<void> {
  expect(await differences(world)).toEqual([]);
  const reads = singleReads(world);
  expect(reads.reviews).toBeGreaterThanOrEqual(3);
  // Tain believes three equal reads, and then checks one of 256.
  expect(reads.reviews).toBeLessThanOrEqual(3 + Math.ceil(PULLS / 256));
  expect(reads.merges).toBeLessThanOrEqual(3 + Math.ceil(PULLS / 256));
}

test("where accounts that are gone are always shown as the ghost, a few reads tell it for all", async () => {
  await expectFewReads(ghosts);
});

test("where accounts that are gone are always shown as null, a few reads tell it for all", async () => {
  await using world = await openCopied(() => false);
  await expectFewReads(world);
});

test.each([
  ["the ghost", GHOST_ID],
  ["null", null],
])("an account that merged, and was deleted since, is shown as %s after the next audit", async (_name, shownAs) => {
  const world = ghosts;
  const { ctx, simulator } = world;
  const someone = [...simulator.world.users.values()].find(({ type, id }) => type === "User" && id !== GHOST_ID);
  const merged = [...simulator.world.issues.values()].filter(isPull).filter(({ pull }) => pull.mergedAt !== null);
  // The test runs twice on one world, so each run takes a pull request of its own.
  const pull = merged[shownAs === null ? 1 : 0];
  if (!pull || !someone) throw new Error("No pull request was merged");
  pull.pull.mergedById = someone.id;
  const rows = await ctx.db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  const repositoryId = Number(rows[0]?.id);
  const { signal } = new AbortController();
  const check = async () => {
    world.advance(60_000);
    await audit(ctx, { repositoryId, repair: true, signal });
    await world.settleMarks();
  };
  await check();
  expect(await differences(world)).toEqual([]);
  // Upstream sends no webhook when an account goes, and moves no `updated_at`.
  pull.pull.mergedById = shownAs;
  expect(await differences(world)).not.toEqual([]);
  await check();
  expect(await differences(world)).toEqual([]);
  // The audit reads the merge once, and not again at each audit.
  const before = singleReads(world).merges;
  await check();
  expect(singleReads(world).merges).toBe(before);
});

test("where they are shown now so and now so, each is read", async () => {
  await using world = await openCopied((place) => place % 2 === 0);
  expect(await differences(world)).toEqual([]);
  expect(singleReads(world).reviews).toBeGreaterThanOrEqual(PULLS);
});

test("one that is shown otherwise than those that were read is found and put right by the audit", async () => {
  await using world = await openCopied((place) => place !== 20);
  expect(await differences(world)).not.toEqual([]);
  world.advance(60_000);
  const rows = await world.ctx.db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  const { signal } = new AbortController();
  const report = await audit(world.ctx, { repositoryId: Number(rows[0]?.id), repair: true, signal });
  expect(report && driftCount(report)).toBeGreaterThanOrEqual(1);
  expect((await differences(world)).filter((line) => line.startsWith("review "))).toEqual([]);
});
