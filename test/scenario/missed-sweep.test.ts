import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { rowsOf } from "../../src/json.ts";
import { createIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { deleteLabel } from "../../src/simulator/changes/labels.ts";
import { archiveRepository } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { probeLists, probesFor } from "../../src/sync/catch-up/list-ends.ts";
import { findUnheldRows } from "../../src/sync/catch-up/newest-changes.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import type { Upstream } from "../../src/upstream/protocol/upstream.ts";
import { changed } from "../support/changed-upstream.ts";
import { pass } from "../support/paced.ts";
import { openTapped } from "../support/upstream-tap.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const { signal } = new AbortController();

const openWithoutWorkers = ({ repositories }: { repositories: number }) =>
  openWorld({
    workers: false,
    fill: ({ world }) => void generateWorld(world, { seed: 9, repositories, issues: 3 * repositories, pulls: 2 }),
  });

/** Copies all repositories, and answers their ids. */
async function copyAll({ ctx, simulator: { world } }: TestWorld): Promise<number[]> {
  const listed = [...world.repositories.values()].filter(({ fork }) => !fork);
  await addSelections(
    ctx,
    listed.map((one) => world.fullName(one)),
  );
  await resolveSelections(ctx);
  for (const { id } of listed) await backfill(ctx, { repositoryId: id }, signal);
  return listed.map(({ id }) => id);
}

test("a row whose stored time lies ahead does not pass for one that has every change", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  const [repositoryId = 0] = await copyAll(world);
  const { db } = world.ctx;
  const at = new Date().toISOString();
  const [row] = await db.query<{ issue: number; pull: number; comment: number; milestone: number }>(sql`
    select (select min(number) from issues where not is_pull_request) as issue,
      (select min(number) from pull_requests) as pull, (select min(id)::float8 from issue_comments) as comment,
      (select min(number) from milestones) as milestone`);
  const shown = [
    { r: repositoryId, kind: "issue" as const, n: row?.issue ?? 0, at },
    { r: repositoryId, kind: "pull_request" as const, n: row?.pull ?? 0, at },
    { r: repositoryId, kind: "issue_comment" as const, id: row?.comment ?? 0, at },
    { r: repositoryId, kind: "milestone" as const, n: row?.milestone ?? 0, at },
  ];
  const unheld = async () => (await findUnheldRows(db, shown)).map(({ shown: { kind } }) => kind).sort();
  const move = async (by: string) => {
    for (const table of ["issues", "pull_requests", "issue_comments", "milestones"])
      await db.query(sql`update ${sql.identifier(table)} set updated_at = ${at}::timestamptz + ${by}::interval`);
  };
  await move("1 second");
  expect(await unheld()).toEqual([]);
  await move("10 years");
  expect(await unheld()).toEqual(["issue", "issue_comment", "milestone", "pull_request"]);
});

test("two sweeps at once are one", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 9, repositories: 1, issues: 3, pulls: 2 }),
  });
  await world.mirror(world.first);
  const both = await Promise.all([sweep(world.ctx), sweep(world.ctx)]);
  expect(both.map(({ swept }) => swept).sort()).toEqual([0, 1]);
});

test("a sweep whose process stops asks nothing more", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  await copyAll(world);
  world.advance(6 * 60_000);
  const asked = () => world.simulator.meter.read().requests;
  const before = asked();
  await sweep(world.ctx, { signal: AbortSignal.abort() });
  expect(asked()).toBe(before);
  await sweep(world.ctx);
  expect(asked()).toBeGreaterThan(before);
});

async function swept({ ctx }: TestWorld) {
  const [row] = await ctx.db.query<{ shown: string; shown_at: Date }>(sql`select shown, shown_at from sweeps`);
  if (!row) throw new Error("Nothing was swept");
  return row;
}

test.each([
  ["milestones", "milestones"],
  ["the id", "databaseId"],
])("%s that upstream left out of its answer: it is asked again, and what it showed before stands", async (_, field) => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  await using tapped = await openTapped(world.ctx);
  await copyAll(world);
  world.advance(6 * 60_000);
  await sweep(tapped.ctx, { largeFleet: 1 });
  const before = await swept(world);
  expect(JSON.parse(before.shown)).toMatchObject({ milestones: { theirs: expect.any(Number) } });

  world.advance(6 * 60_000);
  tapped.tap.changeData = ({ n0 }) => {
    for (const one of rowsOf(n0)) one[field] = null;
  };
  await sweep(tapped.ctx, { largeFleet: 1 });
  expect(await swept(world)).toEqual(before);
  tapped.tap.changeData = null;
  await sweep(tapped.ctx, { largeFleet: 1 });
  expect((await swept(world)).shown).toBe(before.shown);
  expect((await swept(world)).shown_at).not.toEqual(before.shown_at);
  expect(await world.ctx.db.query(sql`select * from problems`)).toEqual([]);
});

test("what upstream shows of a repository in another shape is a problem of upstream's, and nothing of it is kept", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  await using tapped = await openTapped(world.ctx);
  await copyAll(world);
  world.advance(6 * 60_000);
  await sweep(tapped.ctx);
  const before = await swept(world);
  world.advance(8 * 60_000);
  tapped.tap.changeData = ({ n0 }) => {
    for (const one of rowsOf(n0)) one.isArchived = "no";
  };
  await sweep(tapped.ctx);
  expect(await swept(world)).toEqual(before);
  const problems = await world.ctx.db.query(sql`select cause, problem from problems`);
  expect(problems).toMatchObject([{ cause: "unavailable", problem: expect.stringContaining("isArchived") }]);
});

test("a repository in another shape keeps no other of its question waiting, and its problem ends with its shape", async () => {
  await using world = await openWithoutWorkers({ repositories: 2 });
  await using tapped = await openTapped(world.ctx);
  const [strange, other] = await copyAll(world);
  world.advance(6 * 60_000);
  const shownAt = async (id: number | undefined) => {
    const [row] = await world.ctx.db.query<{ at: Date }>(sql`
      select shown_at as at from sweeps where repository_id = ${id ?? 0}`);
    return row?.at.getTime() ?? Number.NaN;
  };
  await sweep(tapped.ctx);
  const before = [await shownAt(strange), await shownAt(other)] as const;
  world.advance(8 * 60_000);
  tapped.tap.changeData = ({ n0 }) => {
    for (const one of rowsOf(n0)) if (one.databaseId === strange) one.isArchived = "no";
  };
  await sweep(tapped.ctx);
  expect(await shownAt(strange)).toBe(before[0]);
  expect(await shownAt(other)).toBeGreaterThan(before[1]);
  const problems = () => world.ctx.db.query(sql`select repository_id::float8 as id, cause, problem from problems`);
  expect(await problems()).toMatchObject([
    { id: strange, cause: "unavailable", problem: expect.stringContaining("isArchived") },
  ]);
  tapped.tap.changeData = null;
  world.advance(8 * 60_000);
  await sweep(tapped.ctx);
  expect(await problems()).toEqual([]);
});

test("what could be asked is kept where the quota does not suffice for all, and the next sweep asks for the rest", async () => {
  await using world = await openWithoutWorkers({ repositories: 3 });
  const { ctx } = world;
  const ids = await copyAll(world);
  world.advance(6 * 60_000);
  expect(await sweep(ctx)).toMatchObject({ swept: 3 });
  const swept = async () => {
    const rows = await ctx.db.query<{ repository_id: number; swept_at: Date; lists: string }>(sql`
      select repository_id, swept_at, lists from sweeps`);
    return new Map(rows.map((row) => [row.repository_id, row]));
  };
  const before = await swept();

  world.advance(6 * 60_000);
  const denied = ids[1] as number;
  const upstream = changed(ctx.upstream, {
    get: (...request) =>
      request[0].startsWith(`/repositories/${denied}/`)
        ? Promise.reject(new QuotaSpentError("core", ctx.clock.now()))
        : ctx.upstream.get(...request),
  });
  await expect(sweep({ ...ctx, upstream })).rejects.toBeInstanceOf(QuotaSpentError);
  const after = await swept();
  for (const id of ids) {
    expect(after.get(id)?.lists).toBe(before.get(id)?.lists);
    if (id === denied) expect(after.get(id)?.swept_at).toEqual(before.get(id)?.swept_at);
    else expect(after.get(id)?.swept_at).not.toEqual(before.get(id)?.swept_at);
  }
  expect(await sweep(ctx)).toEqual({ swept: 1, changed: 0 });
});

test("what changes while a sweep asks is caught up with, also where a catch-up has just been past it", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  const { ctx } = world;
  const [repositoryId = 0] = await copyAll(world);
  for (let sweeps = 0; sweeps < 2; sweeps++) {
    world.advance(6 * 60_000);
    await sweep(ctx);
    world.advance(11_000);
    await catchUp(ctx, { repositoryId }, signal);
  }
  const asked = async () => (await ctx.queues.catchUp.getJobs(["waiting", "delayed", "prioritized"])).length;
  await ctx.queues.catchUp.drain(true);
  world.advance(6 * 60_000);
  expect(await sweep(ctx)).toEqual({ swept: 1, changed: 0 });
  expect(await asked()).toBe(0);

  world.advance(6 * 60_000);
  let isFirst = true;
  const upstream = changed(ctx.upstream, {
    get: async (...request) => {
      if (isFirst) {
        isFirst = false;
        world.advance(15_000);
        await catchUp(ctx, { repositoryId }, signal);
        world.advance(1_000);
        const body = JSON.stringify({ title: "changed meanwhile" });
        await ctx.upstream.write({ method: "PATCH", path: `/repos/${world.first}/issues/1`, body });
      }
      return ctx.upstream.get(...request);
    },
  });
  expect(await sweep({ ...ctx, upstream })).toEqual({ swept: 1, changed: 1 });
  expect(await asked()).toBe(1);
  // A lagging replica may have answered one of the two, but not the other.
  for (const [waitMs, askedAgain] of [
    [5_000, 1],
    [6_000, 0],
  ] as const) {
    await ctx.queues.catchUp.drain(true);
    world.advance(waitMs);
    await catchUp(ctx, { repositoryId }, signal);
    expect(await sweep(ctx)).toEqual({ swept: 0, changed: 0 });
    expect(await asked()).toBe(askedAgain);
  }
});

test.each([1, 29, 99, 100, 101, 9_900, 60_000])(
  "of a list of %i rows the page is asked for that holds its last row and has room for the next",
  (rows) => {
    const probes = probesFor({ labels: 1, milestones: 0, issues: 1, comments: rows, reviewComments: 0 });
    const query = new URLSearchParams(
      probes.find(({ path }) => path.startsWith("issues/comments"))?.path.split("?")[1],
    );
    const [size, page] = [Number(query.get("per_page")), Number(query.get("page"))];
    expect(rows).toBeGreaterThan((page - 1) * size);
    expect(rows).toBeLessThan(page * size);
    expect(size).toBeLessThanOrEqual(100);
  },
);

test("labels are asked for whole, and issues that are too many to be numbered from the newest change", () => {
  const paths = probesFor({ labels: 250, milestones: 0, issues: 9_000, comments: 0, reviewComments: 0 }).map(
    ({ path }) => path,
  );
  expect(paths.filter((path) => path.startsWith("labels"))).toHaveLength(3);
  expect(paths.filter((path) => path.startsWith("issues?"))).toEqual([
    "issues?direction=desc&per_page=30&sort=updated&state=all",
  ]);
  expect(paths).toHaveLength(5);
});

test("an answer that is no list is an error, and never the end of one", async () => {
  const upstream: Pick<Upstream, "get"> = {
    get: async () => ({
      ...{
        kind: "ok",
        body: { message: "busy" },
        seenAt: new Date(0),
        upstreamNow: new Date(0),
        asOf: null,
        links: {},
      },
      ...{ lastModified: null, validator: null },
    }),
  };
  const ours = { labels: 1, milestones: 0, issues: 1, comments: 0, reviewComments: 0 };
  await expect(
    probeLists({ upstream }, { repositoryId: 1, ours, before: null, milestones: true, now: new Date(0) }),
  ).rejects.toThrow("something that is not a list");
});

test("what an audit has not explained is asked for again, ever more seldom, until it is explained", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  const [id = 0] = await copyAll(world);
  const { ctx, simulator } = world;
  // Removed from the mirror's sight alone: no event tells of it, and no list of changes shows it.
  const label = [...simulator.world.labels.values()].find(({ repository }) => repository.id === id);
  if (!label) throw new Error("The generated world has no label");
  deleteLabel(simulator.world, label.repository.ownerId, label);
  const askedAfter: number[] = [];
  const begun = ctx.clock.now().getTime();
  for (let minute = 0; minute < 240; minute += 5) {
    world.advance(5 * 60_000);
    await sweep(ctx);
    if ((await ctx.queues.audit.getJobCounts("waiting")).waiting === 0) continue;
    // The audit reads a replica that lags behind, and finds nothing.
    await ctx.queues.audit.obliterate({ force: true });
    askedAfter.push(Math.round((ctx.clock.now().getTime() - begun) / 60_000));
  }
  // Meanwhile nothing is confirmed, since the labels are known to differ.
  const [sync] = await ctx.db.query<{ at: Date }>(sql`select confirmed_at as at from repository_syncs`);
  expect(sync?.at.getTime()).toBeLessThan(begun + 60_000);
  expect(askedAfter.length).toBeGreaterThan(4);
  expect(askedAfter.length).toBeLessThan(12);

  await audit(ctx, { repositoryId: id, repair: true, anew: true, signal });
  for (let hour = 0; hour < 6; hour++) {
    world.advance(3_600_000);
    await sweep(ctx);
  }
  expect((await ctx.queues.audit.getJobCounts("waiting")).waiting).toBe(0);
});

test("an archived repository is left alone only after a look at its lists that began after it was archived", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  const [id = 0] = await copyAll(world);
  const { ctx, simulator } = world;
  const asked = () => Object.keys(simulator.meter.read().routes).filter((route) => route.includes("/labels")).length;
  const look = async () => {
    world.advance(6 * 60_000);
    simulator.meter.reset();
    await sweep(ctx);
    return asked();
  };
  await look();
  // Within one interval a label goes, which no list of changes shows, and the repository is archived.
  const label = [...simulator.world.labels.values()].find(({ repository }) => repository.id === id);
  if (!label) throw new Error("The generated world has no label");
  deleteLabel(simulator.world, label.repository.ownerId, label);
  archiveRepository(simulator.world, label.repository.ownerId, label.repository, true);
  await look();
  await look();
  expect((await ctx.queues.audit.getJobCounts("waiting")).waiting).toBe(1);
  await audit(ctx, { repositoryId: id, repair: true, signal });
  const looks = [await look(), await look(), await look()];
  expect(looks.at(-1)).toBe(0);
});

test("a row that a list shows minutes late is read as soon as a sweep meets it, however far the watermark has moved", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  const [id = 0] = await copyAll(world);
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const repository = upstream.repositories.get(id);
  if (!repository) throw new Error("The generated world has no repository");
  const follow = async () => {
    await sweep(ctx);
    const asked = await ctx.queues.catchUp.count();
    await ctx.queues.catchUp.drain(true);
    if (asked > 0) await catchUp(ctx, { repositoryId: id }, signal);
    return asked;
  };
  pass(world, 6 * 60_000);
  await follow();
  const late = createIssue(upstream, repository.ownerId, { repository, title: "late" });
  simulator.setFaults({ rows: [{ match: "/issues\\?", where: { number: late.number }, kind: "hidden" }] });
  pass(world, 6 * 60_000);
  createIssue(upstream, repository.ownerId, { repository, title: "in time" });
  pass(world, 60_000);
  expect(await follow()).toBe(1);
  const titles = async () => {
    const rows = await ctx.db.query<{ title: string }>(sql`
      select title from issues where repository_id = ${id} and title in ('late', 'in time') order by 1`);
    return rows.map(({ title }) => title);
  };
  expect(await titles()).toEqual(["in time"]);
  simulator.setFaults({});
  pass(world, 6 * 60_000);
  expect(await follow()).toBe(1);
  expect(await titles()).toEqual(["in time", "late"]);
  // That catch-up began within the lag of replicas, so one more follows it.
  for (const asked of [1, 0]) {
    pass(world, 6 * 60_000);
    expect(await follow()).toBe(asked);
  }
});

test("what a catch-up still does not show is read again, and left to an audit at last", async () => {
  await using world = await openWithoutWorkers({ repositories: 1 });
  const [id = 0] = await copyAll(world);
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const repository = upstream.repositories.get(id);
  if (!repository) throw new Error("The generated world has no repository");
  pass(world, 6 * 60_000);
  await sweep(ctx);
  const edited = [...repository.rows.issuesByCreated.ascending()].find(({ pull }) => !pull);
  if (!edited) throw new Error("The generated world has no issue");
  const old = { title: edited.title, updated_at: new Date(edited.updatedAt * 1_000).toISOString().replace(".000", "") };
  editIssue(upstream, repository.ownerId, edited, { title: "seen at the end alone" });
  // The list that is read since a moment still shows it as it was; the end that a sweep looks at does not.
  simulator.setFaults({ rows: [{ match: "since=", where: { number: edited.number }, kind: "with", fields: old }] });
  const audits: number[] = [];
  const reads: number[] = [];
  for (let minute = 0; minute < 120; minute += 6) {
    pass(world, 6 * 60_000);
    await sweep(ctx);
    if ((await ctx.queues.catchUp.count()) > 0) {
      reads.push(minute);
      await catchUp(ctx, { repositoryId: id }, signal);
    }
    if ((await ctx.queues.audit.count()) > 0) audits.push(minute);
    await Promise.all([ctx.queues.catchUp.obliterate({ force: true }), ctx.queues.audit.obliterate({ force: true })]);
  }
  expect(reads.length).toBeGreaterThan(1);
  expect(reads.length).toBeLessThan(10);
  expect(audits.length).toBeGreaterThan(1);
  expect(audits.length).toBeLessThan(8);
  await audit(ctx, { repositoryId: id, repair: true, signal });
  pass(world, 6 * 60_000);
  await sweep(ctx);
  expect([await ctx.queues.catchUp.count(), await ctx.queues.audit.count()]).toEqual([0, 0]);
});
