/** A mirror that another mirror follows, and a third that follows that one. */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type MarkKind, WHOLE_KINDS } from "../../db/schema/states.ts";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { changeTarget, listTargets } from "../../src/events/target.ts";
import { storeMarks } from "../../src/mirror/store/marks.ts";
import { enqueueCatchUps } from "../../src/queues/queues.ts";
import { checkApp, createCheckRun, createStatus } from "../../src/simulator/changes/checks.ts";
import { pushToPull } from "../../src/simulator/changes/pulls.ts";
import { createRelease } from "../../src/simulator/changes/releases.ts";
import { createReviewComment } from "../../src/simulator/changes/reviews.ts";
import { resolveThread } from "../../src/simulator/changes/threads.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Issue, PullIssue } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { moveSubscriptions } from "../../src/sync/following/hook-subscriptions.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { forgetProblems } from "../../src/sync/problems/problems.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { askAt, rebased } from "../support/asking.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { type Follower, OF_CHAIN, openFollower, passMinute, settleChain, tokenOfFollower } from "../support/chain.ts";
import { compare } from "../support/comparison.ts";
import { OWNER, UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { openWorld, type TestWorld, untilIdle } from "../support/world.ts";

/** `CHANGES=500 npm test -- test/events/chain` makes more of them, and compares with a mirror that is alone. */
const CHANGES = Number(process.env.CHANGES ?? 12);
const isLarge = process.env.CHANGES !== undefined;
/** A catch-up comes every five minutes, and each mirror waits for the one before it. */
const MOST_MINUTES = 3 * 6;
const HOURLY_LIMIT = 4_321;
const MINUTE = 60_000;
/** The events of one change. */
const MOST_LOST = 5;

let world: TestWorld;
let middle: Follower;
let leaf: Follower;
const chain = () => [world, middle, leaf];

beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 7, repositories: 1, issues: 30, pulls: 15 });
      for (const one of upstream.repositories.values()) {
        one.visibility = "private";
        if (!one.fork) addCode(upstream, one, {}, 7, upstream.now());
      }
    },
    simulator: { worldOptions: { mergeableDelayMs: 20 } },
    env: OF_CHAIN,
  });
  const fullName = world.first;
  await world.mirror(fullName);
  await world.listen(fullName);
  middle = await openFollower({ url: world.url, token: await tokenOfFollower(world, HOURLY_LIMIT), fullName });
  leaf = await openFollower({ url: middle.url, token: await tokenOfFollower(middle), fullName });
});
afterAll(async () => {
  await leaf?.[Symbol.asyncDispose]();
  await middle?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

const root = () => [...world.simulator.world.repositories.values()].find(({ fork }) => !fork);
const rootId = () => root()?.id ?? 0;
const issues = () => `/repos/${world.first}/issues`;

/** Moves all clocks on, without the jobs that become due. */
function advance(ms: number): void {
  // No type says that a simulator's clock is one that a test may set.
  (world.simulator.world.clock as SettableClock).advance(ms);
  for (const mirror of chain()) mirror.advance(ms);
}

/** A new contributor becomes one in all their earlier texts, and only an audit finds that. */
const differencesAt = async ({ ctx }: { ctx: Context }) =>
  (await compare(ctx, world.simulator, String(rootId()), (_kind, path) => path === "author_association")).differences;

/** Lets time pass until the leaf is equal to the root. Answers how many minutes that took. */
async function minutesUntilEqual(mirrors = chain()): Promise<number> {
  for (let minutes = 0; ; minutes++) {
    const left = await differencesAt(leaf);
    if (left.length === 0) return minutes;
    if (minutes === MOST_MINUTES) expect(left).toEqual([]);
    await passMinute(world.simulator, mirrors);
  }
}

/** One catch-up, as a sweep would ask for it, and nothing else that is due. */
async function caughtUp({ ctx }: { ctx: Context }): Promise<void> {
  await enqueueCatchUps(ctx, [rootId()]);
  await untilIdle(ctx);
}

const edit = async (number: number, title: string) => {
  const { status } = await askAt(world.simulator.url, "PATCH", `${issues()}/${number}`, {
    token: UPSTREAM_TOKEN,
    body: JSON.stringify({ title }),
  });
  expect(status).toBe(200);
};

const titleAt = async ({ url, token }: { url: string; token: string }, number: number) =>
  (await askAt(url, "GET", `${issues()}/${number}`, { token })).body.title;

test("what a mirror is asked costs the root nothing: its own quota is believed, and what is unchanged is free", async () => {
  await minutesUntilEqual();
  const limits = (await quotaReport(middle.ctx)).map(({ bucket, limit }) => [bucket, limit]);
  expect(limits).toEqual(expect.arrayContaining(["core", "graphql"].map((bucket) => [bucket, HOURLY_LIMIT])));
  await caughtUp(middle);
  const usedUp = async () => {
    const { body } = await askAt(world.url, "GET", "/rate_limit", { token: middle.upstreamToken });
    return [body.resources.core.used, body.resources.graphql.used];
  };
  const before = { used: await usedUp(), root: world.simulator.meter.read().requests };
  await caughtUp(middle);
  expect({ used: await usedUp(), root: world.simulator.meter.read().requests }).toEqual(before);
});

test("addresses at the leaf lead to the leaf, and what is written there is written at the root", async () => {
  const { text, body } = await askAt(leaf.url, "GET", `${issues()}?per_page=100&state=all`, { token: leaf.token });
  expect(body.length).toBeGreaterThan(30);
  for (const { url } of [world.simulator, world, middle]) expect(text).not.toContain(`${url}/`);
  expect(body[0].url).toBe(`${leaf.url}${issues()}/${body[0].number}`);
  const written = await askAt(leaf.url, "POST", issues(), {
    token: leaf.token,
    body: JSON.stringify({ title: "from below" }),
  });
  expect(written.status).toBe(201);
  const path = `${issues()}/${written.body.number}`;
  const atRoot = await askAt(world.simulator.url, "GET", path, { token: UPSTREAM_TOKEN });
  expect(atRoot.body).toMatchObject({ id: written.body.id, title: "from below" });
  await settleChain(world.simulator, chain());
  expect(await titleAt(leaf, written.body.number)).toBe("from below");
});

/** What hangs on commits, as upstream answers it. */
const partPaths = () => {
  const pull = openPull();
  const { sha } = pull.pull.head;
  return [
    ...["check-runs", "check-suites", "statuses"].map((list) => `/commits/${sha}/${list}`),
    ...["commits", "files"].map((list) => `/pulls/${pull.number}/${list}`),
    ...["/branches", "/tags", "/releases", "/releases/latest"],
  ];
};

function openPull(): PullIssue {
  const own = (one: Issue): one is PullIssue =>
    isPull(one) && one.state === "open" && one.pull.head.repositoryId === rootId();
  const pull = [...(root()?.rows.issuesByCreated.ascending() ?? [])].find(own);
  return pull ?? expect.fail("No pull request is open");
}

async function threadsAt(base: string, token: string) {
  const [owner, name] = world.first.split("/");
  const query = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { reviewThreads(first: 100) { totalCount nodes { id isResolved path comments(first: 100) { nodes { id } } } } } } }`;
  const body = JSON.stringify({ query, variables: { owner, name, number: openPull().number } });
  return (await askAt(base, "POST", "/graphql", { token, body })).body;
}

/** The paths that the leaf does not answer itself, or answers differently from the root. */
async function differingParts(): Promise<{ path: string; isHeld: boolean }[]> {
  const differing: { path: string; isHeld: boolean }[] = [];
  for (const below of partPaths()) {
    const path = `/repos/${world.first}${below}`;
    const atLeaf = await askAt(leaf.url, "GET", path, { token: leaf.token });
    const atRoot = await askAt(world.simulator.url, "GET", path, { token: UPSTREAM_TOKEN });
    const isHeld = atLeaf.status === 200 && !atLeaf.headers.has("x-tain-passed-through");
    const isSame = isDeepStrictEqual(atLeaf.body, rebased(atRoot.text, world.simulator.url, leaf.url));
    if (!isHeld || !isSame) differing.push({ path: below, isHeld });
  }
  const [atLeaf, atRoot] = [
    await threadsAt(leaf.url, leaf.token),
    await threadsAt(world.simulator.url, UPSTREAM_TOKEN),
  ];
  if (!isDeepStrictEqual(atLeaf, atRoot))
    differing.push({ path: "reviewThreads", isHeld: atLeaf.errors === undefined });
  return differing;
}

async function untilSameParts(isWell: (left: readonly { isHeld: boolean }[]) => boolean = () => true): Promise<void> {
  for (let minutes = 0; ; minutes++) {
    const left = await differingParts();
    if (left.length === 0) return;
    if (minutes === MOST_MINUTES || !isWell(left)) expect(left).toEqual([]);
    await passMinute(world.simulator, chain());
  }
}

test("checks, commits, threads, branches, tags and releases come down to the leaf, and so do changes of them", async () => {
  // Nothing has changed yet. So the leaf has to leave these parts unknown, and must not say that there are none.
  await untilSameParts((left) => left.every(({ isHeld }) => !isHeld));
  if (!isLarge) return;
  const upstream = world.simulator.world;
  const repository = root() ?? expect.fail("There is no repository");
  const by = repository.ownerId;
  advance(MINUTE);
  pushToPull(upstream, by, openPull());
  const at = { repository, headSha: openPull().pull.head.sha };
  createCheckRun(upstream, by, { ...at, app: checkApp(upstream, "linter"), name: "build", conclusion: "failure" });
  createStatus(upstream, by, { repository, sha: at.headSha, state: "pending", context: "ci" });
  createRelease(upstream, by, { repository, tagName: "v7.0", name: "Seven" });
  const { id } = createReviewComment(upstream, by, openPull(), { body: "Why?", path: "README.md", line: 1 });
  resolveThread(upstream, by, openPull(), id, true);
  await settleChain(world.simulator, chain());
  await untilSameParts();
});

test("what one mirror wants beside what it follows, the mirror before it is asked for", async () => {
  const wantedOf = async () => (await listTargets(world.ctx)).flatMap(({ events }) => events);
  expect(await wantedOf()).not.toContain("star");
  const [target] = await listTargets(middle.ctx);
  if (!target) throw new Error("The leaf has no hook at the middle");
  await changeTarget(middle.ctx, target.id, { events: [...target.events, "star"] });
  await moveSubscriptions(middle.ctx);
  expect(await wantedOf()).toContain("star");
  // Addresses are rewritten as before.
  expect(await listTargets(world.ctx)).toMatchObject([{ rewriteTo: world.url }]);
});

test("a change that the first mirror learns of late comes down to the leaf, behind newer ones that were told", async () => {
  const [older = 0, newer = 0] = [...(root()?.rows.issuesByCreated.ascending() ?? [])].flatMap(({ pull, number }) =>
    pull ? [] : [number],
  );
  const [untold, told] = ["no webhook tells of it", "a webhook tells of it"] as const;
  world.simulator.setFaults({ webhooks: { drop: 1 } });
  await edit(older, untold);
  await world.simulator.quiet();
  world.simulator.setFaults({});
  advance(MINUTE);
  await edit(newer, told);
  await settleChain(world.simulator, chain());
  for (const mirror of [middle, leaf]) await caughtUp(mirror);
  expect([await titleAt(leaf, newer), await titleAt(leaf, older)]).toEqual([told, expect.not.stringMatching(untold)]);
  for (const mirror of chain()) await caughtUp(mirror);
  expect(await titleAt(leaf, older)).toBe(untold);
});

test("an event that the first mirror makes is told to the last one as such, once", async () => {
  const number = [...(root()?.rows.issuesByCreated.ascending() ?? [])].findLast(({ pull }) => !pull)?.number ?? 0;
  world.simulator.setFaults({ webhooks: { drop: 1 } });
  await edit(number, "told by the first mirror alone");
  await world.simulator.quiet();
  world.simulator.setFaults({});
  advance(MINUTE);
  await caughtUp(world);
  advance(2 * MINUTE);
  expect(await makeEvents(world.ctx)).toBeGreaterThan(0);
  await settleChain(world.simulator, chain());
  const heard = await leaf.ctx.db.query(sql`
    select e.is_made as "isMade", d.hook_id > 0 as "isSent" from events e join deliveries d on d.id = e.delivery_id
      where e.repository_id = ${rootId()} and e.event = 'issues' and e.action = 'edited' and e.number = ${number}`);
  expect(heard).toEqual([{ isMade: true, isSent: true }]);
  expect(await titleAt(leaf, number)).toBe("told by the first mirror alone");
});

test.each([
  ["by REST", null],
  ["by GraphQL", ["title"]],
])("while a mirror is in doubt about something, the next one does not believe it: asked %s", async (_, keys) => {
  const [number = 0] = [...(root()?.rows.issuesByCreated.ascending() ?? [])].map((issue) => issue.number);
  const wanted = { kind: "issue", repositoryId: rootId(), key: number } as const;
  const doubt = async ({ ctx }: { ctx: Context }) => {
    const askedAt = new Date(ctx.clock.now().getTime() - MINUTE);
    // The mark is not due yet, so no worker takes it.
    const notBefore = new Date(ctx.clock.now().getTime() + 60 * MINUTE);
    await storeMarks(ctx.db, [{ ...wanted, askedAt, notBefore, ...(keys && { keys }) }]);
  };
  const marks = sql`select from refresh_marks where kind = 'issue' and key = ${number}`;
  await doubt(world);
  await doubt(middle);
  const refreshes = new Refreshes(middle.ctx);
  expect(await refreshes.refresh(wanted)).toBe("kept");
  expect(await middle.ctx.db.count(marks)).toBe(1);
  await world.ctx.db.query(sql`delete from refresh_marks where kind = 'issue' and key = ${number}`);
  expect(await refreshes.refresh(wanted)).toBe("merged");
  expect(await middle.ctx.db.count(marks)).toBe(0);
});

test("of what another mirror asks for one by one it is said that it is in doubt, and of nothing else", async () => {
  const at = { askedAt: world.ctx.clock.now(), notBefore: new Date(world.ctx.clock.now().getTime() + 60 * MINUTE) };
  const repositoryId = rootId();
  const of = (kind: MarkKind, key: number) => ({ kind, repositoryId, key, ...at });
  await storeMarks(world.ctx.db, [...WHOLE_KINDS.map((kind) => of(kind, repositoryId)), of("label", 4711)]);
  const { headers } = await askAt(world.url, "GET", issues(), { token: world.token, headers: { prefer: "settled" } });
  expect(headers.get("x-tain-in-doubt")).toBe(`${repositoryId}/label/4711`);
  await world.ctx.db.query(sql`delete from refresh_marks where not_before = ${at.notBefore}`);
});

test("from a mirror that is still copying nothing is copied, and nothing is taken for deleted", async () => {
  const confirmed = sql`select confirmed_at as at from repository_syncs where repository_id = ${rootId()}`;
  const [before] = await middle.ctx.db.query<{ at: Date }>(confirmed);
  const confirm = (at: Date | null) =>
    middle.ctx.db.query(sql`update repository_syncs set confirmed_at = ${at} where repository_id = ${rootId()}`);
  // A catch-up that ends meanwhile would confirm it again.
  for (const { ctx } of [middle, leaf]) await untilIdle(ctx);
  await confirm(null);
  const stopped = new AbortController().signal;
  const auditing = audit(leaf.ctx, { repositoryId: rootId(), repair: true, anew: true, signal: stopped });
  await expect(auditing).rejects.toThrow("is still copying");
  await caughtUp(leaf);
  const problems = await leaf.ctx.db.query(sql`select task, problem from problems`);
  expect(problems).toEqual([{ task: "catch-up", problem: expect.stringContaining("is still copying") }]);
  await confirm(before?.at ?? null);
  await forgetProblems(leaf.ctx.db, { repositoryIds: [rootId()] });
});

test(`after ${CHANGES} changes at the root, two of which were not told, the leaf becomes equal by itself`, {
  timeout: LONG_TEST_MS,
}, async () => {
  const alone = isLarge ? await openAlone() : null;
  const mirrors = alone ? [...chain(), alone] : chain();
  await settleChain(world.simulator, mirrors);
  world.simulator.meter.reset();
  const since = world.ctx.clock.now();
  const live = world.simulator.startLive({ ratePerSecond: 0, seed: Number(process.env.SEED ?? 1) });
  const untold = new Map([
    [Math.ceil(CHANGES / 3), untoldByRoot],
    [Math.ceil((2 * CHANGES) / 3), untoldByFirst],
  ]);
  for (let step = 1; step <= CHANGES; step++) {
    const lose = untold.get(step) ?? ((change: () => unknown) => change());
    await lose(() => live.step());
    if (step % 10 === 0) await settleChain(world.simulator, mirrors);
  }
  await settleChain(world.simulator, mirrors);
  const delays = await delaysToLeaf(since);
  const differences = await differencesAt(leaf);
  const minutes = await minutesUntilEqual(mirrors);
  const { callers } = world.simulator.meter.read();
  const [paid, paidAlone] = [UPSTREAM_TOKEN, ALONE].map((token) =>
    Object.values(callers[token] ?? {}).reduce((sum, { charged }) => sum + charged, 0),
  );
  // The mirrors below the first ask the root nothing.
  expect(Object.keys(callers).filter((token) => token !== ALONE)).toEqual([UPSTREAM_TOKEN]);
  const at = (share: number) => delays[Math.min(delays.length - 1, Math.floor(delays.length * share))];
  const figures = { changes: CHANGES, events: delays.length, medianMs: at(0.5), p99Ms: at(0.99), minutes };
  printFigures("chain", { ...figures, differing: differences.length, paid, paidAlone });
});

/** Another mirror of the root, to compare with. */
const ALONE = "token-of-a-mirror-that-is-alone";

async function openAlone(): Promise<Follower> {
  world.simulator.tokens.create({ token: ALONE, login: OWNER, repositories: "all", write: true });
  const alone = await openFollower({ url: world.simulator.url, token: ALONE, fullName: world.first });
  onTestFinished(() => alone[Symbol.asyncDispose]());
  return alone;
}

async function untoldByRoot(change: () => unknown): Promise<void> {
  world.simulator.setFaults({ webhooks: { drop: 1 } });
  await change();
  await world.simulator.quiet();
  world.simulator.setFaults({});
}

/** Makes a change that the middle is not told of: a hook is never sent the events of a pause that its owner wished. */
async function untoldByFirst(change: () => unknown): Promise<void> {
  const [target] = await listTargets(world.ctx);
  if (!target) throw new Error("The middle has no hook at the first");
  await settleChain(world.simulator, chain());
  await changeTarget(world.ctx, target.id, { active: false });
  await change();
  await settleChain(world.simulator, chain());
  await changeTarget(world.ctx, target.id, { active: true });
}

/** From the receipt of each webhook at the first mirror until the leaf had applied it, in ms, the shortest first. */
async function delaysToLeaf(since: Date): Promise<number[]> {
  const first = await world.ctx.db.query<{ guid: string; at: Date }>(
    sql`select guid, received_at as at from deliveries where status = 'applied' and received_at >= ${since}`,
  );
  const applied = await leaf.ctx.db.query<{ guid: string; at: Date }>(
    sql`select guid, settled_at as at from deliveries where status = 'applied'`,
  );
  const byGuid = new Map(applied.map(({ guid, at }) => [guid, at.getTime()]));
  const delays = first.flatMap(({ guid, at }) => (byGuid.has(guid) ? [(byGuid.get(guid) ?? 0) - at.getTime()] : []));
  // Every webhook was applied, except those that were lost on purpose.
  expect(delays.length).toBeGreaterThanOrEqual(first.length - MOST_LOST);
  return delays.toSorted((a, b) => a - b);
}
