import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { afterLag, storeMarks } from "../../src/mirror/store/marks.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { createComment, deleteComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, deleteIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { createMilestone } from "../../src/simulator/changes/milestones.ts";
import { createPull, editPull, pushBranch, pushToPull } from "../../src/simulator/changes/pulls.ts";
import { renameRepository } from "../../src/simulator/changes/repositories.ts";
import { createReviewComment } from "../../src/simulator/changes/reviews.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Issue, PullIssue } from "../../src/simulator/world/records.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { fetchAndStorePage } from "../../src/sync/reads/pages.ts";
import { learnPullDetails, readPullDetails } from "../../src/sync/reads/pull-details.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

/** A mirror that listens, and two new issues at upstream. A webhook told only of the second one. */
async function openUntold() {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 6, pulls: 2 }),
  });
  const { simulator } = world;
  await world.mirror(world.first);
  await world.listen(world.first);
  const [owner = "", name = ""] = world.first.split("/");
  const repository = simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  const open = (title: string) =>
    createIssue(simulator.world, repository.ownerId, { repository, title, body: null, labelIds: [] });
  simulator.setFaults({ webhooks: { fail: 1 } });
  open("one");
  await simulator.quiet();
  simulator.setFaults({});
  open("two");
  await world.settle();
  const [hook] = [...repository.rows.hooks.values()];
  const untold = hook && simulator.webhooks.log.list(hook.id, { status: "failure" })[0];
  if (!untold) throw new Error("No delivery has failed");
  return {
    world,
    redeliver: async () => {
      simulator.webhooks.redeliver(hook, untold);
      await world.settle();
    },
    pass: (ms: number) => {
      (simulator.world.clock as SettableClock).advance(ms);
      world.advance(ms);
    },
    differences: async () => (await compare(world.ctx, simulator, world.first)).differences,
  };
}

/** The same world once a catch-up has found the first issue, and nothing is in doubt. */
async function openCaughtUp() {
  const untold = await openUntold();
  await untold.world.catchUp();
  await untold.world.settleMarks();
  untold.pass(60_000);
  return untold;
}

test("a webhook that comes long after its successors does not bring a repository's figures back", async () => {
  const { world, redeliver, pass, differences } = await openUntold();
  await using _ = world;
  await world.catchUp();
  pass(60_000);
  await redeliver();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

test("where webhooks of one moment came in another order, the next catch-up puts a repository's figures right", async () => {
  const { world, redeliver, differences } = await openUntold();
  await using _ = world;
  await world.catchUp();
  await redeliver();
  await world.settleMarks();
  await world.catchUp();
  expect(await differences()).toEqual([]);
});

test("a milestone's counter that a webhook moved, and a lost one moved back, is put right by the next catch-up", async () => {
  const { world, pass, differences } = await openCaughtUp();
  await using _ = world;
  const { simulator } = world;
  const issue = [...simulator.world.issues.values()].find((one) => !one.pull && one.state === "open");
  if (!issue) throw new Error("No issue is open");
  const { repository } = issue;
  const by = repository.ownerId;
  const { id: milestoneId } = createMilestone(simulator.world, by, { repository, title: "counted" });
  editIssue(simulator.world, by, issue, { milestoneId });
  await world.settle();
  pass(60_000);
  await world.catchUp();
  await world.settleMarks();
  pass(60_000);
  editIssue(simulator.world, by, issue, { state: "closed" });
  await world.settle();
  simulator.setFaults({ webhooks: { drop: 1 } });
  editIssue(simulator.world, by, issue, { state: "open" });
  pass(60_000);
  await world.catchUp();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

test("whether maintainers may change a pull request, which no webhook tells, is read with whether it can be merged", async () => {
  const { world, differences } = await openCaughtUp();
  await using _ = world;
  const { simulator } = world;
  const [repository] = simulator.world.repositories.values();
  if (!repository) throw new Error("The generated repository is not there");
  const { ownerId: by, defaultBranch: baseRef } = repository;
  pushBranch(simulator.world, by, repository, "topic");
  const opened = { repository, headRepository: repository, headRef: "topic", baseRef, title: "three", body: null };
  const pull = createPull(simulator.world, by, opened);
  editPull(simulator.world, by, pull, { maintainerCanModify: true });
  await world.settle();
  await world.settleMarks();
  expect((await differences()).filter((line) => line.includes("maintainer"))).toEqual([]);
});

test("a catch-up that fails over the details of a pull request meets it again, though its list has not changed since", async () => {
  const { world, pass, differences } = await openUntold();
  await using _ = world;
  await world.catchUp();
  await world.settleMarks();
  pass(3_600_000);
  world.simulator.setFaults({ webhooks: { drop: 1 } });
  const pull = [...world.simulator.world.issues.values()].find((one): one is PullIssue => one.pull !== null);
  if (!pull?.authorId) throw new Error("There is no pull request by an account that still exists");
  createReviewComment(world.simulator.world, pull.authorId, pull, { body: "why", path: "README.md" });
  const failing = withUpstream(world.ctx, {
    graphql: async () => {
      throw new Error("Upstream is away");
    },
  });
  const { signal } = new AbortController();
  await expect(catchUp(failing, { repositoryId: pull.repository.id }, signal)).rejects.toThrow("is away");
  // The mirror leaves what has failed alone for a while.
  pass(60_000);
  await world.catchUp();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

test("a replica that does not show yet what was told of a moment ago takes nothing back", async () => {
  const { world, pass } = await openUntold();
  await using _ = world;
  await world.settleMarks();
  pass(60_000);
  const { simulator, ctx } = world;
  simulator.setFaults({ lagMs: 5_000 });
  const [issue] = [...simulator.world.issues.values()];
  if (!issue) throw new Error("There is no issue");
  const { id: key } = createComment(simulator.world, issue.repository.ownerId, issue, "just now");
  await world.settle();
  const comment = { kind: "issue_comment", repositoryId: issue.repository.id, key } as const;
  const path = `/repos/${world.first}/issues/comments/${key}`;
  expect((await world.get(path)).status).toBe(200);

  const now = ctx.clock.now();
  await storeMarks(ctx.db, [{ ...comment, askedAt: new Date(now.getTime() - 60_000), notBefore: now }]);
  expect(await new Refreshes(ctx).refresh(comment)).toBe("kept");
  expect((await world.get(path)).status).toBe(200);
  // The mirror believes that a comment is really gone once no replica can lag behind.
  simulator.setFaults({ webhooks: { drop: 1 } });
  const said = simulator.world.comments.get(key);
  if (!said) throw new Error("The comment is gone already");
  deleteComment(simulator.world, issue.repository.ownerId, said);
  pass(60_000);
  await world.settleMarks();
  expect((await world.get(path)).status).toBe(404);
});

test("marks that are overdue are queued when their jobs were lost, and only then", async () => {
  await using world = await openWorld({ workers: false });
  const { ctx } = world;
  const askedAt = new Date(ctx.clock.now().getTime() - 60_000);
  const marks = Array.from({ length: 120 }, (_one, key) => ({
    ...{ kind: "issue" as const, repositoryId: 1, key },
    ...{ askedAt, notBefore: askedAt },
  }));
  await storeMarks(ctx.db, marks);
  expect(await dispatchMarks(ctx)).toBe(120);
  expect(await dispatchMarks(ctx)).toBe(0);
  const { refresh } = ctx.queues;
  const [job] = await refresh.getWaiting(0, 0);
  await job?.remove();
  expect(await dispatchMarks(ctx)).toBe(1);
  await refresh.obliterate({ force: true });
  for (const key of await ctx.redis.keys(refresh.toKey("de:*"))) await ctx.redis.del(key);
  expect(await dispatchMarks(ctx)).toBe(120);
});

test("what webhooks tell of a closing is believed, and a second webhook that tells of it again changes nothing", async () => {
  const { world, pass, close, repeat, differences } = await openClosing();
  await using _ = world;
  await close();
  expect(await markedKeys(world.ctx)).toEqual([]);
  pass(60_000);
  await repeat();
  expect(await markedKeys(world.ctx)).toEqual([]);
  // The mirror asks later whether the pull request can be merged, and as which commit.
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

/** A mirror that listens, and ways to close a pull request and an issue. `repeat` has another hook tell of the same. */
async function openClosing() {
  const { world, pass, differences } = await openCaughtUp();
  const { simulator, ctx } = world;
  const rows = [...simulator.world.issues.values()];
  const pull = rows.find((one): one is PullIssue => one.pull !== null && one.state === "open");
  const issue = rows.find((one) => one.pull === null && one.state === "open");
  if (!pull || !issue) throw new Error("Nothing is open");
  const since = ctx.clock.now();
  const { ownerId: by } = issue.repository;
  return {
    world,
    pass,
    differences,
    close: async () => {
      pushToPull(simulator.world, by, pull);
      await simulator.quiet();
      pass(2_000);
      editPull(simulator.world, by, pull, { state: "closed" });
      // Webhooks of one moment come in any order. The last one decides the repository's figures, so they are settled
      // one by one.
      await world.settle();
      editIssue(simulator.world, by, issue, { state: "closed" });
      await world.settle();
    },
    repeat: async () => {
      const repeated = await ctx.db.query<{ id: string }>(sql`
        insert into deliveries (hook_id, guid, event, action, repository_id, payload, received_at)
          select hook_id + 1, guid, event, action, repository_id, payload, ${ctx.clock.now()} from deliveries
          where received_at >= ${since} returning id`);
      const ids = repeated.map(({ id }) => id);
      expect(ids.length).toBeGreaterThanOrEqual(3);
      expect([...(await applyDeliveries(ctx, ids)).values()]).toEqual(ids.map(() => "applied"));
    },
  };
}

async function markedKeys({ db }: Pick<Context, "db">): Promise<string[]> {
  const rows = await db.query<{ marked: string }>(sql`
    select kind || ' ' || key as marked from refresh_marks where kind <> 'mergeability' order by kind, key`);
  return rows.map(({ marked }) => marked);
}

test("of what is read together each mark is settled or asked for again by itself, and what is deleted goes", async () => {
  const { world, pass, differences } = await openCaughtUp();
  await using _ = world;
  const { simulator, ctx } = world;
  const rows = [...simulator.world.issues.values()].filter((one) => one.pull === null).slice(0, 4);
  const [settled, postponed, unasked, deleted] = rows;
  if (!settled || !postponed || !unasked || !deleted) throw new Error("There are too few issues");
  simulator.setFaults({ webhooks: { drop: 1 } });
  const { ownerId, id: repositoryId } = settled.repository;
  for (const one of [settled, postponed, unasked])
    editIssue(simulator.world, ownerId, one, { title: `renamed ${one.number}` });
  deleteIssue(simulator.world, ownerId, deleted);
  const now = ctx.clock.now();
  const earlier = new Date(now.getTime() - 30_000);
  const keyOf = ({ number: key }: Issue) => ({ kind: "issue" as const, repositoryId, key });
  await storeMarks(ctx.db, [
    { ...keyOf(settled), askedAt: earlier, notBefore: earlier },
    { ...keyOf(postponed), askedAt: now, notBefore: earlier },
    { ...keyOf(deleted), askedAt: earlier, notBefore: earlier },
  ]);
  const refreshes = new Refreshes(ctx);
  const outcomes = await Promise.all(rows.map((one) => refreshes.refresh(keyOf(one))));
  // Where nothing is marked any more, nothing is asked.
  expect(outcomes).toEqual(["merged", "merged", "unknown", "deleted"]);
  const left = await ctx.db.query(sql`select key::integer, not_before from refresh_marks`);
  expect(left).toEqual([{ key: postponed.number, not_before: afterLag(now) }]);
  pass(60_000);
  await world.settleMarks();
  await world.catchUp();
  expect(await differences()).toEqual([]);
});

test("what is read while a repository is renamed shows its next name as well", async () => {
  const { world, pass, differences } = await openUntold();
  await using _ = world;
  const { simulator, ctx } = world;
  const [issue] = [...simulator.world.issues.values()];
  if (!issue) throw new Error("There is no issue");
  const { repository } = issue;
  const known = await ctx.jobReads.repository(repository.id);
  if (!known) throw new Error("The repository is not mirrored");
  simulator.setFaults({ webhooks: { drop: 1 } });
  pass(60_000);
  renameRepository(simulator.world, repository.ownerId, repository, "renamed-once");
  createComment(simulator.world, repository.ownerId, issue, "said under the second name");
  // These reads began when the repository had its first name.
  for (const [kind, list] of [
    ["issue", "issues?state=all"],
    ["issue_comment", "issues/comments?sort=created"],
    ["pull_request", "pulls?state=all"],
  ] as const)
    await fetchAndStorePage(ctx, known, kind, `/repositories/${known.id}/${list}&per_page=100`, "catch-up");
  const page = await readPullDetails(ctx, known, { after: null, pageSize: 100 }, { priority: "catch-up" });
  expect(page.pulls.some(({ reviews }) => reviews.nodes.length > 0)).toBe(true);
  const { observed } = await learnPullDetails(ctx, known, page, "catch-up");
  await ctx.db.transaction((tx) => mergeObserved(tx, observed));
  pass(60_000);
  renameRepository(simulator.world, repository.ownerId, repository, "renamed-twice");
  await world.catchUp();
  await world.settleMarks();
  world.first = simulator.world.fullName(repository);
  expect(await differences()).toEqual([]);
});

test("what is read of pull requests that no list has shown yet holds nothing up, and they are found whole", async () => {
  const { world, pass, differences } = await openUntold();
  await using _ = world;
  const { simulator, ctx } = world;
  const repository = [...simulator.world.repositories.values()].find(
    (one) => simulator.world.fullName(one) === world.first,
  );
  const known = repository && (await ctx.jobReads.repository(repository.id));
  if (!known) throw new Error("The repository is not mirrored");
  simulator.setFaults({ webhooks: { drop: 1 } });
  pass(60_000);
  const by = repository.ownerId;
  pushBranch(simulator.world, by, repository, "late-branch");
  const branches = { headRepository: repository, headRef: "late-branch", baseRef: repository.defaultBranch };
  const pull = createPull(simulator.world, by, { repository, title: "untold", ...branches });
  const page = await readPullDetails(ctx, known, { after: null, pageSize: 100 }, { priority: "backfill" });
  expect(page.pulls.some(({ number }) => number === pull.number)).toBe(true);
  const { observed } = await learnPullDetails(ctx, known, page, "backfill");
  await ctx.db.transaction((tx) => mergeObserved(tx, observed));
  pass(60_000);
  await world.catchUp();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});
