/**
 * Observations that contradict each other within one second. Tain asks upstream about them once, together with all else
 * that is due, for one point.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { MARK_COLUMNS, type Mark, storeMarks } from "../../src/mirror/store/marks.ts";
import { deleteComment } from "../../src/simulator/changes/comments.ts";
import { editIssue, lockIssue, unlockIssue } from "../../src/simulator/changes/issues.ts";
import { editLabel } from "../../src/simulator/changes/labels.ts";
import { mergePull } from "../../src/simulator/changes/pulls.ts";
import { createReviewComment, dismissReview } from "../../src/simulator/changes/reviews.ts";
import type { HttpFault } from "../../src/simulator/faults/faults.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Issue, PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { reportedChangesOf } from "../../src/sync/found/reported-changes.ts";
import { tryAlone } from "../../src/sync/problems/isolated.ts";
import { tryAgain } from "../../src/sync/problems/problems.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { UpstreamRefusedError } from "../../src/upstream/protocol/errors.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { paced, pass } from "../support/paced.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTE = 60_000;
let world: TestWorld;
let repository: Repository;
let by: number;
let issues: Issue[];

beforeAll(async () => {
  world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 12, pulls: 24 }),
  });
  const { ctx, simulator } = world;
  const [first] = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  if (!first) throw new Error("The generated repository is not there");
  repository = first;
  by = repository.ownerId;
  issues = [...simulator.world.issues.values()].filter((one) => one.repository === repository && !one.deleted);
  await addSelections(ctx, [world.first]);
  await paced(world, () => resolveSelections(ctx));
  await paced(world, () => backfill(ctx, { repositoryId: repository.id }, new AbortController().signal));
  await world.listen(world.first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

beforeEach(async () => {
  await refreshAll(world.ctx);
  pass(world, MINUTE);
  world.simulator.meter.reset();
});

async function apply(): Promise<void> {
  await world.simulator.quiet();
  const rows = await world.ctx.db.query<{ id: string }>(sql`
    select id from deliveries where status = 'pending' order by received_at`);
  const outcomes = await applyDeliveries(
    world.ctx,
    rows.map(({ id }) => id),
  );
  expect([...outcomes.values()].filter((one) => typeof one !== "string")).toEqual([]);
}

async function marks(): Promise<Mark[]> {
  return await world.ctx.db.query<Mark>(sql`select ${MARK_COLUMNS} from refresh_marks m order by m.kind, m.key`);
}

/** Refreshes all marks, at the moments at which they are due. */
async function refreshAll(ctx: Context): Promise<void> {
  const refreshes = new Refreshes(ctx);
  for (let round = 0; round < 5; round++) {
    pass(world, MINUTE);
    await Promise.all((await marks()).map((mark) => refreshes.refresh(mark)));
  }
}

const differences = async () => (await compare(world.ctx, world.simulator, world.first)).differences;

function plain(count: number): Issue[] {
  const found = issues.filter(({ pull, locked }) => !pull && !locked).slice(0, count);
  if (found.length < count) throw new Error(`The world has fewer than ${count} unlocked issues`);
  return found;
}

/** Makes changes that do not move the `updated_at` of what they change. */
function changeWithoutTime(): void {
  const upstream = world.simulator.world;
  const [locked] = plain(1);
  const comment = [...upstream.comments.values()].find((one) => !one.deleted && one.issue !== locked);
  const label = [...upstream.labels.values()].find((one) => one.repository === repository && !one.deleted);
  const review = [...upstream.reviews.values()].find(
    ({ state, deleted }) => ["APPROVED", "CHANGES_REQUESTED"].includes(state) && !deleted,
  );
  if (!locked || !comment || !label || !review) throw new Error("The world lacks something to change");
  lockIssue(upstream, by, locked, "off-topic");
  deleteComment(upstream, by, comment);
  editLabel(upstream, by, label, { name: `${label.name} of old & new` });
  dismissReview(upstream, by, review);
}

function first<Value>(values: Iterable<Value>): Value {
  const [value] = values;
  if (value === undefined) throw new Error("The world lacks something to change");
  return value;
}

function merged(): Issue {
  const pull = first(issues.filter((one): one is PullIssue => one.state === "open" && one.pull?.draft === false));
  mergePull(world.simulator.world, by, pull);
  return pull;
}

test("contradictions and deletions that are due at one moment are one question, for a point", async () => {
  changeWithoutTime();
  await apply();
  const doubts = await marks();
  expect(doubts.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["issue", "issue_comment", "label", "review"]));
  expect(doubts.find(({ kind, keys }) => kind === "issue" && keys?.includes("locked"))?.keys).toEqual(
    expect.arrayContaining(["locked", "active_lock_reason"]),
  );
  await refreshAll(world.ctx);
  expect(await marks()).toEqual([]);
  expect(world.simulator.meter.read()).toMatchObject({ points: 1, charged: 1 });
  expect(await differences()).toEqual([]);
});

test("what GraphQL refuses, or does not tell for certain, REST tells", async () => {
  const { upstream } = world.ctx;
  const refusal = new UpstreamRefusedError(403, "GraphQL is not for this token", null);
  for (const graphql of [
    () => Promise.reject(refusal),
    async (...asked: Parameters<typeof upstream.graphql>) => {
      const answer = await upstream.graphql(...asked);
      const data = Object.fromEntries(
        Object.entries(answer.data).map(([alias, nodes]) => [
          alias,
          Array.isArray(nodes) ? nodes.map(() => null) : nodes,
        ]),
      );
      return { ...answer, data, errors: [] };
    },
  ]) {
    changeWithoutTime();
    await apply();
    await refreshAll(withUpstream(world.ctx, { graphql }));
    expect(await marks()).toEqual([]);
    expect(await differences()).toEqual([]);
  }
});

test("a contradiction that GraphQL does not show whole is read by REST", async () => {
  const upstream = world.simulator.world;
  const [issue] = plain(1);
  if (!issue) throw new Error("The world lacks something to change");
  // Everything below happens within one second.
  pass(world, 1_000 - (upstream.clock.now() % 1_000));
  editIssue(upstream, by, issue, { assigneeIds: [by], title: "in one second" });
  lockIssue(upstream, by, issue, "too heated");
  editIssue(upstream, by, issue, { assigneeIds: [] });
  unlockIssue(upstream, by, issue);
  await apply();
  const [doubt] = await marks();
  expect(doubt?.keys).toEqual(expect.arrayContaining(["assignees", "locked"]));
  await refreshAll(world.ctx);
  expect(await marks()).toEqual([]);
  expect(world.simulator.meter.read().charged).toBeGreaterThan(1);
  expect(await differences()).toEqual([]);
});

test("a reason to ask that names no keys puts all of them in doubt, also from a process that knows none", async () => {
  const [issue] = plain(1);
  if (!issue) throw new Error("No issue is left");
  lockIssue(world.simulator.world, by, issue);
  await apply();
  expect((await marks()).map(({ keys }) => keys !== null)).toEqual([true]);
  // This is how an older Tain stores a mark.
  await world.ctx.db.query(sql`
    update refresh_marks set asked_at = asked_at + interval '1 second'`);
  expect((await marks()).map(({ keys }) => keys)).toEqual([null]);
  await refreshAll(world.ctx);
  expect(await marks()).toEqual([]);
  expect(world.simulator.meter.read().points).toBe(0);
});

test.each<{ what: string; kind: "issue" | "pull_request"; fault: Pick<HttpFault, "kind" | "as" | "status"> }>([
  { what: "issues are off", kind: "issue", fault: { kind: "refusal", as: "issues-off" } },
  { what: "the issue's address is gone", kind: "issue", fault: { kind: "status", status: 410 } },
  { what: "the pull request's address is gone", kind: "pull_request", fault: { kind: "status", status: 410 } },
])("where $what and the other side is shown, neither side of a pull request is deleted", async ({ kind, fault }) => {
  const { ctx, simulator } = world;
  const pull = issues.find((one) => one.pull !== null);
  if (!pull) throw new Error("The world has no pull request");
  const wanted = { kind, repositoryId: repository.id, key: pull.number };
  const now = ctx.clock.now();
  await storeMarks(ctx.db, [{ ...wanted, askedAt: now, notBefore: now }]);
  const side = kind === "issue" ? "issues" : "pulls";
  simulator.setFaults({ http: [{ match: `GET /repositories/\\d+/${side}/${pull.number}$`, ...fault }] });
  await refreshAll(ctx);
  expect(simulator.faults.struck.size).toBe(1);
  simulator.setFaults({});
  expect(await marks()).toEqual([]);
  expect(await differences()).toEqual([]);
});

test.each([
  { what: "an issue that upstream refuses to show", fault: { kind: "status", status: 422 } as const },
  { what: "a repository whose issues need a permission", fault: { kind: "refusal", as: "permission" } as const },
])("$what costs twelve requests a day at most, however often it is in doubt", async ({ fault }) => {
  const { ctx, simulator } = world;
  const [issue] = plain(1);
  if (!issue) throw new Error("No issue is left");
  const wanted = { kind: "issue" as const, repositoryId: repository.id, key: issue.number };
  const now = ctx.clock.now();
  await storeMarks(ctx.db, [{ ...wanted, askedAt: now, notBefore: now }]);
  simulator.setFaults({ http: [{ match: `GET /repositories/\\d+/issues/${issue.number}$`, ...fault }] });
  const refreshes = new Refreshes(ctx);
  // Works as the dispatcher does, which gives out what is due.
  for (let minutes = 0; minutes < 24 * 60; minutes += 10) {
    pass(world, 10 * MINUTE);
    await refreshes.refresh(wanted);
  }
  const asked = [...simulator.faults.struck.values()].reduce((sum, times) => sum + times, 0);
  expect(asked).toBeGreaterThan(3);
  expect(asked).toBeLessThanOrEqual(12);
  simulator.setFaults({});
  pass(world, 5 * 60 * MINUTE);
  await refreshAll(ctx);
  expect(await marks()).toEqual([]);
});

test("a reason to ask that comes while a read fails is not put off with that read", async () => {
  const { ctx } = world;
  const [issue] = plain(1);
  if (!issue) throw new Error("No issue is left");
  const wanted = { kind: "issue" as const, repositoryId: repository.id, key: issue.number };
  const now = ctx.clock.now();
  await storeMarks(ctx.db, [{ ...wanted, askedAt: now, notBefore: now }]);
  const newer = new Date(now.getTime() + 1_000);
  let asked = 0;
  const failing = withUpstream(ctx, {
    get: async () => {
      asked++;
      await storeMarks(ctx.db, [{ ...wanted, askedAt: newer, notBefore: newer }]);
      throw new UpstreamRefusedError(422, "not now", null);
    },
  });
  expect(await new Refreshes(failing).refresh(wanted)).toBe("kept");
  expect(asked).toBe(1);
  expect(await marks()).toMatchObject([{ ...wanted, askedAt: newer, notBefore: now }]);
  // The newer reason is asked about although the failure still rests.
  pass(world, MINUTE);
  await new Refreshes(ctx).refresh(wanted);
  expect(await marks()).toEqual([]);
});

test("a reason to try again that comes while a try fails stands, and a second one is seen as well", async () => {
  const { ctx } = world;
  const subject = { task: "select" as const, key: "nobody/refused", repositoryId: null };
  let tries = 0;
  const fail = (during = async () => {}) =>
    tryAlone(ctx, subject, async () => {
      tries++;
      await during();
      throw new UpstreamRefusedError(422, "not now", null);
    });
  const again = () => tryAgain(ctx.db, { task: subject.task, keys: [subject.key] });
  await fail();
  await fail();
  expect(tries).toBe(1); // The failure rests.
  await again();
  await fail(again);
  await fail(again);
  await fail();
  expect(tries).toBe(4);
  await fail();
  expect(tries).toBe(4); // No new reason came, so the failure rests once more.
});

test("a delivery with what no column holds fails alone, or is stored as it can be, and no other of its batch fails", async () => {
  const { ctx, simulator } = world;
  const lies = [
    { issue: { number: 2 ** 31 } },
    { issue: { id: 2 ** 53, number: 1.5 } },
    { issue: { comments: 2 ** 31, created_at: null } },
    { issue: { updated_at: "999999-01-01T00:00:00Z" } },
    { issue: { created_at: "no moment" }, sender: { id: null, login: null } },
    { sender: { id: 1e300 } },
  ];
  const edited = plain(lies.length + 1);
  for (const issue of edited) editIssue(simulator.world, by, issue, { title: `edited ${issue.number}` });
  await simulator.quiet();
  const rows = await ctx.db.query<{ id: string; payload: string }>(sql`
    select id, convert_from(payload, 'UTF8') as payload from deliveries where status = 'pending' order by received_at`);
  expect(rows).toHaveLength(edited.length);
  for (const [at, lie] of lies.entries()) {
    const { id = "", payload = "" } = rows[at] ?? {};
    const told = JSON.parse(payload);
    for (const [part, fields] of Object.entries(lie)) Object.assign(told[part], fields);
    await ctx.db.query(
      sql`update deliveries set payload = convert_to(${JSON.stringify(told)}, 'UTF8') where id = ${id}`,
    );
  }
  const outcomes = await applyDeliveries(
    ctx,
    rows.map(({ id }) => id),
  );
  const told = rows.map(({ id }) => outcomes.get(id));
  expect(told.map((one) => (typeof one === "string" ? one : one?.name))).toEqual([
    ...["InvalidPayloadError", "InvalidPayloadError", "applied", "applied", "applied"],
    ...["InvalidPayloadError", "applied"],
  ]);
});

test("a doubt about a key that every object inherits asks no other question than its own", async () => {
  const { ctx, simulator } = world;
  const [{ number }] = plain(1) as [Issue];
  const keys = ["constructor", "hasOwnProperty", "toString"];
  const now = ctx.clock.now();
  const asked = { kind: "issue" as const, repositoryId: repository.id, key: number };
  await storeMarks(ctx.db, [{ ...asked, askedAt: now, notBefore: now, keys }]);
  const documents: string[] = [];
  await refreshAll(
    withUpstream(ctx, {
      graphql: async (document, ...rest) => {
        documents.push(document);
        return await ctx.upstream.graphql(document, ...rest);
      },
    }),
  );
  expect(documents.filter((document) => document.includes("native code"))).toEqual([]);
  expect(await marks()).toEqual([]);
  expect(simulator.meter.read()).toMatchObject({ points: 1 });
  const payload = { action: "edited", issue: { number, title: "one" }, changes: { hasOwnProperty: {}, title: {} } };
  expect(reportedChangesOf("issues", payload, repository.id).map(({ aspect }) => aspect)).toEqual(["title"]);
});

/** Changes of which no webhook arrives, with the keys that they put in doubt. The mirror lacks the rest of them. */
const UNTOLD: { kind: "issue" | "pull_request"; keys: string[]; change: () => Issue }[] = [
  {
    kind: "issue",
    keys: ["state", "closed_at", "state_reason", "closed_by"],
    change: () =>
      editIssue(world.simulator.world, by, first(issues.filter(({ pull, state }) => !pull && state === "open")), {
        state: "closed",
      }),
  },
  {
    kind: "issue",
    keys: ["milestone"],
    change: () => {
      const issue = first(issues.filter(({ pull, milestoneId }) => !pull && milestoneId === null));
      const { milestoneId } = first(issues.filter((one) => !one.pull && one.milestoneId !== null));
      return editIssue(world.simulator.world, by, issue, { milestoneId });
    },
  },
  {
    kind: "pull_request",
    keys: ["milestone"],
    change: () => {
      const issue = first(issues.filter(({ pull, milestoneId }) => pull && milestoneId !== null));
      return editIssue(world.simulator.world, by, issue, { milestoneId: null });
    },
  },
  { kind: "issue", keys: ["pull_request", "state", "closed_at"], change: () => merged() },
  { kind: "pull_request", keys: ["merged", "merged_at", "merged_by", "merge_commit_sha"], change: () => merged() },
  {
    kind: "pull_request",
    keys: ["review_comments"],
    change: () => {
      const { issue } = first(world.simulator.world.reviewComments.values());
      createReviewComment(world.simulator.world, by, issue, { body: "unheard", path: "a.txt", line: 1 });
      return issue;
    },
  },
];

test.each(UNTOLD)("GraphQL tells $keys of $kind together with other doubts", async ({ kind, keys, change }) => {
  const { ctx, simulator } = world;
  const { number } = change();
  await simulator.quiet();
  await ctx.db.query(sql`delete from deliveries where status = 'pending'`);
  const isAsked = (ofKind: string, path: string) =>
    ofKind === kind && keys.some((key) => path === key || path === `${key}.merged_at`);
  const wrong = async () =>
    (await compare(ctx, simulator, world.first, (...of) => !isAsked(of[0], of[1]))).differences.filter((line) =>
      line.startsWith(`${kind} ${number} `),
    );
  expect(await wrong()).not.toEqual([]);
  const now = ctx.clock.now();
  await storeMarks(ctx.db, [{ kind, repositoryId: repository.id, key: number, askedAt: now, notBefore: now, keys }]);
  await refreshAll(ctx);
  expect(await marks()).toEqual([]);
  expect(simulator.meter.read()).toMatchObject({ points: 1, charged: 1 });
  expect(await wrong()).toEqual([]);
});
