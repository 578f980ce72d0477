/** Lists that are read only since somebody asks for them: who pays, and how fast upstream is asked for them in all. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import { askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { markResourceListsDue } from "../support/due.ts";
import { mirrorFirst, passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let runs: number[];
const JOBS = "GET /repos/:owner/:repo/actions/runs/:id/jobs";

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "actions" },
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 2 });
      for (const one of upstream.repositories.values()) addCode(upstream, one, { workflowRuns: 30 }, 7, upstream.now());
    },
  });
  runs = [...world.simulator.world.code.of(await mirrorFirst(world)).workflowRuns.keys()];
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.ctx.db.query(sql`delete from refresh_marks`);
  await world.ctx.db.query(sql`delete from upkeep where task = 'asked lists'`);
  world.simulator.meter.reset();
});

const pass = (ms: number) => passRound(world, ms, markResourceListsDue);
const reader = () => createApiToken(world.ctx, { userId: 1, canWrite: false, hourlyLimit: 1_000 });
const marked = () => world.ctx.db.count(sql`select from refresh_marks where 'jobs' = any(keys)`);
/** Asks for the jobs of these runs, which the mirror does not hold. */
async function ask(url: string, token: string, some: readonly number[]): Promise<number[]> {
  const statuses = [];
  for (const id of some)
    statuses.push((await askAt(url, "GET", `/repos/${world.first}/actions/runs/${id}/jobs`, { token })).status);
  return statuses;
}
const sibling = (forwarding: "off" | "all") =>
  world.openSibling({
    ...{ PASS_THROUGH: forwarding, UPSTREAM_READS_PER_CALLER: "3", UPSTREAM_READS: "5" },
    REDIS_PREFIX: testRedis().prefix,
  });

test("one of Tain's own tokens has no more of them read than its share, and all together no more than theirs", async () => {
  const url = await sibling("off");
  await ask(url, await reader(), runs.slice(0, 10));
  expect(await marked()).toBe(3);
  await ask(url, await reader(), runs.slice(10, 20));
  expect(await marked()).toBe(5);
});

test("a request that is refused since the share is spent has nothing read later", async () => {
  const url = await sibling("all");
  const statuses = await ask(url, await reader(), runs.slice(0, 10));
  expect(statuses.filter((status) => status === 403).length).toBeGreaterThan(7);
  const { [JOBS]: forwarded } = world.simulator.meter.read().routes;
  expect((await marked()) + (forwarded?.requests ?? 0)).toBe(3);
});

test("however many callers pay, they are read at a pace, and each once its turn has come", async () => {
  await ask(world.url, await reader(), runs);
  expect(await marked()).toBe(runs.length);
  // They were answered meanwhile.
  world.simulator.meter.reset();
  await pass(60_000);
  const requests = () => world.simulator.meter.read().routes[JOBS]?.requests ?? 0;
  expect(requests()).toBe(8);
  for (let minutes = 1; minutes < 30 && (await marked()) > 0; minutes++) {
    await pass(60_000);
    expect(requests()).toBeLessThanOrEqual(8 + 7 * minutes);
  }
  expect(await marked()).toBe(0);
  expect(requests()).toBe(runs.length);
});
