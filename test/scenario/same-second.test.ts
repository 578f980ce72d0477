/** Webhooks that were lost although another one of the same second moved the times by which a loss is found. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createComment, editComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, deleteIssue, editIssue, lockIssue } from "../../src/simulator/changes/issues.ts";
import { editPull } from "../../src/simulator/changes/pulls.ts";
import { createReview } from "../../src/simulator/changes/reviews.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTE = 60_000;

let world: TestWorld;
let repository: Repository;
let pull: PullIssue;
beforeAll(async () => {
  world = await openWorld({
    simulator: { worldOptions: { bumps: { lock: true, pin: true, typeChange: true } } },
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 12, repositories: 1, issues: 12, pulls: 12, people: 6 }),
  });
  await world.mirror(world.first);
  await world.listen(world.first);
  await world.settleMarks();
  const [only] = [...world.simulator.world.repositories.values()].filter(({ fork }) => !fork);
  const open = (only?.rows.byNumber ?? [])
    .filter((one) => one !== undefined)
    .filter(isPull)
    .find(({ state }) => state === "open");
  if (!only || !open) throw new Error("There is no open pull request");
  [repository, pull] = [only, open];
  for (let minute = 0; minute < 6; minute++) await pass(MINUTE);
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function pass(ms: number): Promise<void> {
  world.advance(ms);
  (world.simulator.world.clock as SettableClock).advance(ms);
  await world.ctx.queues.refresh.clean(0, 1_000, "delayed");
  await dispatchMarks(world.ctx);
  await sweep(world.ctx);
  await world.settle();
}

function atTheBeginningOfASecond(): void {
  const clock = world.simulator.world.clock as SettableClock;
  clock.advance(1_000 - (clock.now() % 1_000));
}

function review(body: string): void {
  const comments = [{ path: "README.md", line: 1, body: `${body}, in detail` }];
  createReview(world.simulator.world, repository.ownerId, pull, { body, state: "COMMENTED", comments });
}

async function reviewsHere(): Promise<unknown> {
  return (await world.get(`/repositories/${repository.id}/pulls/${pull.number}/reviews?per_page=100`)).body;
}

async function reviewsThere(): Promise<unknown> {
  const { url } = world.simulator;
  const headers = { authorization: `token ${world.ctx.config.upstreamTokens[0]}`, "user-agent": "test" };
  const path = `/repositories/${repository.id}/pulls/${pull.number}/reviews?per_page=100`;
  return JSON.parse((await (await fetch(url + path, { headers })).text()).replaceAll(url, world.url));
}

function askedAboutReviews(): number {
  const { routes } = world.simulator.meter.read();
  return Object.entries(routes).reduce((sum, [route, { charged }]) => sum + (/reviews/.test(route) ? charged : 0), 0);
}

test("a review that is told costs nothing, although its comments come first", async () => {
  world.simulator.meter.reset();
  review("Told");
  await world.settle();
  await pass(MINUTE);
  expect(askedAboutReviews()).toBe(0);
  expect(await reviewsHere()).toEqual(await reviewsThere());
  expect(await world.ctx.db.count(sql`select from refresh_marks where kind = 'review'`)).toBe(0);
});

test("a review whose webhook was lost is read because its comments name it, in a minute and for one request", async () => {
  world.simulator.meter.reset();
  world.simulator.setFaults({ lacksEvents: ["pull_request_review"] });
  review("Lost");
  await world.settle();
  world.simulator.setFaults({});
  expect(await reviewsHere()).not.toEqual(await reviewsThere());
  world.simulator.meter.reset();
  await pass(MINUTE);
  expect(askedAboutReviews()).toBe(1);
  expect(await reviewsHere()).toEqual(await reviewsThere());
  expect(await world.ctx.db.count(sql`select from refresh_marks where kind = 'review'`)).toBe(0);
});

test("a lock that was lost in the second of a comment that was told is found by a sweep", async () => {
  const { world: upstream } = world.simulator;
  const issue = repository.rows.byNumber.find((one) => one && !isPull(one) && !one.locked);
  if (!issue) throw new Error("There is no issue that is not locked");
  atTheBeginningOfASecond();
  createComment(upstream, repository.ownerId, issue, "In the same second");
  const toldAt = issue.updatedAt;
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  lockIssue(upstream, repository.ownerId, issue, "resolved");
  world.simulator.setFaults({});
  expect(issue.updatedAt).toBe(toldAt);
  await world.settle();
  const shown = async () => (await world.get(`/repositories/${repository.id}/issues/${issue.number}`)).body;
  expect(await shown()).toMatchObject({ locked: false });
  for (let minute = 0; minute < 6; minute++) await pass(MINUTE);
  expect(await shown()).toMatchObject({ locked: true, active_lock_reason: "resolved" });
});

test("an issue that was opened and closed anew in the second of a comment that was told is found by a sweep", async () => {
  const { world: upstream } = world.simulator;
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "Closed twice" });
  editIssue(upstream, repository.ownerId, issue, { state: "closed" });
  await world.settle();
  await pass(2 * MINUTE);
  atTheBeginningOfASecond();
  createComment(upstream, repository.ownerId, issue, "Told in the same second");
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  editIssue(upstream, repository.ownerId, issue, { state: "open" });
  editIssue(upstream, repository.ownerId, issue, { state: "closed" });
  world.simulator.setFaults({});
  await world.settle();
  const closedAt = new Date((issue.closedAt ?? 0) * 1_000).toISOString().replace(".000Z", "Z");
  const shown = async () => (await world.get(`/repositories/${repository.id}/issues/${issue.number}`)).body;
  expect(await shown()).not.toMatchObject({ closed_at: closedAt });
  for (let minute = 0; minute < 6; minute++) await pass(MINUTE);
  expect(await shown()).toMatchObject({ state: "closed", closed_at: closedAt });
});

test("a review without comments that was lost in the second of a told change is found where webhooks get lost", async () => {
  const { world: upstream } = world.simulator;
  const title = (text: string) => editPull(upstream, repository.ownerId, pull, { title: text });
  for (let passed = 0; passed < 70; passed += 5) await pass(5 * MINUTE);
  atTheBeginningOfASecond();
  title("Before a review of the same second");
  world.simulator.setFaults({ lacksEvents: ["pull_request_review"] });
  createReview(upstream, repository.ownerId, pull, { body: "Lost, and without comments", state: "COMMENTED" });
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  await world.settle();
  expect(await reviewsHere()).not.toEqual(await reviewsThere());
  createIssue(upstream, repository.ownerId, { repository, title: "Lost, which a sweep sees" });
  world.simulator.setFaults({});
  for (let minute = 0; minute < 5; minute++) await pass(MINUTE);
  expect(await reviewsHere()).toEqual(await reviewsThere());

  // Its webhooks are suspected now, and nothing else differs.
  for (let minute = 0; minute < 11; minute++) await pass(MINUTE);
  atTheBeginningOfASecond();
  title("Before another review of the same second");
  world.simulator.setFaults({ lacksEvents: ["pull_request_review"] });
  createReview(upstream, repository.ownerId, pull, { body: "Lost, and alone", state: "COMMENTED" });
  world.simulator.setFaults({});
  await world.settle();
  expect(await reviewsHere()).not.toEqual(await reviewsThere());
  for (let minute = 0; minute < 5; minute++) await pass(MINUTE);
  expect(await reviewsHere()).toEqual(await reviewsThere());
});

test("a review that was lost with its comments is read once a list shows the comments, which count", async () => {
  const path = `/repositories/${repository.id}/pulls/${pull.number}`;
  const { review_comments: before } = (await world.get(path)).body as { review_comments: number };
  world.simulator.setFaults({ lacksEvents: ["pull_request_review", "pull_request_review_comment"] });
  review("Lost with its comments");
  world.simulator.setFaults({});
  editPull(world.simulator.world, repository.ownerId, pull, { title: "Told in the same second" });
  await world.settle();
  for (let minute = 0; minute < 6; minute++) await pass(MINUTE);
  expect(await reviewsHere()).toEqual(await reviewsThere());
  expect((await world.get(path)).body).toMatchObject({ review_comments: before + 1 });
  expect(await world.ctx.db.count(sql`select from refresh_marks where kind = 'review'`)).toBe(0);
});

test("an issue whose opening was lost says who closed it, or that nobody did", async () => {
  const { world: upstream } = world.simulator;
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  const open = createIssue(upstream, repository.ownerId, { repository, title: "Lost when it was opened" });
  const closed = createIssue(upstream, repository.ownerId, { repository, title: "Lost when it was closed, too" });
  editIssue(upstream, repository.ownerId, closed, { state: "closed" });
  world.simulator.setFaults({});
  for (const issue of [open, closed]) editIssue(upstream, repository.ownerId, issue, { title: "Told" });
  await world.settle();
  for (let minute = 0; minute < 3; minute++) await pass(MINUTE);
  const shown = async ({ number }: { number: number }) =>
    (await world.get(`/repositories/${repository.id}/issues/${number}`)).body;
  expect(await shown(open)).toMatchObject({ state: "open", title: "Told", closed_by: null });
  expect(await shown(closed)).toMatchObject({ state: "closed", title: "Told", closed_by: { id: repository.ownerId } });
});

test("a lock that was told in the second of a comment is no loss while it is in doubt, and nothing is read for it", async () => {
  const { world: upstream } = world.simulator;
  const issue = repository.rows.byNumber.find((one) => one && !isPull(one) && !one.locked);
  if (!issue) throw new Error("There is no issue that is not locked");
  const inDoubt = [issue, pull].filter((one) => !one.locked);
  expect(inDoubt).toHaveLength(2);
  for (const one of inDoubt) {
    // The comment, whose issue is not locked yet, arrives after the lock.
    world.simulator.setFaults({ webhooks: { reorder: 1 } });
    createComment(upstream, repository.ownerId, one, "In the same second");
    world.simulator.setFaults({});
    lockIssue(upstream, repository.ownerId, one, "resolved");
  }
  await world.settle();
  const locked = async () =>
    await Promise.all(
      inDoubt.map(async ({ number }) => {
        const { body } = await world.get(`/repositories/${repository.id}/issues/${number}`);
        return (body as { locked: boolean }).locked;
      }),
    );
  expect(await locked()).toEqual([false, false]);
  expect(await world.ctx.db.count(sql`select distinct key from refresh_marks where keys && array['locked']`)).toBe(2);
  await world.ctx.db.query(sql`update sweeps set untold_at = null`);
  // The common question of these doubts is still to come.
  for (const clock of [world, world.simulator.world.clock as SettableClock]) clock.advance(6 * MINUTE);
  world.simulator.meter.reset();
  await sweep(world.ctx);
  await world.settle();
  expect(await world.ctx.db.count(sql`select from sweeps where untold_at is not null`)).toBe(0);
  expect(Object.keys(world.simulator.meter.read().routes)).toEqual(["POST /graphql"]);
  for (let minute = 0; minute < 3; minute++) await pass(MINUTE);
  expect(await locked()).toEqual([true, true]);
});

test("a deletion whose webhook was lost is found in two minutes, though each look finds another lost change", async () => {
  const { world: upstream } = world.simulator;
  const deleted = createIssue(upstream, repository.ownerId, { repository, title: "To be deleted" });
  const edited = createIssue(upstream, repository.ownerId, { repository, title: "Edited all the time" });
  const told = createIssue(upstream, repository.ownerId, { repository, title: "Told of" });
  await world.settle();
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  const lossyMinutes = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      editIssue(upstream, repository.ownerId, edited, { title: `Edited at ${upstream.clock.now()}` });
      createComment(upstream, repository.ownerId, told, "Told");
      await world.settle();
      await pass(MINUTE);
    }
  };
  const caughtUpAt = async () => {
    const [row] = await world.ctx.db.query<{ at: Date }>(sql`select caught_up_at as at from repository_syncs`);
    return row?.at;
  };
  for (const before = await caughtUpAt(); before?.getTime() === (await caughtUpAt())?.getTime(); )
    await lossyMinutes(1);
  // The next catch-up of the repository has to wait for a while.
  deleteIssue(upstream, repository.ownerId, deleted);
  await lossyMinutes(2);
  world.simulator.setFaults({});
  expect(await world.get(`/repositories/${repository.id}/issues/${deleted.number}`)).toMatchObject({ status: 410 });
});

test("a catch-up confirms nothing while a look has still to decide whether a row was deleted", async () => {
  const { world: upstream } = world.simulator;
  const deleted = createIssue(upstream, repository.ownerId, { repository, title: "To be deleted, too" });
  const told = createIssue(upstream, repository.ownerId, { repository, title: "Told of again" });
  const tellInMinutes = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      createComment(upstream, repository.ownerId, told, "Told");
      await world.settle();
      await pass(MINUTE);
    }
  };
  await tellInMinutes(3);
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  deleteIssue(upstream, repository.ownerId, deleted);
  world.simulator.setFaults({});
  const found = sql`select from sweeps where (unheld::json -> 'surplus' ->> 'issues')::int > 0`;
  while ((await world.ctx.db.count(found)) === 0) await tellInMinutes(1);
  const confirmedAt = async () => {
    const [row] = await world.ctx.db.query<{ at: Date }>(sql`select confirmed_at as at from repository_syncs`);
    return row?.at;
  };
  const before = await confirmedAt();
  // The comments were read too long ago, so the catch-up reads everything.
  world.advance(5 * MINUTE);
  (world.simulator.world.clock as SettableClock).advance(5 * MINUTE);
  await catchUp(world.ctx, { repositoryId: repository.id }, new AbortController().signal);
  expect(await confirmedAt()).toEqual(before);
  await tellInMinutes(2);
  expect(await world.get(`/repositories/${repository.id}/issues/${deleted.number}`)).toMatchObject({ status: 410 });
  expect(await confirmedAt()).not.toEqual(before);
});

test("where webhooks get lost, a comment that was edited untold is read by one request within four minutes", async () => {
  const { world: upstream } = world.simulator;
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "Commented" });
  const comment = createComment(upstream, repository.ownerId, issue, "As it was told");
  const livelyMinutes = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      editIssue(upstream, repository.ownerId, issue, { title: `Title ${upstream.clock.now()}` });
      await world.settle();
      await pass(MINUTE);
    }
  };
  await livelyMinutes(5);
  world.simulator.setFaults({ lacksEvents: ["issue_comment"] });
  editComment(upstream, repository.ownerId, comment, "As nobody told it");
  world.simulator.setFaults({});
  world.simulator.meter.reset();
  await livelyMinutes(4);
  expect((await world.get(`/repositories/${repository.id}/issues/comments/${comment.id}`)).body).toMatchObject({
    body: "As nobody told it",
  });
  const { routes } = world.simulator.meter.read();
  expect(routes["GET /repos/:owner/:repo/issues/comments"]?.charged).toBe(1);
  expect(routes["GET /repos/:owner/:repo/issues"]?.charged ?? 0).toBe(0);
});
