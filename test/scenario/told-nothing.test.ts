import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { registerHook } from "../../src/cli/hooks/repository-hooks.ts";
import { checkApp, createCheckRun, createStatus } from "../../src/simulator/changes/checks.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { markChecksDue, markListsDue } from "../support/due.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Tain registered this hook. Upstream's own list of deliveries proves that the hook has told all there was to tell.

let world: TestWorld;
let repository: Repository;

const HOUR = 3_600_000;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "checks,commits,threads" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 2, pulls: 8 });
      for (const one of filled.repositories.values()) addCode(filled, one, {}, 7, filled.now());
    },
  });
  const [owner = "", name = ""] = world.first.split("/");
  const found = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  await world.mirror(world.first);
  expect(await registerHook(world.ctx, { id: repository.id, owner, name }, `${world.url}/webhooks`)).toBeNull();
  // Tain knows the hook from its first delivery on.
  await touch();
  await sweep(world.ctx);
  await world.settleMarks();
  // Afterwards no check run is under way, so Tain asks about none for that reason.
  await pass(2 * HOUR);
  await pass(2 * HOUR);
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function touch(): Promise<void> {
  const [issue] = repository.rows.issuesByCreated.ascending();
  if (!issue) throw new Error("There is no issue");
  editIssue(world.simulator.world, repository.ownerId, issue, { title: `${issue.title}!` });
  await world.settle();
}

/** Lets the time pass, hour by hour. After each hour it does what the schedulers would do. */
async function pass(ms: number, { isChecked = true } = {}): Promise<void> {
  const { ctx } = world;
  for (let left = ms; left > 0; left -= HOUR) {
    world.advance(HOUR);
    (world.simulator.world.clock as SettableClock).advance(HOUR);
    if (isChecked) await checkDeliveries(ctx);
    await world.settle();
    await markChecksDue(ctx);
    await markListsDue(ctx);
    await ctx.queues.refresh.clean(0, 1_000, "delayed");
    await dispatchMarks(ctx);
    await world.settle();
  }
}

/** What upstream charges while this time passes. */
async function costOf(ms: number, options?: { isChecked: boolean }): Promise<{ requests: number; points: number }> {
  world.simulator.meter.reset();
  await pass(ms, options);
  const buckets = Object.values(world.simulator.meter.read().callers);
  return {
    requests: buckets.reduce((sum, { core }) => sum + (core?.charged ?? 0), 0),
    points: buckets.reduce((sum, { graphql }) => sum + (graphql?.points ?? 0), 0),
  };
}

const pointsOf = async (ms: number, options?: { isChecked: boolean }) => (await costOf(ms, options)).points;

function openPull(): PullIssue {
  const pull = [...repository.rows.issuesByCreated.ascending()].find(
    (one): one is PullIssue => isPull(one) && one.state === "open",
  );
  return pull ?? expect.fail("No pull request is open");
}

/**
 * Makes a check run whose webhook is lost. With `drop` upstream's list of deliveries has no trace of it; with `fail`
 * the list says that it failed.
 */
async function makeRun(webhooks: { drop: 1 } | { fail: 1 }): Promise<void> {
  const { simulator } = world;
  simulator.setFaults({ webhooks });
  const headSha = openPull().pull.head.sha;
  const app = checkApp(simulator.world, "linter");
  createCheckRun(simulator.world, repository.ownerId, {
    repository,
    headSha,
    app,
    name: "drop" in webhooks ? "traceless" : "failed",
    conclusion: "failure",
  });
  await simulator.quiet();
  simulator.setFaults({});
}

test("where nothing was told, and nothing was to be told, hours cost nothing", async () => {
  expect(await costOf(5 * HOUR)).toEqual({ requests: 0, points: 0 });
});

test("a head is asked about every few minutes while a status is pending, and not once another has taken its place", async () => {
  const { world: upstream } = world.simulator;
  const status = { repository, sha: openPull().pull.head.sha, context: "ci" };
  createStatus(upstream, repository.ownerId, { ...status, state: "pending" });
  await pass(2 * HOUR);
  expect(await pointsOf(2 * HOUR)).toBeGreaterThan(1);
  createStatus(upstream, repository.ownerId, { ...status, state: "success" });
  await pass(2 * HOUR);
  expect(await pointsOf(2 * HOUR)).toBe(0);
});

test("whatever is told has all confirmed within the hour, and so has a hook of which nobody can say what it sent", async () => {
  await touch();
  expect(await pointsOf(2 * HOUR)).toBeGreaterThan(0);
  await pass(2 * HOUR);
  expect(await pointsOf(2 * HOUR)).toBe(0);
  expect(await pointsOf(2 * HOUR, { isChecked: false })).toBeGreaterThan(0);
  await pass(2 * HOUR);
  expect(await pointsOf(2 * HOUR)).toBe(0);
});

test.each([
  ["the hook sends less than is needed", sql`update hook_subscriptions set events = array_remove(events, 'check_run')`],
  [
    "our token is shown no hook",
    sql`insert into hook_checks (repository_id, hook_id, checked_until)
    select repository_id, 0, now() + interval '10 years' from repository_syncs`,
  ],
  [
    "the list of deliveries cannot be read",
    sql`insert into problems (task, key, repository_id, cause, problem, failures, since, failed_at, next_at, credentials)
    select 'hook', repository_id || '/1', repository_id, 'refused', 'no', 1, now(), now(), now() + interval '10 years', '' from repository_syncs`,
  ],
  ["nobody has looked whether it changed", sql`delete from sweeps`],
])("the hour is kept where %s", async (_what, change) => {
  const { db } = world.ctx;
  const tables = ["hook_subscriptions", "hook_checks", "problems", "sweeps"];
  for (const table of tables) {
    await db.query(sql`drop table if exists ${sql.identifier(`kept_${table}`)}`);
    await db.query(sql`create table ${sql.identifier(`kept_${table}`)} as table ${sql.identifier(table)}`);
  }
  await db.query(change);
  expect(await pointsOf(2 * HOUR)).toBeGreaterThan(0);
  for (const table of tables) {
    await db.query(sql`delete from ${sql.identifier(table)}`);
    await db.query(sql`insert into ${sql.identifier(table)} table ${sql.identifier(`kept_${table}`)}`);
  }
  expect(await pointsOf(2 * HOUR)).toBe(0);
});

test("a delivery that upstream lists and that never came has all confirmed with the next check of deliveries", async () => {
  await makeRun({ fail: 1 });
  expect(await pointsOf(HOUR)).toBeGreaterThan(0);
  await pass(2 * HOUR);
  expect(await pointsOf(2 * HOUR)).toBe(0);
});

test("what upstream lost without a trace is found within a day", async () => {
  const { db, clock } = world.ctx;
  await makeRun({ drop: 1 });
  expect(await pointsOf(2 * HOUR)).toBe(0);
  const dayBefore = new Date(clock.now().getTime() - 24 * HOUR);
  await db.query(
    sql`update repository_syncs set checks_confirmed_at = ${dayBefore}, lists_confirmed_at = ${dayBefore}`,
  );
  expect(await pointsOf(HOUR)).toBeGreaterThan(0);
  const sha = openPull().pull.head.sha;
  expect(await db.count(sql`select from check_runs where head_sha = ${sha} and name = 'traceless'`)).toBe(1);
});
