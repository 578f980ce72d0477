import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { pushToPull } from "../../src/simulator/changes/pulls.ts";
import { createReviewComment, deleteReviewComment } from "../../src/simulator/changes/reviews.ts";
import { resolveThread } from "../../src/simulator/changes/threads.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { reviewThreads, threadNodeId } from "../../src/simulator/graphql/review-thread.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markListsDue } from "../support/due.ts";
import { mirrorFirst, passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Threads of review comments, from the webhook to the answer. Each answer must equal upstream's, and the test knows
// whether upstream was asked.

let world: TestWorld;
let repository: Repository;

const HOUR = 3_600_000;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "threads" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 2, pulls: 16 });
      for (const one of filled.repositories.values()) one.visibility = "private";
      for (const pull of pullsOf([...filled.repositories.values()])) {
        const { ownerId: by } = pull.repository;
        for (const [at, path] of ["README.md", "src/main.ts"].entries()) {
          if (pull.number % 3 === 0) continue;
          const { id } = createReviewComment(filled, by, pull, { body: "why?", path, line: 3 + at });
          createReviewComment(filled, by, pull, { body: "so.", path, inReplyToId: id });
          if (at > 0) resolveThread(filled, by, pull, id, true);
        }
      }
    },
  });
  repository = await mirrorFirst(world);
  await world.settleMarks();
  world.simulator.meter.reset();
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const pass = (ms: number) => passRound(world, ms, markListsDue);

function pullsOf(repositories: readonly Repository[]): PullIssue[] {
  return repositories.flatMap(({ rows }) =>
    [...rows.issuesByCreated.ascending()].filter((one): one is PullIssue => isPull(one)),
  );
}

/** A pull request that has threads. */
function pullWith(state: "open" | "closed", at = 0): PullIssue {
  const pull = pullsOf([repository]).filter((one) => one.state === state && reviewThreads(one).length > 1)[at];
  if (!pull) throw new Error(`There are too few ${state} pull requests with threads`);
  return pull;
}

function threadOf(pull: PullIssue, at = 0) {
  const thread = reviewThreads(pull)[at];
  if (!thread) throw new Error("The pull request has too few threads");
  return { id: thread.id, isResolved: world.simulator.world.code.resolvedThreads.has(thread.id) };
}

/** Resolves the thread, or opens it again. */
function turn(pull: PullIssue, at = 0): void {
  const { id, isResolved } = threadOf(pull, at);
  resolveThread(world.simulator.world, repository.ownerId, pull, id, !isResolved);
}

async function ask(base: string, query: string, number: number, token: string) {
  const [owner, name] = world.first.split("/");
  const body = JSON.stringify({ query, variables: { owner, name, number } });
  return await askAt(base, "POST", "/graphql", { token, body });
}

const ON_PULL = (selection: string) =>
  `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { ${selection} } } }`;
const THREAD = `id isResolved isOutdated isCollapsed path line startLine originalLine originalStartLine diffSide startDiffSide subjectType
  resolvedBy { login databaseId } pullRequest { number title } repository { nameWithOwner }
  comments(first: 100) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { id body author { login } replyTo { id } } }`;
const THREADS = ON_PULL(
  `reviewThreads(first: 100) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { ${THREAD} } edges { node { id } } }`,
);

const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");

/** Expects the answer to equal upstream's, and to come from the mirror or from upstream. */
async function expectShown(pull: PullIssue, by: "the mirror" | "upstream", query = THREADS): Promise<void> {
  const [ours, theirs] = await Promise.all([
    ask(world.url, query, pull.number, UPSTREAM_TOKEN),
    ask(world.simulator.url, query, pull.number, UPSTREAM_TOKEN),
  ]);
  expect([pull.number, ours.status, isPassed(ours) ? "upstream" : "the mirror"]).toEqual([pull.number, 200, by]);
  expect(ours.body).toEqual(theirs.body);
}

test("the threads of every pull request are here as upstream shows them, for hardly a point", async () => {
  const { callers, routes } = world.simulator.meter.read();
  expect(
    Object.values(callers).reduce((sum, { core }) => sum + (core?.charged ?? 0), 0),
    JSON.stringify(routes),
  ).toBe(0);
  // Each list of threads and the first comment of each thread count as one request, and a hundred of these are a point.
  // The open pull requests cost one point and the others another. One more confirms the open ones.
  expect(Object.values(callers).reduce((sum, { graphql }) => sum + (graphql?.points ?? 0), 0)).toBeLessThanOrEqual(3);
  const all = pullsOf([repository]);
  expect(all.filter((one) => reviewThreads(one).length > 0).length).toBeGreaterThan(2);
  for (const pull of all) await expectShown(pull, "the mirror");
});

test("pages lead to each other, from either end", async () => {
  const pull = pullWith("open");
  const page = async (list: string) => {
    const { body } = await ask(
      world.url,
      ON_PULL(`reviewThreads(${list}) { pageInfo { hasNextPage hasPreviousPage startCursor endCursor } nodes { id } }`),
      pull.number,
      world.token,
    );
    return body.data.repository.pullRequest.reviewThreads;
  };
  const ids = (shown: { nodes: { id: string }[] }) => shown.nodes.map(({ id }) => id);
  const whole = ids(await page("first: 100"));
  const first = await page("first: 1");
  const rest = await page(`first: 100, after: "${first.pageInfo.endCursor}"`);
  const last = await page("last: 1");
  expect([first.pageInfo.hasNextPage, rest.pageInfo.hasNextPage, last.pageInfo.hasPreviousPage]).toEqual([
    true,
    false,
    true,
  ]);
  expect([...ids(first), ...ids(rest)]).toEqual(whole);
  expect(ids(last)).toEqual(whole.slice(-1));
});

test("a thread that is resolved is upstream's to show until it is read again, and so is one that is opened again", async () => {
  const pull = pullWith("open");
  for (let times = 0; times < 2; times++) {
    turn(pull);
    await world.settle();
    await expectShown(pull, "upstream");
    await pass(60_000);
    await expectShown(pull, "the mirror");
  }
});

test("what a lagging replica shows of before is not believed", async () => {
  const pull = pullWith("open");
  const { simulator, ctx } = world;
  simulator.setFaults({ lagMs: 30_000 });
  turn(pull, 1);
  await world.settle();
  // Something else has the lists read before the replica knows of the change.
  await ctx.db.query(sql`
    update mirrored_lists set read_at = null where repository_id = ${repository.id} and number = ${pull.number}`);
  await pass(1_000);
  simulator.setFaults({});
  await expectShown(pull, "upstream");
  await pass(60_000);
  await expectShown(pull, "the mirror");
});

test("an answer is in its thread at once, and what begins a thread leaves them to upstream until they are read", async () => {
  const pull = pullWith("open");
  const { simulator } = world;
  const { id } = threadOf(pull);
  createReviewComment(simulator.world, repository.ownerId, pull, {
    body: "answered",
    path: "README.md",
    inReplyToId: id,
  });
  await world.settle();
  await expectShown(pull, "the mirror");
  createReviewComment(simulator.world, repository.ownerId, pull, { body: "begun", path: "src/other.ts", line: 9 });
  await world.settle();
  await expectShown(pull, "upstream");
  await pass(60_000);
  await expectShown(pull, "the mirror");
});

test("a thread of which the replica knows nothing yet is asked for again", async () => {
  const pull = pullWith("open");
  const { simulator, ctx } = world;
  simulator.setFaults({ lagMs: 30_000 });
  createReviewComment(simulator.world, repository.ownerId, pull, { body: "begun", path: "src/lagging.ts", line: 9 });
  await world.settle();
  await ctx.queues.refresh.clean(0, 1_000, "delayed");
  await ctx.db.query(sql`update refresh_marks set not_before = ${ctx.clock.now()} where kind = 'lists'`);
  await pass(1_000);
  simulator.setFaults({});
  await expectShown(pull, "upstream");
  await pass(60_000);
  await expectShown(pull, "the mirror");
});

test("a thread whose comments are all deleted is none", async () => {
  const pull = pullWith("open");
  const { simulator } = world;
  const thread = reviewThreads(pull).at(-1);
  for (const comment of thread?.comments ?? []) deleteReviewComment(simulator.world, repository.ownerId, comment);
  await world.settle();
  await pass(60_000);
  await world.settleMarks();
  await expectShown(pull, "the mirror");
});

test("a push has them read again, since lines may have gone", async () => {
  const pull = pullWith("open");
  const { simulator } = world;
  for (const comment of pull.pull.reviewComments) {
    simulator.world.changing(comment);
    comment.line = null;
    simulator.world.bumpReviewComment(comment);
  }
  pushToPull(simulator.world, repository.ownerId, pull);
  await pass(0);
  await world.catchUp();
  await expectShown(pull, "the mirror");
});

test("of a thread whose webhook is lost the hour tells, and of a closed pull request's the audit", async () => {
  const [open, closed] = [pullWith("open"), pullWith("closed")];
  const { simulator, ctx } = world;
  simulator.setFaults({ webhooks: { drop: 1 } });
  for (const pull of [open, closed]) turn(pull);
  simulator.setFaults({});
  await pass(2 * HOUR);
  await expectShown(open, "the mirror");
  const signal = new AbortController().signal;
  const found = async (repair: boolean) =>
    (await audit(ctx, { repositoryId: repository.id, repair, signal, anew: true }))?.drift.filter(({ fields }) =>
      fields?.includes("reviewThreads"),
    );
  const drift = [{ kind: "pull_request", key: closed.number, drift: "differs", fields: ["reviewThreads"] }];
  expect([await found(false), await found(true)]).toEqual([drift, drift]);
  await pass(60_000);
  await expectShown(closed, "the mirror");
  expect(await found(true)).toEqual([]);
});

test("unchanged they cost one question", async () => {
  const { simulator } = world;
  await pass(2 * HOUR);
  simulator.meter.reset();
  await pass(2 * HOUR);
  const { charged, points, requests } = simulator.meter.read();
  expect({ charged, points, requests }).toEqual({ charged: 1, points: 1, requests: 1 });
});

const mutation = (name: string) =>
  `mutation($id: ID!) { ${name}(input: { threadId: $id }) { thread { id isResolved resolvedBy { login } } } }`;

/** Resolves a thread or opens it again, through Tain. */
async function write(pull: PullIssue) {
  const [thread] = reviewThreads(pull);
  if (!thread) throw new Error("The pull request has no thread");
  const query = mutation(threadOf(pull).isResolved ? "unresolveReviewThread" : "resolveReviewThread");
  const body = JSON.stringify({ query, variables: { id: threadNodeId(thread) } });
  return await askAt(world.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body });
}

test("who resolves a thread here reads it so at once, whatever becomes of the webhook", async () => {
  const pull = pullWith("open");
  const { simulator } = world;
  simulator.setFaults({ webhooks: { drop: 1 } });
  const written = await write(pull);
  expect([isPassed(written), written.body.errors]).toEqual([true, undefined]);
  await expectShown(pull, "upstream");
  simulator.setFaults({});
  await pass(60_000);
  await expectShown(pull, "the mirror");
});

test("a write of which nobody knows whether it was done leaves the threads to upstream, and a refused one does not", async () => {
  const pull = pullWith("open");
  const { simulator } = world;
  simulator.setFaults({ webhooks: { drop: 1 }, http: [{ match: "graphql", kind: "truncate", times: 1 }] });
  const lost = await write(pull);
  simulator.setFaults({});
  expect(lost.status).toBeGreaterThanOrEqual(500);
  await expectShown(pull, "upstream");
  await pass(60_000);
  await expectShown(pull, "the mirror");
  const body = JSON.stringify({ query: mutation("resolveReviewThread"), variables: { id: "PRRT_unknown" } });
  const refused = await askAt(world.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body });
  expect(isPassed(refused)).toBe(true);
  expect(refused.body.errors).toHaveLength(1);
  await expectShown(pull, "the mirror");
});

test("threads that upstream does not show delay no others, and are upstream's to answer", async () => {
  const [broken, other] = [pullWith("open", 0), pullWith("open", 1)];
  const { simulator } = world;
  for (const pull of [broken, other]) turn(pull);
  await world.settle();
  simulator.setFaults({ graphql: { timeoutPulls: [broken.number] } });
  await pass(60_000);
  simulator.setFaults({});
  await expectShown(other, "the mirror");
  await expectShown(broken, "upstream");
  await pass(3 * HOUR);
  await expectShown(broken, "the mirror");
});

test("a token that was given issues alone sees none, and one of Tain's own is told where they are not mirrored", async () => {
  const { number } = pullWith("open");
  const userId =
    (await world.ctx.db.query<{ id: number }>(sql`select user_id::float8 as id from api_tokens`))[0]?.id ?? 0;
  const tokenFor = (permission: "issues:read" | "pull_requests:read") =>
    createApiToken(world.ctx, { userId, canWrite: false, permissions: [permission] });
  const hidden = await ask(world.url, THREADS, number, await tokenFor("issues:read"));
  expect([hidden.body.data.repository.pullRequest, hidden.body.errors[0].type]).toEqual([null, "FORBIDDEN"]);
  const shown = await ask(world.url, THREADS, number, await tokenFor("pull_requests:read"));
  expect(shown.body.data.repository.pullRequest.reviewThreads.totalCount).toBeGreaterThan(1);
  await settleParts({ ...world.ctx, config: { ...world.ctx.config, mirror: [] } });
  const refused = await ask(world.url, THREADS, number, world.token);
  expect(refused.body.errors).toMatchObject([
    { type: "UNPROCESSABLE", message: "The review threads of this pull request are not mirrored." },
  ]);
  await expectShown(pullWith("open"), "upstream");
});
