import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { rowsOf } from "../../src/json.ts";
import { storeMarks } from "../../src/mirror/store/marks.ts";
import { pushToPull } from "../../src/simulator/changes/pulls.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { compare } from "../support/comparison.ts";
import { openTapped } from "../support/upstream-tap.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** How long upstream takes, once it was asked, to work out whether a pull request can be merged. */
const JOB_MS = 3_600_000;
const PULLS = 30;

interface Asked {
  world: TestWorld;
  repository: Repository;
  open: PullIssue[];
  differences(): Promise<string[]>;
}

/** A mirror without a webhook. It has asked for everything, and has given up asking what upstream does not know yet. */
async function openUnknowing(): Promise<Asked> {
  const world = await openWorld({
    simulator: { worldOptions: { mergeableDelayMs: JOB_MS } },
    fill: ({ world: upstream }) => {
      const [repository] = generateWorld(upstream, {
        seed: 11,
        repositories: 1,
        issues: 10,
        pulls: PULLS,
        people: 8,
      }).repositories;
      // Upstream works the commit of the test merge out together with the rest.
      if (repository) for (const { pull } of openPulls(repository)) pull.mergeCommitSha = null;
    },
  });
  await world.mirror(world.first);
  await world.settleMarks();
  world.advance(JOB_MS);
  const [repository] = world.simulator.world.repositories.values();
  if (!repository) throw new Error("The generated repository is not there");
  const open = openPulls(repository);
  if (open.filter(({ pull }) => pull.mergeable).length < 2) throw new Error("No pull requests can be merged");
  return {
    world,
    repository,
    open,
    differences: async () => (await compare(world.ctx, world.simulator, world.first)).differences,
  };
}

/** Many tests share this mirror, and each goes on where the one before it stopped. */
let shared: Asked;
beforeAll(async () => {
  shared = await openUnknowing();
});
afterAll(async () => await shared?.world[Symbol.asyncDispose]());

function openPulls(repository: Repository): PullIssue[] {
  return [...repository.rows.issuesByCreated.ascending()].filter(
    (one): one is PullIssue => one.pull !== null && one.state === "open",
  );
}

/** Has upstream forget, as it does when nobody has asked for a long time. */
function forget(open: readonly PullIssue[]): void {
  for (const { pull } of open) pull.mergeableKnownAt = null;
}

/** Puts the mirror back to where it has never known. */
async function unlearn({ ctx }: TestWorld): Promise<void> {
  await ctx.db.query(sql`update pull_requests set mergeable = null,
    detail = jsonb_set(detail::jsonb, '{mergeable}', 'null')::json where state = 'open'`);
}

function endJobs({ simulator }: TestWorld): void {
  (simulator.world.clock as SettableClock).advance(JOB_MS);
}

test("what upstream does not know is asked again a few times, all of it for a point, and then left alone", async () => {
  const { world, open } = shared;
  const rows = await world.ctx.db.query(sql`select from pull_requests where mergeable is null and state = 'open'`);
  expect(rows).toHaveLength(open.length);
  const marks = await world.ctx.db.query(sql`select * from refresh_marks`);
  expect(marks).toEqual([]);
  const meter = world.simulator.meter.read();
  expect(meter.routes["GET /repositories/:id/pulls/:number"]).toBeUndefined();
  // Points of the copy itself: the details, and the first question about the pull requests whose mergeability is
  // unknown.
  expect(meter.points).toBeLessThanOrEqual(2 + 5);
});

test("an audit that repairs nothing asks nothing more", async () => {
  const { world, repository, open } = shared;
  forget(open);
  await audit(world.ctx, { repositoryId: repository.id, repair: false, signal: new AbortController().signal });
  const rows = await world.ctx.db.query(sql`select * from refresh_marks`);
  expect(rows).toEqual([]);
});

test("what an audit was the first to ask for is asked again once upstream has had time, the merge commit included", async () => {
  const { world, repository, open, differences } = shared;
  forget(open);
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
  endJobs(world);
  expect((await differences()).length).toBeGreaterThan(0);
  world.simulator.meter.reset();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
  expect(world.simulator.meter.read()).toMatchObject({ points: 1, charged: 1 });
});

test("pull requests that webhooks show before it is known are asked about together, and not one by one", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 11, repositories: 1, issues: 4, pulls: PULLS }),
  });
  const { simulator } = world;
  await world.mirror(world.first);
  await world.listen(world.first);
  await world.settleMarks();
  const [repository] = simulator.world.repositories.values();
  if (!repository) throw new Error("The generated repository is not there");
  const pushed = openPulls(repository).slice(0, 5);
  if (pushed.length < 5) throw new Error("Too few pull requests are open");
  for (const one of pushed) pushToPull(simulator.world, repository.ownerId, one);
  await world.settle();
  const unknown = async () => {
    const rows = await world.ctx.db.query<{ number: number }>(sql`
      select number from pull_requests where mergeable is null and state = 'open' order by number`);
    return rows.map(({ number }) => number);
  };
  expect(await unknown()).toEqual(expect.arrayContaining(pushed.map(({ number }) => number)));
  simulator.meter.reset();
  await world.settleMarks();
  expect(await unknown()).toEqual([]);
  const meter = simulator.meter.read();
  expect(meter.routes["GET /repositories/:id/pulls/:number"]).toBeUndefined();
  expect(meter.points).toBe(1);
  expect((await compare(world.ctx, simulator, world.first)).differences).toEqual([]);
});

test("a refresh that comes long after its reason still has its own question answered", async () => {
  const { world, repository, open, differences } = shared;
  endJobs(world);
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
  await world.settleMarks();
  expect(await differences()).toEqual([]);
  const [one] = open.filter(({ pull }) => pull.mergeable);
  if (!one) throw new Error("No pull request can be merged");
  forget([one]);
  await world.ctx.db.query(sql`
    insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
      values ('pull_request', ${repository.id}, ${one.number}, ${world.ctx.clock.now()}, ${world.ctx.clock.now()})`);
  world.advance(JOB_MS);
  await new Refreshes(world.ctx).refresh({ kind: "pull_request", repositoryId: repository.id, key: one.number });
  endJobs(world);
  expect((await differences()).length).toBeGreaterThan(0);
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

test("what nobody could ask about for a long time is asked again after the first time, and not given up", async () => {
  const { world, repository, open, differences } = shared;
  endJobs(world);
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
  await world.settleMarks();
  expect(await differences()).toEqual([]);
  forget(open);
  await unlearn(world);
  await world.ctx.db.query(sql`
    insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
      values ('mergeability', ${repository.id}, ${repository.id}, ${world.ctx.clock.now()}, ${world.ctx.clock.now()})`);
  world.advance(JOB_MS);
  // Upstream begins to compute only now.
  await new Refreshes(world.ctx).refresh({ kind: "mergeability", repositoryId: repository.id, key: repository.id });
  endJobs(world);
  expect((await differences()).length).toBeGreaterThan(0);
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

test("a merge commit that a list does not show yet is asked for where all else is known", async () => {
  const { world, repository, open, differences } = shared;
  endJobs(world);
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
  await world.settleMarks();
  const [one] = open.filter(({ pull }) => pull.mergeable);
  await world.ctx.db.query(sql`update pull_requests set merge_commit_sha = null,
      document = jsonb_set(document::jsonb, '{merge_commit_sha}', 'null')::json where number = ${one?.number ?? null}`);
  expect((await differences()).length).toBe(1);
  await world.ctx.db.query(sql`
    insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
      values ('mergeability', ${repository.id}, ${repository.id}, ${world.ctx.clock.now()}, ${world.ctx.clock.now()})`);
  world.advance(60_000);
  await new Refreshes(world.ctx).refresh({ kind: "mergeability", repositoryId: repository.id, key: repository.id });
  expect(await differences()).toEqual([]);
});

test("a catch-up that finds a pull request changed asks again, and so does a write", async () => {
  const { world, open, differences } = await openUnknowing();
  await using _ = world;
  const { simulator } = world;
  const view = openView({
    world: simulator.world,
    apiUrl: simulator.url,
    htmlUrl: simulator.htmlUrl,
    roleOf: () => "admin",
  });
  forget(open);
  const [first, second] = open.filter(({ pull }) => pull.mergeable);
  mutate(simulator.world, view, { op: "editPull", repository: world.first, number: first?.number, title: "anew" });
  await world.catchUp();
  const write = await fetch(`${world.url}/repos/${world.first}/pulls/${second?.number}`, {
    method: "PATCH",
    headers: { authorization: `token ${world.token}`, "user-agent": "test" },
    body: JSON.stringify({ title: "through the mirror" }),
  });
  expect(write.status).toBe(200);
  endJobs(world);
  await world.settleMarks();
  const about = (await differences()).filter((line) => /mergeab|merge_commit/.test(line));
  const numbers = [first, second].map((one) => `pull_request ${one?.number} `);
  expect(about.filter((line) => numbers.some((start) => line.startsWith(start)))).toEqual([]);
});

test.each([
  { is: "no repository", change: { repository: null }, fails: false },
  { is: "a repository without its id", change: { repository: { databaseId: null } }, fails: false },
  { is: "no state", change: { mergeStateStatus: null }, fails: true },
])("a pull request that upstream shows with $is is not believed", async ({ change, fails }) => {
  const { world, repository, open } = shared;
  const { ctx } = world;
  await unlearn(world);
  const now = ctx.clock.now();
  await storeMarks(ctx.db, [
    { kind: "mergeability", repositoryId: repository.id, key: repository.id, askedAt: now, notBefore: now },
  ]);
  await using tapped = await openTapped(ctx);
  let changed = 0;
  tapped.tap.changeData = ({ mergeability0 }) => {
    for (const node of rowsOf(mergeability0)) {
      Object.assign(node, change);
      changed += 1;
    }
  };
  const refresh = new Refreshes(tapped.ctx).refresh({
    kind: "mergeability",
    repositoryId: repository.id,
    key: repository.id,
  });
  if (fails) await expect(refresh).rejects.toMatchObject({ name: "UpstreamUnavailableError", outage: "unreadable" });
  // It may be another repository's, so this one is asked about alone, and that answer counts.
  else expect(await refresh).toBe("merged");
  expect(changed).toBe(open.length);
  const rows = await ctx.db.query(sql`select from pull_requests where mergeable is null and state = 'open'`);
  expect(rows).toHaveLength(fails ? open.length : 0);
});

test("a repository whose pull requests upstream does not show any more is not asked about without end", async () => {
  const { world, repository, open } = shared;
  await unlearn(world);
  forget(open);
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
  const view = openView({
    world: world.simulator.world,
    apiUrl: world.simulator.url,
    htmlUrl: world.simulator.htmlUrl,
    roleOf: () => "admin",
  });
  const marks = () => world.ctx.db.query(sql`select * from refresh_marks where kind = 'mergeability'`);
  expect(await marks()).not.toEqual([]);
  mutate(world.simulator.world, view, { op: "deleteRepository", repository: world.first });
  await world.settleMarks();
  expect(await marks()).toEqual([]);
});

test("what is due of several repositories at one moment is asked for a point, and what cannot be asked delays no other", async () => {
  await using world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 11, repositories: 3, issues: 6, pulls: PULLS }),
  });
  const { ctx, simulator } = world;
  const repositories = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  await addSelections(
    ctx,
    repositories.map((one) => simulator.world.fullName(one)),
  );
  await resolveSelections(ctx);
  for (const { id } of repositories) await backfill(ctx, { repositoryId: id }, new AbortController().signal);
  const ids = repositories.filter((one) => openPulls(one).length > 0).map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(1);
  const doubt = async () => {
    await unlearn(world);
    await ctx.db.query(sql`delete from refresh_marks`);
    const now = ctx.clock.now();
    await storeMarks(
      ctx.db,
      ids.map((id) => ({ kind: "mergeability", repositoryId: id, key: id, askedAt: now, notBefore: now })),
    );
    world.advance(60_000);
    simulator.meter.reset();
  };
  const refreshes = new Refreshes(ctx);
  const askAll = () =>
    Promise.all(ids.map((id) => refreshes.refresh({ kind: "mergeability", repositoryId: id, key: id })));
  await doubt();
  // Mostly one job takes all of them. Jobs that come at the same moment may take some each.
  expect(await askAll()).toContain("merged");
  expect(simulator.meter.read()).toMatchObject({ points: 1 });
  expect(await ctx.db.query(sql`select from refresh_marks`)).toEqual([]);

  await doubt();
  const [, own] = ids;
  await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from refresh_marks where repository_id = ${own ?? null} for update`);
    expect(await refreshes.refresh({ kind: "mergeability", repositoryId: own ?? 0, key: own ?? 0 })).toBe("kept");
  });
  const left = await ctx.db.query<{ id: number }>(sql`select repository_id::float8 as id from refresh_marks`);
  expect(left.map(({ id }) => id)).toEqual([own]);

  await doubt();
  const [away] = ids;
  await ctx.db.query(sql`update repository_syncs set state = 'gone' where repository_id = ${away ?? null}`);
  await askAll();
  expect(await ctx.db.query(sql`select from refresh_marks`)).toEqual([]);
  const unknown = await ctx.db.query<{ id: number }>(sql`
    select distinct repository_id::float8 as id from pull_requests where mergeable is null and state = 'open'`);
  expect(unknown.map(({ id }) => id)).toEqual([away]);

  // Of very many marks one job takes its own, and not more than five hundred in all.
  await ctx.db.query(sql`insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
    select 'mergeability', n, n, ${ctx.clock.now()}, ${ctx.clock.now()} from generate_series(1, 600) n`);
  await refreshes.refresh({ kind: "mergeability", repositoryId: 600, key: 600 });
  const rest = await ctx.db.query<{ id: number }>(
    sql`select repository_id::float8 as id from refresh_marks order by 1`,
  );
  expect(rest).toHaveLength(100);
  expect(rest.map(({ id }) => id)).not.toContain(600);
});
