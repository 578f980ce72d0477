/** Targets hear also of changes that no webhook reported. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createTarget, removeTarget } from "../../src/events/target.ts";
import { dispatchPending } from "../../src/inbox/dispatch.ts";
import { keysOf, storeDelivery } from "../../src/inbox/inbox.ts";
import { createComment, deleteComment, editComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, deleteIssue, editIssue, lockIssue } from "../../src/simulator/changes/issues.ts";
import { createLabel, editLabel } from "../../src/simulator/changes/labels.ts";
import { createMilestone, editMilestone } from "../../src/simulator/changes/milestones.ts";
import { mergePull, pushToPull, requestReviewers, setDraft } from "../../src/simulator/changes/pulls.ts";
import { createReview, dismissReview } from "../../src/simulator/changes/reviews.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { payloadOf } from "../../src/simulator/webhooks/payload.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { WorldEvent } from "../../src/simulator/world/event.ts";
import type { Issue, PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { mismatch } from "../../src/sync/events/read.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { FeedReader } from "./feed-reader.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";
import { tell } from "./tell.ts";

const MINUTE = 60_000;
const signal = new AbortController().signal;

let world: TestWorld;
let repository: Repository;
let server: TargetServer;
let targetId: number;
/** What upstream would have sent, had we been listening. */
const unsent: { event: string; action: string | null; payload: Record<string, unknown> }[] = [];

beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 7, repositories: 1, issues: 10, pulls: 40 });
      const [one] = [...upstream.repositories.values()].filter(({ fork }) => !fork);
      for (let at = 0; one && at < 25; at++)
        createIssue(upstream, one.ownerId, { repository: one, title: `plain ${at}` });
    },
    env: { TARGETS_ALLOWED: "127.0.0.1" },
  });
  await world.mirror(world.first);
  await world.settleMarks();
  const upstream = world.simulator.world;
  repository = [...upstream.repositories.values()].find((one) => upstream.fullName(one) === world.first) as Repository;
  upstream.onEvent((event: WorldEvent) => {
    const { url: apiUrl, htmlUrl } = world.simulator;
    const payload = payloadOf(openView({ world: upstream, apiUrl, htmlUrl }), event);
    unsent.push({ event: event.event, action: event.action, payload: structuredClone(payload) });
  });
  server = await openTargetServer();
  const target = { url: server.url, contentType: "json", insecureSsl: false, secret: null, rewriteTo: null } as const;
  const all = { scope: { kind: "everything", id: 0 }, madeBy: "operator", events: ["*"], active: true } as const;
  targetId = (await createTarget(world.ctx, { ...target, ...all })).id;
});
afterEach(() => {
  server.heard.length = 0;
  unsent.length = 0;
});
afterAll(async () => {
  if (targetId) await removeTarget(world.ctx, targetId);
  await server?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

function pass(ms: number): void {
  (world.simulator.world.clock as SettableClock).advance(ms);
  world.advance(ms);
}

/** Lets the mirror find what has changed, as a catch-up does, or an audit too. */
async function find({ all = false } = {}): Promise<void> {
  pass(MINUTE);
  await world.catchUp();
  if (!all) return;
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal });
  await world.settleMarks();
}

/** Lets the time pass in which a webhook may still come. Answers how many events were made. */
async function make(): Promise<number> {
  pass(2 * MINUTE);
  return await makeEvents(world.ctx);
}

/** The open issues, or pull requests, that nothing else in this file has changed. */
const used = new Set<Issue>();
function nextOf<One extends Issue>(is: (issue: Issue) => issue is One): One {
  for (const issue of repository.rows.issuesByCreated.ascending()) {
    if (issue.state !== "open" || issue.locked || used.has(issue) || !is(issue)) continue;
    used.add(issue);
    return issue;
  }
  throw new Error("Upstream has too few issues");
}
const issue = (): Issue =>
  nextOf((one): one is Issue => !one.pull && [...one.labelIds, ...one.assigneeIds].length === 0 && !one.milestoneId);
const pull = (): PullIssue =>
  nextOf(
    (one): one is PullIssue => isPull(one) && world.simulator.world.repositories.has(one.pull.head.repositoryId ?? 0),
  );

/** Keys whose values move with later changes. */
const MOVING = ["updated_at", "open_issues", "open_issues_count", "pushed_at", "closed_issues", "comments"];
/** Keys that upstream works out once it is asked. */
const WORKED_OUT = ["mergeable", "mergeable_state", "rebaseable", "merge_commit_sha"];

function still(payload: unknown): unknown {
  return JSON.parse(
    JSON.stringify(payload, (key, value) => ([...MOVING, ...WORKED_OUT].includes(key) ? undefined : value)),
  );
}

test("each kind of change that no webhook told of is told once, in upstream's own form, and marked", async () => {
  const upstream = world.simulator.world;
  const { ownerId: by } = repository;
  const other =
    [...upstream.users.values()].find(({ id, type }) => id !== by && type === "User" && id !== 10_137)?.id ?? 0;
  pass(MINUTE);
  const [label, renamed] = ["found", "to be renamed"].map((name) => createLabel(upstream, by, { repository, name }));
  const [milestone, moved] = ["found", "to be moved"].map((title) =>
    createMilestone(upstream, by, { repository, title }),
  );
  if (!label || !renamed || !milestone || !moved) throw new Error("Upstream made none");
  const carrier = issue();
  const comment = createComment(upstream, by, carrier, "as it was");
  const doomed = createComment(upstream, by, issue(), "to be deleted");
  const reviewed = pull();
  const review = createReview(upstream, other, reviewed, { state: "APPROVED", body: "good" });
  await find({ all: true });
  await server.hears(await make());
  server.heard.length = 0;
  unsent.length = 0;

  createIssue(upstream, by, { repository, title: "nobody was told", body: "a body" });
  editIssue(upstream, by, issue(), { title: "reworded", body: "anew" });
  editIssue(upstream, by, issue(), { state: "closed" });
  editIssue(upstream, by, issue(), { labelIds: [label.id] });
  editIssue(upstream, by, issue(), { assigneeIds: [other] });
  editIssue(upstream, by, issue(), { milestoneId: milestone.id });
  lockIssue(upstream, by, issue());
  deleteIssue(upstream, by, issue());
  createComment(upstream, other, issue(), "said");
  editComment(upstream, by, comment, "as it is");
  deleteComment(upstream, by, doomed);
  editLabel(upstream, by, renamed, { name: "found again" });
  editMilestone(upstream, by, moved, { title: "found again" });
  pushToPull(upstream, by, pull());
  mergePull(
    upstream,
    other,
    nextOf((one): one is PullIssue => isPull(one) && !one.pull.draft),
  );
  setDraft(
    upstream,
    by,
    nextOf((one): one is PullIssue => isPull(one) && !one.pull.draft),
    true,
  );
  requestReviewers(
    upstream,
    by,
    nextOf(
      (one): one is PullIssue => isPull(one) && one.pull.requestedReviewerIds.length === 0 && one.authorId !== other,
    ),
    [other],
  );
  createReview(upstream, other, pull(), { state: "COMMENTED", body: "read" });
  dismissReview(upstream, by, review);
  await find({ all: true });
  await server.hears(await make());
  // The mirror holds nothing of pushes.
  const told = unsent.filter(({ event }) => event !== "push" && event !== "create");
  const names = (all: { event: string; action: string | null }[]) =>
    all.map(({ event, action }) => `${event} ${action}`).sort();
  expect(names(server.heard.map(({ event, payload }) => ({ event, action: payload.action })))).toEqual(names(told));
  for (const { event, payload, headers } of server.heard) {
    expect(headers["x-tain-made"]).toBe("true");
    expect(mismatch(event, payload)).toBeNull();
    const real = told.find((one) => one.event === event && one.action === payload.action);
    expect(still(payload), `${event} ${payload.action}`).toEqual(still({ ...real?.payload, sender: payload.sender }));
  }
});

test("a first copy tells of nothing", async () => {
  const { ctx } = world;
  const before = await ctx.db.count(sql`select from events where is_made`);
  pass(MINUTE);
  const upstream = world.simulator.world;
  generateWorld(upstream, { seed: 11, repositories: 1, issues: 3, pulls: 1 });
  const fullName = [...upstream.repositories.values()].map((one) => upstream.fullName(one)).at(-1) ?? "";
  await world.mirror(fullName);
  await world.catchUp();
  expect(await make()).toBe(0);
  expect(await ctx.db.count(sql`select from events where is_made`)).toBe(before);
});

/** What upstream sends of what was just done, as it would have sent it then. */
function lastUnsent(action: string): { event: string; payload: object } {
  const found = unsent.findLast((one) => one.action === action) ?? expect.fail(`Upstream did not say ${action}`);
  return { event: found.event, payload: found.payload };
}

const heardOf = () => server.heard.map(({ payload, headers }) => [payload.action, headers["x-tain-made"] ?? "sent"]);

test("a webhook that comes soon is told, and nothing is made", async () => {
  pass(MINUTE);
  const one = issue();
  editIssue(world.simulator.world, repository.ownerId, one, { state: "closed" });
  await find();
  const { payload } = lastUnsent("closed");
  const guid = await tell(world, { event: "issues", payload });
  await server.hears(1);
  expect(await make()).toBe(0);
  expect(heardOf()).toEqual([["closed", "sent"]]);
  expect(server.heard[0]).toMatchObject({ guid, body: JSON.stringify(payload) });
});

test("a webhook that comes after its event was made is not told, and one of something newer is", async () => {
  const upstream = world.simulator.world;
  const { ownerId: by } = repository;
  pass(MINUTE);
  const one = issue();
  editIssue(upstream, by, one, { state: "closed" });
  const closed = lastUnsent("closed");
  await find();
  await server.hears(await make());
  await tell(world, closed);
  await world.settle();
  pass(MINUTE);
  editIssue(upstream, by, one, { state: "open" });
  await tell(world, lastUnsent("reopened"));
  await world.settle();
  // Two webhooks say the same: the old one arrives again, and a new one tells of a new closing.
  await tell(world, closed);
  await world.settle();
  pass(MINUTE);
  editIssue(upstream, by, one, { state: "closed" });
  await tell(world, lastUnsent("closed"));
  await server.hears(3);
  await world.settle();
  expect(heardOf()).toEqual([
    ["closed", "true"],
    ["reopened", "sent"],
    ["closed", "sent"],
  ]);
  await find();
  expect(await make()).toBe(0);
});

test("a webhook that waits while an event is made of something older is told behind it", async () => {
  const upstream = world.simulator.world;
  pass(MINUTE);
  const one = issue();
  editIssue(upstream, repository.ownerId, one, { title: "nobody was told" });
  await find();
  pass(2 * MINUTE);
  editIssue(upstream, repository.ownerId, one, { title: "told" });
  const payload = Buffer.from(JSON.stringify(lastUnsent("edited").payload));
  const { repositoryId, ...keys } = keysOf(JSON.parse(payload.toString()));
  const about = {
    hookId: 1,
    guid: randomUUID(),
    event: "issues",
    payload,
    signer: null,
    traceparent: null,
    isMade: false,
  };
  await storeDelivery(world.ctx, { ...about, ...keys, repositoryId, receivedAt: world.ctx.clock.now() });
  // A process that stops makes no more.
  expect(await makeEvents(world.ctx, AbortSignal.abort())).toBe(0);
  // The stored delivery is not applied yet.
  expect(await makeEvents(world.ctx)).toBe(1);
  await dispatchPending({ ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + MINUTE) } });
  await server.hears(2);
  expect(server.heard.map(({ payload }) => payload.issue.title)).toEqual(["nobody was told", "told"]);
  expect(heardOf().map(([, by]) => by)).toEqual(["true", "sent"]);
});

test("what a webhook shows of another change, whose own webhook is lost, has an event of its own", async () => {
  const upstream = world.simulator.world;
  const { ownerId: by } = repository;
  pass(MINUTE);
  const one = issue();
  editIssue(upstream, by, one, { state: "closed" });
  createComment(upstream, by, one, "closed it");
  await tell(world, lastUnsent("created"));
  await server.hears(1);
  await server.hears(1 + (await make()));
  expect(heardOf()).toEqual([
    ["created", "sent"],
    ["closed", "true"],
  ]);
  await find();
  expect(await make()).toBe(0);
});

test("who is not known to have closed an issue is nobody, also for a mirror of this mirror", async () => {
  const upstream = world.simulator.world;
  pass(MINUTE);
  const one = issue();
  const { closed_by: before } = (await world.get(`/repos/${world.first}/issues/${one.number}`)).body as {
    closed_by: null;
  };
  editIssue(upstream, repository.ownerId, one, { state: "closed" });
  const { payload } = lastUnsent("closed");
  const sender = { ...(payload as { sender: object }).sender, id: 10_137, login: "ghost" };
  await tell(world, { event: "issues", payload: { ...payload, sender } });
  await server.hears(1);
  const shown = (await world.get(`/repos/${world.first}/issues/${one.number}`)).body;
  expect([before, shown]).toEqual([null, expect.objectContaining({ state: "closed", closed_by: null })]);
});

test("what has come and gone before anything could be made of it is not told", async () => {
  const upstream = world.simulator.world;
  const { ownerId: by } = repository;
  pass(MINUTE);
  const one = issue();
  const { title } = one;
  editIssue(upstream, by, one, { title: "for a moment" });
  await world.catchUp();
  pass(11_000);
  editIssue(upstream, by, one, { title });
  await world.catchUp();
  expect(await make()).toBe(0);
});

test("what is written through the mirror is told once, and the feed says that we made it", async () => {
  pass(MINUTE);
  const one = issue();
  await using feed = await FeedReader.open({ url: world.url, token: world.token, query: "?event=issue_comment" });
  const answer = await fetch(`${world.url}/repos/${world.first}/issues/${one.number}/comments`, {
    method: "POST",
    headers: { authorization: `token ${world.token}`, "user-agent": "test" },
    body: JSON.stringify({ body: "written here" }),
  });
  expect(answer.status).toBe(201);
  await find();
  const [made, again] = [await make(), await make()];
  expect([made, again]).toEqual([1, 0]);
  expect(await feed.next()).toMatchObject({
    ...{ type: "com.github.issue_comment.created", subject: `issues/${one.number}`, tainmade: true },
    data: { action: "created", comment: { body: "written here" }, sender: { login: expect.any(String) } },
  });
  await server.hears(1);
});

test("two workers that make events at once make each once", async () => {
  pass(MINUTE);
  for (let at = 0; at < 5; at++) createComment(world.simulator.world, repository.ownerId, issue(), `comment ${at}`);
  await find();
  pass(2 * MINUTE);
  const made = await Promise.all([1, 2, 3].map(() => makeEvents(world.ctx)));
  expect(made.reduce((sum, one) => sum + one, 0)).toBe(5);
  await server.hears(5);
  expect(new Set(server.heard.map(({ guid }) => guid)).size).toBe(5);
  const figures = await world.ctx.metrics.text();
  expect(figures).toMatch(/^tain_events_made_total\{event="issue_comment"\} [1-9]\d*$/m);
});

test("repositories whose events cannot be made hold up no other, and are left alone for a while", async () => {
  const { db } = world.ctx;
  // As many changes as one call takes. All were found before any other.
  const failing = 100;
  pass(MINUTE);
  await db.query(sql`insert into found_changes (repository_id, kind, key, aspect, was, found_at)
    select 990000000 + n, 'repository', 990000000 + n, 'exists', 'false'::json, ${new Date(0)} from generate_series(1, ${failing}) as n`);
  await db.query(sql`create function refuse_change() returns trigger language plpgsql as
    $$ begin raise exception 'no events of %', old.repository_id; end $$`);
  await db.query(sql`create trigger refuse_change before update or delete on found_changes
    for each row when (old.repository_id > 990000000) execute function refuse_change()`);
  try {
    editIssue(world.simulator.world, repository.ownerId, issue(), { title: "found behind those that fail" });
    await find();
    expect(await make()).toBe(0);
    // The failing changes rest, or come after the good one.
    expect(await makeEvents(world.ctx)).toBe(1);
    await server.hears(1);
    const problems = await db.query<{ problem: string; waits: boolean }>(sql`
      select problem, next_at > failed_at as waits from problems where task = 'events' order by repository_id`);
    expect(problems).toHaveLength(failing);
    const problem = "Tain itself failed, and its log says where: no events of 990000001";
    expect(problems[0]).toEqual({ problem, waits: true });
  } finally {
    await db.query(sql`drop function refuse_change() cascade`);
  }
  // Each is tried again once its time has come, and what is over is forgotten.
  expect(await make()).toBe(0);
  expect(await db.query(sql`select from problems where task = 'events'`)).toEqual([]);
});

test("an event shows no deleted label where the mirror still has it on the issue, and no gap in its place", async () => {
  const upstream = world.simulator.world;
  const { ownerId: by } = repository;
  const label = createLabel(upstream, by, { repository, name: "soon gone" });
  const other = createLabel(upstream, by, { repository, name: "stays" });
  const carrier = issue();
  editIssue(upstream, by, carrier, { labelIds: [label.id, other.id] });
  await find({ all: true });
  await server.hears(await make());
  server.heard.length = 0;

  editIssue(upstream, by, carrier, { title: "reworded once more" });
  createComment(upstream, by, carrier, "nobody was told of it");
  pass(MINUTE);
  await world.catchUp();
  // As a label's own deletion is heard, before upstream shows its issues without it.
  const bury = (at: Date | null) =>
    world.ctx.db.query(sql`
    update labels set deleted_at = ${at}, revision = nextval('revision') where id = ${label.id}`);
  await bury(world.ctx.clock.now());
  await server.hears(await make());
  const labels = server.heard.flatMap(({ payload }) => {
    const { issue: shown } = payload as { issue?: { labels: ({ name: string } | null)[] } };
    return shown ? [shown.labels.map((one) => one?.name)] : [];
  });
  expect(labels).toEqual([["stays"], ["stays"]]);
  await bury(null);
});
