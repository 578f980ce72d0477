/** A new pull request is in the lists of issues by an id that no webhook tells. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { createPull, editPull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { findUnheldRows } from "../../src/sync/catch-up/newest-changes.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { type ToldRepository, tell } from "../events/tell.ts";
import { askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTE = 60_000;

let world: TestWorld;
let repositories: Repository[];
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 12, repositories: 3, issues: 12, pulls: 3, people: 6 });
      const last = [...upstream.repositories.values()].filter(({ fork }) => !fork).at(-1);
      if (last) last.visibility = "private";
    },
  });
  const { simulator } = world;
  repositories = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  const names = repositories.map(nameOf);
  await world.mirror(...names);
  await world.listen(...names);
  await world.settleMarks();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const nameOf = (repository: Repository) => world.simulator.world.fullName(repository);

let opened = 0;
function open(repository: Repository): number {
  const { world: upstream } = world.simulator;
  const headRef = `feature-${++opened}`;
  pushBranch(upstream, repository.ownerId, repository, headRef);
  const { ownerId: by, defaultBranch: baseRef } = repository;
  const from = { repository, headRepository: repository, headRef, baseRef };
  return createPull(upstream, by, { ...from, title: `New ${opened}`, body: null }).number;
}

async function pass(ms: number): Promise<void> {
  world.advance(ms);
  (world.simulator.world.clock as SettableClock).advance(ms);
  await world.ctx.queues.refresh.clean(0, 1_000, "delayed");
  await dispatchMarks(world.ctx);
  await world.settle();
}

/** No moment is left until so much later. */
async function spend(ms: number, task = "issue sides", everyMs = 240_000): Promise<void> {
  const fullAt = new Date(world.ctx.clock.now().getTime() + 7 * everyMs + ms);
  await world.ctx.db.query(sql`insert into upkeep (task, done_until) values (${task}, ${fullAt})
    on conflict (task) do update set done_until = excluded.done_until`);
}

async function isListed(repository: Repository, number: number): Promise<boolean> {
  const { body } = await world.get(`/repos/${nameOf(repository)}/issues?state=all&per_page=100`);
  return (body as { number: number }[]).some((row) => row.number === number);
}

async function isHeld({ id }: Repository, number: number): Promise<boolean> {
  const held = sql`select from issues where repository_id = ${id} and number = ${number} and id is not null`;
  return (await world.ctx.db.count(held)) > 0;
}

function asked(): Record<string, number> {
  const { routes } = world.simulator.meter.read();
  return Object.fromEntries(
    Object.entries(routes).flatMap(([route, { charged }]) => (/issues|search/.test(route) ? [[route, charged]] : [])),
  );
}

const ALONE = "GET /repos/:owner/:repo/issues/:number";
const SEARCH = "GET /search/issues";

test("a single one is asked for at once", async () => {
  const [first] = repositories;
  if (!first) throw new Error("There is no repository");
  await spend(-8 * 240_000);
  world.simulator.meter.reset();
  const number = open(first);
  await world.settle();
  expect(await isListed(first, number)).toBe(true);
  expect(asked()).toEqual({ [ALONE]: 1 });
});

test("whoever reads a list that lacks some has them asked for at once, though the pace is spent, and is told of them", async () => {
  const [first] = repositories;
  if (!first) throw new Error("There is no repository");
  await spend(2 * MINUTE);
  world.simulator.meter.reset();
  const number = open(first);
  await world.settle();
  expect(asked()).toEqual({});
  const list = `/repos/${nameOf(first)}/issues?per_page=3`;
  const lacking = await world.get(list);
  expect(lacking.body).not.toContainEqual(expect.objectContaining({ number }));
  expect(lacking.headers.get("x-tain-hint")).toContain(` ${number}.`);
  await world.settle();
  expect(asked()).toEqual({ [ALONE]: 1 });
  const whole = await world.get(list);
  expect(whole.body).toContainEqual(expect.objectContaining({ number }));
  expect(whole.headers.get("x-tain-hint")).toBeNull();
});

test("only who sees both issues and pull requests is told of them, and who cannot have them asked for is not told so", async () => {
  const [first] = repositories;
  const hidden = repositories.at(-1);
  if (!first || !hidden) throw new Error("There are no repositories");
  const reader = await createApiToken(world.ctx, {
    userId: hidden.ownerId,
    canWrite: false,
    permissions: ["issues:read"],
  });
  await spend(2 * MINUTE);
  world.simulator.meter.reset();
  const [shown, unseen] = [open(first), open(hidden)];
  await world.settle();
  const told = async (repository: Repository, token: string | null) => {
    const answer = await askAt(world.url, "GET", `/repos/${nameOf(repository)}/issues?per_page=2`, { token });
    expect(answer.status).toBe(200);
    return answer.headers.get("x-tain-hint");
  };
  expect(await told(first, null)).toBe(`Upstream has still to be asked for what is not listed yet: ${shown}.`);
  expect(await told(hidden, reader)).toBeNull();
  await world.settle();
  expect(asked()).toEqual({});
  expect(await told(hidden, world.token)).toBe(`Upstream is asked for what is not listed yet: ${unseen}.`);
  expect(await told(first, world.token)).toBe(`Upstream is asked for what is not listed yet: ${shown}.`);
  await world.settle();
  expect(asked()).toEqual({ [SEARCH]: 1 });
});

test("a read hastens what upstream does not show only for a while, whoever repeats it", async () => {
  const { ctx, simulator } = world;
  const [own] = repositories;
  if (!own) throw new Error("There is no repository");
  await spend(8 * MINUTE);
  const name = nameOf(own);
  const [shown] = (await world.get(`/repos/${name}/pulls?state=all`)).body as { id: number; number: number }[];
  const repository = (await world.get(`/repos/${name}`)).body as ToldRepository;
  const pull = { ...shown, id: 4_100_000_000, number: 80_000 };
  const payload = { action: "opened", number: pull.number, pull_request: pull, repository, sender: repository.owner };
  await tell(world, { event: "pull_request", payload });
  await world.settle();
  simulator.meter.reset();
  for (let turn = 0; turn < 12; turn++) {
    await world.get(`/repos/${name}/issues?per_page=${turn + 4}`);
    await pass(10_000);
  }
  const { routes } = simulator.meter.read();
  expect(routes[ALONE]?.requests).toBeLessThanOrEqual(5);
  await ctx.db.query(sql`delete from refresh_marks where kind = 'issue' and key = ${pull.number}`);
  await ctx.db.query(sql`delete from pull_requests where number = ${pull.number}`);
});

/** Tells of pull requests that are not at upstream, from this number on. */
async function makeUp(at: Repository, number: number, count = 1): Promise<void> {
  const name = nameOf(at);
  const [shown] = (await world.get(`/repos/${name}/pulls?state=all`)).body as object[];
  const repository = (await world.get(`/repos/${name}`)).body as ToldRepository;
  for (let made = number; made < number + count; made++) {
    const pull = { ...shown, id: 4_000_000_000 + made, number: made };
    const payload = { action: "opened", number: made, pull_request: pull, repository, sender: repository.owner };
    await tell(world, { event: "pull_request", payload });
  }
  await world.settle();
}

async function forgetMadeUp(): Promise<void> {
  await world.ctx.db.query(sql`delete from refresh_marks where kind = 'issue' and key > 10000`);
  await world.ctx.db.query(sql`delete from pull_requests where number > 10000`);
}

test("whoever makes up pull requests and reads a list for each has upstream asked at a pace, and no faster", async () => {
  const [own] = repositories;
  if (!own) throw new Error("There is no repository");
  await spend(8 * MINUTE);
  await world.ctx.db.query(sql`delete from upkeep where task = 'hastened issue sides'`);
  world.simulator.meter.reset();
  const began = world.ctx.clock.now();
  for (let turn = 0; turn < 30; turn++) {
    await makeUp(own, 81_000 + turn);
    await world.get(`/repos/${nameOf(own)}/issues?per_page=${turn + 4}`);
    await pass(2_000);
  }
  const { [ALONE]: alone = 0, [SEARCH]: searches = 0 } = asked();
  const passedMs = world.ctx.clock.now().getTime() - began.getTime();
  await forgetMadeUp();
  expect(alone + searches).toBeGreaterThan(0);
  // Eight at once, and two a minute; and one search for those that nobody reads for.
  expect(alone + searches).toBeLessThanOrEqual(8 + Math.ceil(passedMs / 30_000) + 1);
});

test("a token of Tain's pays for what it hastens, and hastens no more than its share", async () => {
  const [own] = repositories;
  if (!own) throw new Error("There is no repository");
  await spend(2 * MINUTE);
  await spend(25_000, "hastened issue sides", 30_000);
  const token = await createApiToken(world.ctx, { userId: 1, canWrite: false, hourlyLimit: 1_000 });
  const url = await world.openSibling({ UPSTREAM_READS_PER_CALLER: "2", REDIS_PREFIX: testRedis().prefix });
  const hastened = () => world.ctx.db.count(sql`select from refresh_marks where 'read' = any(keys)`);
  for (let turn = 0; turn < 4; turn++) {
    const number = open(own);
    await world.settle();
    const { headers } = await askAt(url, "GET", `/repos/${nameOf(own)}/issues?per_page=${turn + 4}`, { token });
    expect(headers.get("x-tain-hint")).toContain(String(number));
  }
  const count = await hastened();
  await pass(4 * MINUTE);
  expect(count).toBe(2);
});

test("many in repositories of several owners cost one search once the pace allows it, and are shown as upstream shows them", async () => {
  await spend(2 * MINUTE);
  world.simulator.meter.reset();
  const pulls = repositories.flatMap((repository) => [1, 2, 3].map(() => ({ repository, number: open(repository) })));
  await world.settle();
  expect(asked()).toEqual({});
  for (const { repository, number } of pulls) {
    // Not by a list: whoever reads one does not wait.
    expect(await isHeld(repository, number)).toBe(false);
    expect((await world.get(`/repos/${nameOf(repository)}/pulls/${number}`)).status).toBe(200);
  }
  await pass(3 * MINUTE);
  expect(asked()).toEqual({ [SEARCH]: 1 });
  for (const { repository, number } of pulls) expect(await isListed(repository, number)).toBe(true);
  expect(await world.ctx.db.count(sql`select from refresh_marks where kind = 'issue'`)).toBe(0);
  for (const { repository, number } of pulls) {
    const path = `/repositories/${repository.id}/issues/${number}`;
    const [ours, theirs] = [(await world.get(path)).body, await upstreams(path)];
    expect(ours).toEqual(theirs);
  }
});

test("one that was opened before more than a search shows is found by the second search", async () => {
  const [first, second] = repositories;
  if (!first || !second) throw new Error("There are no two repositories");
  await spend(3 * MINUTE);
  const oldest = open(first);
  await world.settle();
  await pass(2 * MINUTE);
  await spend(3 * MINUTE);
  const newer = Array.from({ length: 101 }, () => open(second));
  await world.settle();
  world.simulator.meter.reset();
  while ((asked()[SEARCH] ?? 0) < 2) await pass(MINUTE);
  expect(await isHeld(first, oldest)).toBe(true);
  for (const number of newer) while (!(await isHeld(second, number))) await pass(MINUTE);
});

test("who closed what a search found is asked with others where no webhook told it", async () => {
  const [repository] = repositories;
  if (!repository) throw new Error("There is no repository");
  const { simulator } = world;
  const { ownerId: by } = repository;
  await spend(2 * MINUTE);
  simulator.setFaults({ lacksEvents: ["pull_request", "issues"] });
  const pulls = [1, 2, 3].map(() => pullOf(repository, open(repository)));
  await pass(MINUTE);
  const [closed] = pulls;
  if (closed) editPull(simulator.world, by, closed, { state: "closed" });
  simulator.setFaults({});
  for (const pull of pulls) editPull(simulator.world, by, pull, { title: `${pull.title}, edited` });
  await world.settle();
  simulator.meter.reset();
  await pass(3 * MINUTE);
  await pass(MINUTE);
  expect(asked()).toEqual({ [SEARCH]: 1 });
  for (const { number } of pulls) {
    const path = `/repositories/${repository.id}/issues/${number}`;
    expect((await world.get(path)).body).toEqual(await upstreams(path));
  }
  expect(await world.ctx.db.count(sql`select from refresh_marks where kind = 'issue'`)).toBe(0);
});

function pullOf(repository: Repository, number: number): PullIssue {
  const issue = world.simulator.world.issue(repository, number);
  if (!issue || !isPull(issue)) throw new Error(`There is no pull request ${number}`);
  return issue;
}

async function upstreams(path: string): Promise<unknown> {
  const { url } = world.simulator;
  const headers = { authorization: `token ${world.ctx.config.upstreamTokens[0]}`, "user-agent": "test" };
  const text = await (await fetch(url + path, { headers })).text();
  return JSON.parse(text.replaceAll(url, world.url));
}

test("whoever makes up pull requests in one repository takes no turn of another's", async () => {
  const { ctx, simulator } = world;
  const [own, other] = repositories;
  if (!own || !other) throw new Error("There are no two repositories");
  await spend(2 * MINUTE);
  const name = nameOf(own);
  const [shown] = (await world.get(`/repos/${name}/pulls?state=all`)).body as { id: number; number: number }[];
  const repository = (await world.get(`/repos/${name}`)).body as ToldRepository;
  for (let made = 1; made <= 5; made++) {
    const pull = { ...shown, id: 4_000_000_000 + made, number: 90_000 + made };
    const payload = { action: "opened", number: pull.number, pull_request: pull, repository, sender: repository.owner };
    await tell(world, { event: "pull_request", payload });
  }
  await world.settle();
  // Each is old enough to be asked for by itself.
  const long = new Date(ctx.clock.now().getTime() - 60 * MINUTE);
  const made = sql`kind = 'issue' and key > 90000`;
  expect(await ctx.db.count(sql`update refresh_marks set asked_at = ${long}, keys_at = ${long} where ${made}`)).toBe(5);
  const number = open(other);
  await world.settle();
  simulator.meter.reset();
  // Fewer turns than there are made-up ones.
  for (let turn = 0; turn < 5 && !(await isListed(other, number)); turn++) await pass(3 * MINUTE);
  expect(await isListed(other, number)).toBe(true);
  expect(await ctx.db.count(sql`select from refresh_marks where ${made}`)).toBeGreaterThan(0);
  for (let turn = 0; turn < 20; turn++) await pass(3 * MINUTE);
  expect(await ctx.db.count(sql`select from refresh_marks where ${made}`)).toBe(0);
});

test("while it is awaited, a sweep misses nothing but what is awaited", async () => {
  const { ctx, simulator } = world;
  const [repository] = repositories;
  if (!repository) throw new Error("There is no repository");
  await spend(2 * MINUTE);
  const number = open(repository);
  await world.settle();
  const seconds = simulator.world.issue(repository, number)?.updatedAt ?? 0;
  const unheldAt = async (at: number) => {
    const shown = {
      r: repository.id,
      kind: "pull_request",
      n: number,
      at: new Date(at * 1_000).toISOString(),
    } as const;
    return (await findUnheldRows(ctx.db, [shown])).length;
  };
  expect([await unheldAt(seconds), await unheldAt(seconds + 60)]).toEqual([0, 1]);
  await world.settleMarks();
});

test("what no search shows is asked for by itself after half an hour", async () => {
  const { simulator, ctx } = world;
  await spend(-8 * 240_000);
  simulator.setFaults({ http: [{ match: "GET /search/issues", kind: "refusal", as: "permission" }] });
  const pulls = repositories.map((repository) => ({ repository, number: open(repository) }));
  await world.settle();
  await pass(MINUTE);
  simulator.meter.reset();
  for (let minutes = 0; minutes < 60; minutes += 5) await pass(5 * MINUTE);
  expect(asked()[ALONE]).toBe(pulls.length);
  for (const { repository, number } of pulls) expect(await isListed(repository, number)).toBe(true);
  expect(await ctx.db.count(sql`select from refresh_marks where kind = 'issue'`)).toBe(0);
  simulator.setFaults({});
});
