/** Webhooks may come in any order. The last event of a value tells the one that the mirror shows. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, observe } from "../../src/mirror/store/observation.ts";
import { createComment, editComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, editIssue, transferIssue } from "../../src/simulator/changes/issues.ts";
import { createPull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import { createReviewComment } from "../../src/simulator/changes/reviews.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { payloadOf } from "../../src/simulator/webhooks/payload.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { askAt } from "../support/asking.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tell } from "./tell.ts";

const MINUTE = 60_000;

/** A mirror without a hook, and an issue. What upstream would have sent of it can be told later. */
async function openUnheard() {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 0 }),
  });
  await world.mirror(world.first);
  await world.settleMarks();
  const upstream = world.simulator.world;
  const [owner = "", name = ""] = world.first.split("/");
  const repository = upstream.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("Upstream has no repository");
  const pass = (ms: number) => {
    (upstream.clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  const unsent: { event: string; payload: object }[] = [];
  upstream.onEvent((event) => {
    const { url: apiUrl, htmlUrl } = world.simulator;
    const payload = payloadOf(openView({ world: upstream, apiUrl, htmlUrl }), event);
    unsent.push({ event: event.event, payload: structuredClone(payload) });
  });
  pass(MINUTE);
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "at first" });
  const find = async () => {
    pass(MINUTE);
    await world.catchUp();
    await world.settleMarks();
    pass(2 * MINUTE);
    await makeEvents(world.ctx);
  };
  await find();
  unsent.length = 0;
  return { world, upstream, repository, issue, unsent, pass, find };
}

/** Actions and titles of the events of one issue, in the order of the log, and whether they were made. */
async function told({ ctx }: TestWorld, number: number) {
  const rows = await ctx.db.query<{ payload: string; isMade: boolean }>(sql`
    select convert_from(d.payload, 'UTF8') as payload, e.is_made as "isMade" from events e
      join deliveries d on d.id = e.delivery_id where e.number = ${number} and e.event = 'issues' order by e.id`);
  return rows.map(({ payload, isMade }) => {
    const { action, issue } = JSON.parse(payload) as { action: string; issue: { title: string } };
    return [action, issue.title, isMade ? "made" : "sent"];
  });
}

/** The ids of the comments in the repository whose opening events were made. */
async function commentsMade({ ctx }: TestWorld, repositoryId: number): Promise<number[]> {
  const rows = await ctx.db.query<{ id: number }>(sql`
    select (convert_from(d.payload, 'UTF8')::json -> 'comment' ->> 'id')::float8 as id from events e
      join deliveries d on d.id = e.delivery_id
      where e.is_made and e.repository_id = ${repositoryId} and e.action = 'created' order by 1`);
  return rows.map(({ id }) => id);
}

/** Events get their places by these times, whenever they are stored. */
async function expectInOrder({ ctx }: TestWorld, number: number): Promise<void> {
  const rows = await ctx.db.query<{ at: Date }>(sql`
    select d.received_at as at from events e join deliveries d on d.id = e.delivery_id
      where e.number = ${number} and e.event = 'issues' order by e.id`);
  const times = rows.map(({ at }) => at.getTime());
  expect(times).toEqual(times.toSorted((one, other) => one - other));
}

test("a webhook that comes late, after its change was undone unheard, is followed by an event of the present state", async () => {
  const { world, upstream, repository, issue, unsent, pass, find } = await openUnheard();
  await using _world = world;
  editIssue(upstream, repository.ownerId, issue, { state: "closed" });
  pass(MINUTE);
  editIssue(upstream, repository.ownerId, issue, { state: "open" });
  await find();
  const [closed] = unsent;
  if (!closed) throw new Error("Upstream told of nothing");
  await tell(world, closed);
  await world.settle();
  await find();
  expect(await told(world, issue.number)).toEqual([
    ["opened", "at first", "made"],
    ["closed", "at first", "sent"],
    ["reopened", "at first", "made"],
  ]);
  await find();
  expect(await told(world, issue.number)).toHaveLength(3);
});

test("of a value that a late webhook told by chance an event is made, since who goes by times did not believe the webhook", async () => {
  const { world, upstream, repository, unsent, pass, find } = await openUnheard();
  await using _world = world;
  const issue = repository.rows.byNumber.find((one) => one && one.state === "open" && one.pull === null);
  if (!issue) throw new Error("Upstream has no open issue");
  for (const state of ["closed", "open", "closed"] as const) {
    editIssue(upstream, repository.ownerId, issue, { state });
    pass(MINUTE);
  }
  const [closed, reopened] = unsent;
  if (!closed || !reopened) throw new Error("Upstream told of too little");
  for (const one of [reopened, closed]) await tell(world, one);
  await world.settle();
  await find();
  const { title } = issue;
  const expected = [
    ["reopened", title, "sent"],
    ["closed", title, "sent"],
    ["closed", title, "made"],
  ];
  expect(await told(world, issue.number)).toEqual(expected);
  await find();
  expect(await told(world, issue.number)).toEqual(expected);
});

test("an opening that is told after a closing of its second does not tell that the issue is open again", async () => {
  const { world, upstream, repository, unsent, find } = await openUnheard();
  await using _world = world;
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "in a second" });
  editIssue(upstream, repository.ownerId, issue, { state: "closed" });
  const [opened, closed] = unsent.splice(0);
  if (!opened || !closed) throw new Error("Upstream told of nothing");
  for (const one of [closed, opened]) {
    await tell(world, one);
    await world.settle();
  }
  editIssue(upstream, repository.ownerId, issue, { state: "open" });
  await find();
  expect(await told(world, issue.number)).toEqual([
    ["closed", "in a second", "sent"],
    ["opened", "in a second", "sent"],
    ["reopened", "in a second", "made"],
  ]);
});

test("who closed an issue is asked for where only a later webhook shows that it is closed, since payloads do not say who", async () => {
  const { world, upstream, repository, issue, unsent, pass } = await openUnheard();
  await using _world = world;
  const path = `/repos/${world.first}/issues/${issue.number}`;
  const before = await world.get(`${path}?fresh=true`);
  editIssue(upstream, repository.ownerId, issue, { state: "closed" });
  pass(MINUTE);
  editIssue(upstream, repository.ownerId, issue, { title: "closed before" });
  const edited = unsent.at(-1);
  if (!edited) throw new Error("Upstream told of nothing");
  await tell(world, edited);
  await world.settle();
  await world.settleMarks();
  const after = await world.get(path);
  expect([before.body, after.body]).toMatchObject([
    { state: "open", closed_by: null },
    { state: "closed", closed_by: { id: repository.ownerId } },
  ]);
});

test("a change that is stored while an opening event shows what was there before has an event of its own", async () => {
  const { world, upstream, repository, pass } = await openUnheard();
  await using _world = world;
  const { ctx } = world;
  const { number } = createIssue(upstream, repository.ownerId, { repository, title: "one" });
  pass(MINUTE);
  await world.catchUp();
  await world.settleMarks();
  pass(2 * MINUTE);
  let making: Promise<number> | undefined;
  await ctx.db.transaction(async (tx) => {
    const change = sql`repository_id = ${repository.id} and number = ${number}`;
    await tx.query(sql`
      update issues set title = 'two', document = replace(document::text, '"one"', '"two"')::json where ${change}`);
    await tx.query(sql`insert into found_changes (repository_id, kind, key, aspect, was, found_at)
      values (${repository.id}, 'issue', ${number}, 'title', '"one"', ${ctx.clock.now()})`);
    making = makeEvents(ctx);
    const waits = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await until("the making waits for this change", async () => (await ctx.db.count(waits)) > 0);
  });
  await making;
  pass(2 * MINUTE);
  await makeEvents(ctx);
  expect(await told(world, number)).toEqual([
    ["opened", "one", "made"],
    ["edited", "two", "made"],
  ]);
});

test("an opening event that comes after the event of an edit is followed by an event of the present state", async () => {
  const { world, upstream, repository, unsent, pass, find } = await openUnheard();
  await using _world = world;
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "one" });
  pass(MINUTE);
  editIssue(upstream, repository.ownerId, issue, { title: "two" });
  const [opened, edited] = unsent;
  if (!opened || !edited) throw new Error("Upstream told of nothing");
  for (const one of [edited, opened]) {
    await tell(world, one);
    await world.settle();
  }
  await find();
  expect(await told(world, issue.number)).toEqual([
    ["edited", "two", "sent"],
    ["opened", "one", "sent"],
    ["edited", "two", "made"],
  ]);
  await find();
  expect(await told(world, issue.number)).toHaveLength(3);
});

test("a comment whose first event comes late, after it was edited unheard, has an event of the edit", async () => {
  const { world, upstream, repository, issue, unsent, pass } = await openUnheard();
  await using _world = world;
  const comment = createComment(upstream, repository.ownerId, issue, "one");
  pass(MINUTE);
  editComment(upstream, repository.ownerId, comment, "two");
  pass(MINUTE);
  await world.catchUp();
  await world.settleMarks();
  const [created] = unsent;
  if (!created) throw new Error("Upstream told of nothing");
  await tell(world, created);
  await world.settle();
  pass(2 * MINUTE);
  await makeEvents(world.ctx);
  const rows = await world.ctx.db.query<{ action: string; body: string }>(sql`
    select e.action, convert_from(d.payload, 'UTF8')::json -> 'comment' ->> 'body' as body from events e
      join deliveries d on d.id = e.delivery_id where e.event = 'issue_comment' order by e.id`);
  expect(rows).toEqual([
    { action: "created", body: "one" },
    { action: "edited", body: "two" },
  ]);
});

test("no event is made while a delivery that came before waits to be applied", async () => {
  const { world, upstream, repository, unsent, pass } = await openUnheard();
  await using _world = world;
  const { ctx } = world;
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "one" });
  pass(MINUTE);
  await world.catchUp();
  await world.settleMarks();
  editIssue(upstream, repository.ownerId, issue, { title: "two" });
  const edited = unsent.at(-1);
  if (!edited) throw new Error("Upstream told of nothing");
  await ctx.queues.deliveries.pause();
  await tell(world, edited);
  pass(2 * MINUTE);
  expect(await makeEvents(ctx)).toBe(0);
  await ctx.queues.deliveries.resume();
  await world.settle();
  await makeEvents(ctx);
  expect(await told(world, issue.number)).toEqual([
    ["edited", "two", "sent"],
    ["opened", "two", "made"],
  ]);
});

test("two changes of one second whose webhooks come late and reversed are followed by an event of the second", async () => {
  const { world, upstream, repository, issue, unsent, pass, find } = await openUnheard();
  await using _world = world;
  for (const title of ["first", "second"]) editIssue(upstream, repository.ownerId, issue, { title });
  pass(MINUTE);
  for (const one of unsent.toReversed()) {
    await tell(world, one);
    await world.settle();
  }
  await world.settleMarks();
  await find();
  expect(await told(world, issue.number)).toEqual([
    ["opened", "at first", "made"],
    ["edited", "second", "sent"],
    ["edited", "first", "sent"],
    ["edited", "second", "made"],
  ]);
});

test("what two workers apply in another order than it arrived is told in that order, and corrected by the last", async () => {
  await using world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 0 }),
  });
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const [repository] = [...upstream.repositories.values()];
  const issue = repository && [...repository.rows.issuesByCreated.ascending()][0];
  if (!issue) throw new Error("Upstream has no issue");
  const signal = new AbortController().signal;
  await addSelections(ctx, [world.first]);
  await resolveSelections(ctx);
  await backfill(ctx, { repositoryId: repository.id }, signal);
  const pass = (ms: number) => {
    (upstream.clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  pass(MINUTE);
  const unsent: object[] = [];
  upstream.onEvent((event) => {
    const { url: apiUrl, htmlUrl } = simulator;
    unsent.push(structuredClone(payloadOf(openView({ world: upstream, apiUrl, htmlUrl }), event)));
  });
  for (const title of ["first", "second"]) editIssue(upstream, repository.ownerId, issue, { title });
  pass(MINUTE);
  for (const payload of unsent.toReversed()) {
    await tell(world, { event: "issues", payload });
    pass(1_000);
  }
  const arrived = await ctx.db.query<{ id: string }>(sql`select id from deliveries order by received_at desc`);
  for (const { id } of arrived) await applyDeliveries(ctx, [id]);
  pass(MINUTE);
  await catchUp(ctx, { repositoryId: repository.id }, signal);
  pass(2 * MINUTE);
  await makeEvents(ctx);
  expect(await told(world, issue.number)).toEqual([
    ["edited", "second", "sent"],
    ["edited", "first", "sent"],
    ["edited", "second", "made"],
  ]);
});

test("changes are told although the process that copied has a clock behind that of the one that selected", async () => {
  await using world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 0 }),
  });
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const [repository] = [...upstream.repositories.values()];
  if (!repository) throw new Error("Upstream has no repository");
  const signal = new AbortController().signal;
  await addSelections(ctx, [world.first]);
  await resolveSelections(ctx);
  world.advance(-30_000);
  await backfill(ctx, { repositoryId: repository.id }, signal);
  world.advance(5 * MINUTE);
  (upstream.clock as SettableClock).advance(5 * MINUTE);
  const issue = createIssue(upstream, repository.ownerId, { repository, title: "unheard" });
  await catchUp(ctx, { repositoryId: repository.id }, signal);
  world.advance(2 * MINUTE);
  await makeEvents(ctx);
  expect(await told(world, issue.number)).toEqual([["opened", "unheard", "made"]]);
});

test("the comments that a transferred issue brings along are told, since upstream sends nothing of them", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 0 }),
  });
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const [from, to] = [...upstream.repositories.values()].filter((one) => !one.fork);
  const issue = from && [...from.rows.issuesByCreated.ascending()].find(({ thread }) => thread.length > 0);
  if (!issue || !to) throw new Error("Nothing was said under any issue");
  const names = [from, to].map((one) => upstream.fullName(one));
  await world.mirror(...names);
  await world.listen(...names);
  world.advance(60 * MINUTE);
  (upstream.clock as SettableClock).advance(60 * MINUTE);
  const moved = transferIssue(upstream, from.ownerId, issue, to);
  await world.settleMarks();
  world.advance(2 * MINUTE);
  await makeEvents(ctx);
  expect(await commentsMade(world, to.id)).toEqual(moved.thread.map(({ id }) => id).sort());
});

test("a comment that was stored before its issue's transfer is known is told of once it is known", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 0 }),
  });
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const [from, to] = [...upstream.repositories.values()].filter((one) => !one.fork);
  const issue = from && [...from.rows.issuesByCreated.ascending()].find(({ thread }) => thread.length > 0);
  if (!issue || !to) throw new Error("Nothing was said under any issue");
  await world.mirror(...[from, to].map((one) => upstream.fullName(one)));
  world.advance(60 * MINUTE);
  (upstream.clock as SettableClock).advance(60 * MINUTE);
  const unsent: { event: string; payload: { action?: string } & object }[] = [];
  upstream.onEvent((event) => {
    const view = openView({ world: upstream, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl });
    unsent.push({ event: event.event, payload: structuredClone(payloadOf(view, event)) });
  });
  const moved = transferIssue(upstream, from.ownerId, issue, to);
  const [comment] = moved.thread;
  if (!comment) throw new Error("The transfer brought no comment along");
  editComment(upstream, from.ownerId, comment, "said again");
  for (const action of ["edited", "opened", "transferred"]) {
    const event = unsent.find(({ payload }) => payload.action === action);
    if (!event) throw new Error(`Upstream told of nothing that was ${action}`);
    await tell(world, event);
    await world.settle();
  }
  await world.settleMarks();
  world.advance(2 * MINUTE);
  await makeEvents(ctx);
  expect(await commentsMade(world, to.id)).toEqual(moved.thread.map(({ id }) => id).sort());
});

test("a change back that nobody told is told, though an older event has its value and a place behind", async () => {
  const { world, upstream, repository, issue, unsent, pass, find } = await openUnheard();
  await using _ = world;
  const by = repository.ownerId;
  const edit = (title: string) => {
    pass(1_000);
    editIssue(upstream, by, issue, { title });
  };
  edit("first");
  edit("second");
  const [first, second] = unsent.splice(0);
  if (!first || !second) throw new Error("Upstream told of no edits");
  // The first arrives while the mirror's clock runs ahead: its event waits for its place until then.
  world.advance(10 * MINUTE);
  await tell(world, first);
  world.advance(-10 * MINUTE);
  await tell(world, second);
  await world.settle();
  edit("first");
  await find();
  pass(15 * MINUTE);
  await world.settle();
  await makeEvents(world.ctx);
  await world.settle();
  const all = await told(world, issue.number);
  expect(all.filter(([, , how]) => how === "sent")).toEqual([
    ["edited", "second", "sent"],
    ["edited", "first", "sent"],
  ]);
  // Who goes by the times in the events knows the second until then.
  expect(all.at(-1)).toEqual(["edited", "first", "made"]);
});

test("a review and its comment that were read before their pull request are told of once it is here", async () => {
  const { world, upstream, repository, pass } = await openUnheard();
  await using _ = world;
  const by = repository.ownerId;
  pushBranch(upstream, by, repository, "read-late");
  const branches = { headRepository: repository, headRef: "read-late", baseRef: repository.defaultBranch };
  const pull = createPull(upstream, by, { repository, title: "read late", ...branches });
  const comment = createReviewComment(upstream, by, pull, { path: "README.md", body: "on a line" });
  const shown = async (path: string) =>
    (await askAt(world.simulator.url, "GET", `/repos/${world.first}/pulls/${path}`, { token: UPSTREAM_TOKEN })).body;
  const at = {
    api: world.simulator.url,
    seenAt: world.ctx.clock.now(),
    read: true,
    repository: { ...repository, fullName: world.first, htmlUrl: null },
  };
  const observed = [
    observe("review", await shown(`${pull.number}/reviews/${comment.reviewId}`), at),
    observe("review_comment", await shown(`comments/${comment.id}`), at),
  ];
  await world.ctx.db.transaction((tx) => mergeObserved(tx, joinObserved(observed)));
  const made = async () => {
    pass(2 * MINUTE);
    await makeEvents(world.ctx);
    return (
      await world.ctx.db.query<{ name: string }>(sql`
      select event || '.' || action as name from events where is_made and event like 'pull_request%' order by 1`)
    ).map(({ name }) => name);
  };
  expect(await made()).toEqual([]);
  await world.catchUp();
  await world.settleMarks();
  expect(await made()).toEqual([
    "pull_request.opened",
    "pull_request_review.submitted",
    "pull_request_review_comment.created",
  ]);
});

test("the comments of a transferred issue wait for an issue that was not stored when they were", async () => {
  await using world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 0 }),
  });
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const pass = (ms: number) => {
    (upstream.clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  const [from, to] = [...upstream.repositories.values()].filter((one) => !one.fork);
  if (!from || !to) throw new Error("The generated world has no two repositories");
  const { signal } = new AbortController();
  await addSelections(ctx, [upstream.fullName(to)]);
  await resolveSelections(ctx);
  await backfill(ctx, { repositoryId: to.id }, signal);
  pass(60 * MINUTE);
  const issues = ["one", "two"].map((title) => {
    const issue = createIssue(upstream, from.ownerId, { repository: from, title });
    createComment(upstream, from.ownerId, issue, "said before");
    return issue;
  });
  pass(60 * MINUTE);
  // Lists of comments are read from here on.
  createComment(upstream, to.ownerId, createIssue(upstream, to.ownerId, { repository: to, title: "here" }), "here");
  await catchUp(ctx, { repositoryId: to.id }, signal);
  await makeEvents(ctx);
  pass(60 * MINUTE);
  for (const issue of issues) transferIssue(upstream, from.ownerId, issue, to);
  // The comments of one are stored. Those of the other cannot be read, so neither issue is stored.
  const storedComments = () => ctx.db.count(sql`select from issue_comments where body = 'said before'`);
  const away = withUpstream(ctx, {
    get: async (path, options) => {
      if (/\/issues\/\d+\/comments\?/.test(path) && (await storedComments()) > 0) throw new Error("Upstream is away");
      return ctx.upstream.get(path, options);
    },
  });
  await expect(catchUp(away, { repositoryId: to.id }, signal)).rejects.toThrow("Upstream is away");
  expect(await storedComments()).toBe(1);
  const made = async () => {
    pass(2 * MINUTE);
    await makeEvents(ctx);
    const rows = await ctx.db.query<{ event: string }>(sql`
      select event from events where repository_id = ${to.id} and is_made order by id`);
    return rows.map(({ event }) => event);
  };
  expect(await made()).toEqual(["issues", "issue_comment"]);
  await catchUp(ctx, { repositoryId: to.id }, signal);
  expect((await made()).slice(2)).toEqual(["issues", "issues", "issue_comment", "issue_comment"]);
});

test("a change that was seen before the last made event, and stored after it, is told behind it", async () => {
  const { world, upstream, repository, issue, pass, find } = await openUnheard();
  await using _world = world;
  const { ctx, simulator } = world;
  editIssue(upstream, repository.ownerId, issue, { title: "two" });
  await find();
  editIssue(upstream, repository.ownerId, issue, { title: "three" });
  // A delivery that waited in Redis is stored later than it was received.
  const answer = await ctx.upstream.get(`/repos/${world.first}/issues/${issue.number}`, { priority: "refresh" });
  if (answer.kind !== "ok") throw new Error("Upstream shows no issue");
  const seenAt = new Date(ctx.clock.now().getTime() - 3 * MINUTE);
  const place = { id: repository.id, fullName: world.first, htmlUrl: null };
  const observed = observe("issue", answer.body, { api: simulator.url, repository: place, seenAt, read: true });
  await ctx.db.transaction((tx) => mergeObserved(tx, joinObserved([observed])));
  pass(2 * MINUTE);
  await makeEvents(ctx);
  expect((await told(world, issue.number)).map(([, title]) => title)).toEqual(["at first", "two", "three"]);
  await expectInOrder(world, issue.number);
});

test("a change that waits while a webhook tells an older value is told behind that webhook", async () => {
  const { world, upstream, repository, issue, unsent, pass } = await openUnheard();
  await using _world = world;
  for (const title of ["zero", "two"]) editIssue(upstream, repository.ownerId, issue, { title });
  pass(MINUTE);
  await world.catchUp();
  await world.settleMarks();
  const [late] = unsent;
  if (!late) throw new Error("Upstream told of nothing");
  await tell(world, late);
  await world.settle();
  pass(2 * MINUTE);
  await makeEvents(world.ctx);
  expect((await told(world, issue.number)).map(([, title]) => title)).toEqual(["at first", "zero", "two"]);
  await expectInOrder(world, issue.number);
});
