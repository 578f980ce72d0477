import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { Fields } from "../../src/json.ts";
import { editPull, pushToPull } from "../../src/simulator/changes/pulls.ts";
import type { SettableClock } from "../../src/simulator/clock.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import type { PullIssue, Repository } from "../../src/simulator/records.ts";
import { isPull } from "../../src/simulator/world.ts";
import { markChecksDue } from "../../src/sync/checks/due.ts";
import { refreshChecks } from "../../src/sync/checks/refresh.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { dispatchMarks } from "../../src/sync/refresh/marks.ts";
import { NodeQuestions } from "../../src/sync/refresh/node-questions.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { forge } from "../support/forging.ts";
import { until } from "../support/patience.ts";
import { type CheckedUpstream, openCheckedUpstream } from "../support/upstream-checks.ts";
import { untilIdle } from "../support/world.ts";

// Checks and statuses from the webhook to the answer. Upstream's own answers about commits are put there by each test.

let upstream: CheckedUpstream;
let world: ApiWorld;
let repository: { id: number; fullName: string };
/** The representation that webhooks carry. */
let shownRepository: Fields;
let pulls: { number: number }[];

beforeAll(async () => {
  upstream = await openCheckedUpstream();
  world = await openApiWorld({
    fill: async (filled) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 4, pulls: 12 });
      for (const one of filled.repositories.values()) one.visibility = "private";
    },
    upstreamUrl: upstream.url,
    env: { MIRROR: "checks" },
  });
  upstream.target = world.upstream.url;
  const [found] = world.repositories;
  if (!found) throw new Error("There is no repository");
  repository = found;
  shownRepository = (await askAt(upstream.url, "GET", `/repos/${found.fullName}`, { token: UPSTREAM_TOKEN })).body;
  pulls = (await world.get(`/repos/${found.fullName}/pulls?per_page=100`)).body;
  upstream.heads = () => pulls.map(({ number }) => pullAt(number).pull.head.sha);
  world.work();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

const base = () => `${upstream.url}/repos/${repository.fullName}`;
const app = {
  id: 7,
  slug: "linter",
  node_id: "A_7",
  name: "Linter",
  owner: null,
  permissions: { checks: "write" },
  events: [],
};

function run(sha: string, id: number, own: Fields = {}): Fields & { id: number } {
  return {
    ...{ id, name: "build", node_id: `CR_${id}`, head_sha: sha, external_id: "", url: `${base()}/check-runs/${id}` },
    ...{
      html_url: `https://example.com/runs/${id}`,
      details_url: "https://example.com",
      status: "queued",
      conclusion: null,
    },
    ...{ started_at: "2026-01-01T00:00:00Z", completed_at: null, check_suite: { id: 70 }, app, pull_requests: [] },
    output: {
      title: null,
      summary: null,
      text: null,
      annotations_count: 0,
      annotations_url: `${base()}/check-runs/${id}/annotations`,
    },
    ...own,
  };
}

const DONE = { status: "completed", conclusion: "success", completed_at: "2026-01-01T00:05:00Z" };

function suite(sha: string, id: number): Fields & { id: number } {
  return {
    ...{ id, node_id: `CS_${id}`, head_branch: "topic", head_sha: sha, status: "completed", conclusion: "success" },
    ...{
      url: `${base()}/check-suites/${id}`,
      before: null,
      after: sha,
      pull_requests: [],
      app,
      repository: shownRepository,
    },
    ...{ created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:05:00Z", latest_check_runs_count: 1 },
    ...{ check_runs_url: `${base()}/check-suites/${id}/check-runs`, head_commit: { id: sha, message: "change" } },
  };
}

function status(sha: string, id: number, state: string, own: Fields = {}): Fields & { id: number } {
  const at = `2026-01-01T00:00:${String(id % 60).padStart(2, "0")}Z`;
  return {
    ...{ url: `${base()}/statuses/${sha}`, avatar_url: null, id, node_id: `SC_${id}`, state, description: null },
    ...{ target_url: null, context: "ci", created_at: at, updated_at: at, creator: null, ...own },
  };
}

async function deliver(event: string, payload: Fields): Promise<string | null | undefined> {
  const { ctx, url } = world;
  return (await forge({ ctx, url, settle }, event, { ...payload, repository: shownRepository }))?.reason;
}

const settle = () => untilIdle(world.ctx);

/** Time passes here and at upstream. */
function advance(ms: number): void {
  world.advance(ms);
  (world.upstream.world.clock as SettableClock).advance(ms);
}

/** Lets the scheduler's next round come after so long, and all that it asks for be done. */
async function pass(ms: number): Promise<void> {
  advance(ms);
  await markChecksDue(world.ctx);
  await world.ctx.queues.refresh.clean(0, 1_000, "delayed");
  await dispatchMarks(world.ctx);
  await settle();
}

/** A head that no other test has: somebody pushes to a pull request, and a webhook says so. */
let next = 0;
const nextSha = () => String(next + 1).padStart(40, "a");
async function newHead({ action = "synchronize", lateMs = 0 } = {}): Promise<{ sha: string; number: number }> {
  const sha = nextSha();
  const number = pulls[next++ % pulls.length]?.number ?? 0;
  const pull = pullAt(number);
  // Of two changes within a second nobody could tell which is the later.
  advance(2_000);
  pushToPull(world.upstream.world, pull.repository.ownerId, pull, sha);
  advance(lateMs);
  await tell(action, number);
  return { sha, number };
}

function openPulls({ rows }: Repository): PullIssue[] {
  return [...rows.issuesByCreated.ascending()].filter((one) => isPull(one)).filter(({ state }) => state === "open");
}

function pullAt(number: number): PullIssue {
  const [owner = "", name = ""] = repository.fullName.split("/");
  const known = world.upstream.world.repositoryByName(owner, name)?.repository;
  const issue = known && openPulls(known).find((one) => one.number === number);
  if (!issue) throw new Error(`There is no pull request ${number}`);
  return issue;
}

/** What upstream says of the pull request, as its webhook. */
async function tell(action: string, number: number): Promise<void> {
  const path = `/repos/${repository.fullName}/pulls/${number}`;
  const { body } = await askAt(upstream.url, "GET", path, { token: UPSTREAM_TOKEN });
  await deliver("pull_request", { action, number, pull_request: body });
}

/** A head whose checks were read, and that every replica knows of. */
async function readHead(
  ...runs: ((sha: string) => Fields & { id: number })[]
): Promise<{ sha: string; number: number }> {
  const sha = nextSha();
  upstream.of(sha).runs.push(...runs.map((make) => make(sha)));
  upstream.of(sha).suites.push(suite(sha, 70));
  const head = await newHead();
  await pass(60_000);
  upstream.asked.length = 0;
  return head;
}

const get = (path: string, token = world.readToken) =>
  askAt(world.url, "GET", `/repos/${repository.fullName}${path}`, { token });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
/** Our address for upstream's. */
const ours = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(upstream.url, world.url));

const ROLLUP = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
  pullRequest(number: $number) { statusCheckRollup { state contexts(first: 10) {
    totalCount checkRunCountsByState { state count } nodes {
      ... on CheckRun { name status conclusion } ... on StatusContext { context state } } } } } } }`;

async function rollup(number: number, token = world.readToken) {
  const [owner, name] = repository.fullName.split("/");
  const body = JSON.stringify({ query: ROLLUP, variables: { owner, name, number } });
  const answer = await askAt(world.url, "POST", "/graphql", { token, body });
  return { ...answer, shown: answer.body.data?.repository?.pullRequest?.statusCheckRollup };
}

test("where checks are not mirrored, what is asked of them is passed on", async () => {
  const { sha } = await newHead();
  upstream.of(sha).runs.push(run(sha, 100));
  const answer = await get(`/commits/${sha}/check-runs`);
  expect([answer.status, isPassed(answer), answer.body.total_count]).toEqual([200, true, 1]);
  expect(await deliver("check_run", { action: "completed", check_run: run(sha, 100, DONE) })).toBe(
    "check_run events are followed only where checks are mirrored",
  );
});

test("once they are, the heads are read, and everything is answered from here as upstream answers it", async () => {
  await settleParts(world.ctx);
  const { sha } = await newHead();
  upstream.of(sha).runs.push(run(sha, 200, DONE), run(sha, 201, { name: "lint" }));
  upstream.of(sha).suites.push(suite(sha, 70));
  upstream.of(sha).statuses.push(status(sha, 210, "pending"), status(sha, 211, "success", { context: "CI" }));
  await pass(60_000);
  upstream.asked.length = 0;

  const runs = await get(`/commits/${sha}/check-runs`);
  expect(isPassed(runs)).toBe(false);
  expect(runs.body).toEqual(ours({ total_count: 2, check_runs: upstream.of(sha).runs.toReversed() }));
  expect((await get(`/check-runs/200`)).body).toEqual(ours(run(sha, 200, DONE)));
  expect((await get(`/check-suites/70/check-runs?check_name=lint`)).body.check_runs).toHaveLength(1);
  const suites = await get(`/commits/${sha}/check-suites`);
  expect(suites.body.check_suites).toMatchObject([{ id: 70, repository: { id: repository.id } }]);
  expect((await get(`/commits/${sha}/statuses`)).body).toEqual(ours(upstream.of(sha).statuses.toReversed()));
  const combined = await get(`/commits/${sha}/status`);
  // Case does not tell contexts apart, and the last word counts.
  expect(combined.body).toMatchObject({ state: "success", sha, total_count: 1, statuses: [{ id: 211 }] });
  expect(combined.body.statuses[0]).not.toHaveProperty("creator");
  expect(combined.body.repository).toMatchObject({ id: repository.id, full_name: repository.fullName });
  expect(upstream.asked).toEqual([]);
});

test("pages of check runs lead to each other", async () => {
  const { sha } = await readHead(...[1, 2, 3].map((n) => (sha: string) => run(sha, 300 + n, { name: `run ${n}` })));
  const first = await get(`/commits/${sha}/check-runs?per_page=2`);
  expect(first.body.total_count).toBe(3);
  expect(first.headers.get("link")).toContain('per_page=2&page=2>; rel="next"');
  const second = await get(`/commits/${sha}/check-runs?per_page=2&page=2`);
  expect(second.body.check_runs.map(({ id }: Fields) => id)).toEqual([301]);
});

test("a run that ends is shown at once, and upstream is not asked", async () => {
  const { sha, number } = await readHead((sha) => run(sha, 400, { status: "in_progress" }));
  expect((await rollup(number)).shown.state).toBe("PENDING");
  upstream.of(sha).runs.splice(0, 1, run(sha, 400, DONE));
  await deliver("check_run", {
    action: "completed",
    check_run: run(sha, 400, { ...DONE, check_suite: suite(sha, 70) }),
  });
  expect((await get(`/commits/${sha}/check-runs`)).body.check_runs).toMatchObject([{ conclusion: "success" }]);
  expect((await rollup(number)).shown.state).toBe("SUCCESS");
  expect(upstream.asked).toEqual([]);
});

test("events that come late, twice and out of order change nothing", async () => {
  const { sha } = await readHead();
  upstream.of(sha).runs.push(run(sha, 500, { ...DONE, conclusion: "failure" }));
  const created = { action: "created", check_run: run(sha, 500) };
  const completed = { action: "completed", check_run: run(sha, 500, { ...DONE, conclusion: "failure" }) };
  for (const payload of [completed, created, completed, created]) await deliver("check_run", payload);
  const { body } = await get(`/commits/${sha}/check-runs`);
  expect(body.check_runs).toMatchObject([{ status: "completed", conclusion: "failure" }]);
  const marks = await world.ctx.db.query(sql`select kind, key from refresh_marks where kind = 'check_run'`);
  expect(marks).toEqual([]);
});

test("two ends of a run that contradict each other ask upstream, which is right", async () => {
  const { sha } = await readHead((sha) => run(sha, 550, DONE));
  upstream.of(sha).runs.splice(0, 1, run(sha, 550, { ...DONE, conclusion: "neutral" }));
  advance(1_000);
  await deliver("check_run", { action: "completed", check_run: run(sha, 550, { ...DONE, conclusion: "failure" }) });
  // Ties are asked about at common moments, once no replica can lag.
  await pass(60_000);
  expect((await get(`/check-runs/550`)).body.conclusion).toBe("neutral");
});

test("a job of Actions that begins shows its check run in progress", async () => {
  const { sha } = await readHead((sha) => run(sha, 560));
  const job = {
    id: 560,
    check_run_url: `${base()}/check-runs/560`,
    head_sha: sha,
    name: "build",
    status: "in_progress",
  };
  upstream.of(sha).runs.splice(0, 1, run(sha, 560, { status: "in_progress", started_at: "2026-01-01T00:01:00Z" }));
  await deliver("workflow_job", {
    action: "in_progress",
    workflow_job: { ...job, started_at: "2026-01-01T00:01:00Z" },
  });
  const { body } = await get(`/commits/${sha}/check-runs`);
  expect(body.check_runs).toMatchObject([{ status: "in_progress", started_at: "2026-01-01T00:01:00Z" }]);
});

test("of a rerun within a suite the last is shown, and all where all are asked for", async () => {
  const { sha, number } = await readHead((sha) => run(sha, 600, { ...DONE, conclusion: "failure" }));
  upstream.of(sha).runs.push(run(sha, 601));
  await deliver("check_run", { action: "created", check_run: run(sha, 601) });
  const ids = async (query: string) =>
    (await get(`/commits/${sha}/check-runs${query}`)).body.check_runs.map(({ id }: Fields) => id);
  expect(await ids("")).toEqual([601]);
  expect(await ids("?filter=all")).toEqual([601, 600]);
  expect((await rollup(number)).shown.state).toBe("PENDING");
});

test("a run of a suite that was never read leaves the list of suites to upstream, until it is read", async () => {
  const { sha } = await readHead((sha) => run(sha, 620, DONE));
  upstream.of(sha).suites.push(suite(sha, 71));
  upstream.of(sha).runs.push(run(sha, 621, { check_suite: { id: 71 } }));
  await deliver("check_run", { action: "created", check_run: run(sha, 621, { check_suite: suite(sha, 71) }) });
  expect(isPassed(await get(`/commits/${sha}/check-runs`))).toBe(false);
  await pass(60_000);
  const answer = await get(`/commits/${sha}/check-suites`);
  expect([isPassed(answer), answer.body.total_count]).toEqual([false, 2]);
});

test("a status counts at once, and is listed once upstream has shown its global id", async () => {
  const { sha, number } = await readHead((sha) => run(sha, 700, DONE));
  const { owner: sender } = shownRepository as { owner: Fields };
  const shown = status(sha, 710, "failure", { creator: sender, avatar_url: sender.avatar_url ?? null });
  const { url: _, node_id: __, creator: ___, ...pushed } = shown;
  upstream.of(sha).statuses.push(shown);
  const moment = String(pushed.created_at).replace("Z", "+00:00");
  await deliver("status", {
    ...pushed,
    sender,
    sha,
    name: repository.fullName,
    commit: {},
    branches: [],
    created_at: moment,
    updated_at: moment,
  });
  expect((await rollup(number)).shown).toMatchObject({ state: "FAILURE", contexts: { totalCount: 2 } });
  await pass(60_000);
  const answer = await get(`/commits/${sha}/statuses`);
  expect([isPassed(answer), answer.body]).toEqual([false, ours([shown])]);
  expect(upstream.asked.filter((one) => one.includes(sha))).toEqual([`sums of ${sha}`]);
});

test("what webhooks missed is found when upstream is asked how many checks are in which state", async () => {
  const { sha, number } = await readHead((sha) => run(sha, 800, { status: "in_progress" }));
  upstream.of(sha).runs.splice(0, 1, run(sha, 800, { ...DONE, conclusion: "failure" }));
  expect((await rollup(number)).shown.state).toBe("PENDING");
  await pass(6 * 60_000);
  expect((await rollup(number)).shown.state).toBe("FAILURE");
  expect(upstream.asked).toContain("sums");
  // Only the head that differed was read.
  expect(upstream.asked.filter((one) => one.startsWith("200 /commits/") && !one.includes(sha))).toEqual([]);
});

test("unchanged heads cost one question for their sums", async () => {
  await pass(2 * 3_600_000);
  upstream.asked.length = 0;
  await pass(2 * 3_600_000);
  expect(upstream.asked.filter((one) => !one.startsWith("304 "))).toEqual(["sums"]);
});

test("a run that upstream lists no more is gone", async () => {
  const { sha } = await readHead(
    (sha) => run(sha, 850, DONE),
    (sha) => run(sha, 851, { ...DONE, name: "lint" }),
  );
  upstream.of(sha).runs.pop();
  await pass(2 * 3_600_000);
  expect((await get(`/commits/${sha}/check-runs`)).body.check_runs.map(({ id }: Fields) => id)).toEqual([850]);
  const gone = await get(`/check-runs/851`);
  expect([gone.status, isPassed(gone)]).toEqual([404, true]);
});

test("a commit that is nobody's head any more is upstream's to answer, and its rows go", async () => {
  const { sha, number } = await readHead((sha) => run(sha, 900, DONE));
  editPull(world.upstream.world, pullAt(number).repository.ownerId, pullAt(number), { state: "closed" });
  pulls = pulls.filter((pull) => pull.number !== number);
  await tell("closed", number);
  expect(isPassed(await get(`/commits/${sha}/check-runs`))).toBe(true);
  await pass(26 * 3_600_000);
  const left = await world.ctx.db.query(sql`select from check_runs where head_sha = ${sha}`);
  expect(left).toEqual([]);
});

test("the head of the default branch is followed by its pushes", async () => {
  const { body } = await get("");
  upstream.defaultHead = "e".repeat(40);
  upstream.of(upstream.defaultHead).runs.push(run(upstream.defaultHead, 950, DONE));
  await deliver("push", {
    ref: `refs/heads/${body.default_branch}`,
    before: "d".repeat(40),
    after: upstream.defaultHead,
    commits: [],
  });
  await pass(60_000);
  const ref = encodeURIComponent(`heads/${body.default_branch}`);
  const answer = await get(`/commits/${ref}/check-runs`);
  expect([isPassed(answer), answer.body.check_runs.map(({ id }: Fields) => id)]).toEqual([false, [950]]);
});

test("a name that may be a branch's or a tag's, and a commit that is no head, are upstream's to answer", async () => {
  for (const ref of ["main", "f".repeat(40)]) expect(isPassed(await get(`/commits/${ref}/check-runs`))).toBe(true);
  const none = await get("/check-runs/123456789");
  expect([none.status, isPassed(none)]).toEqual([404, true]);
});

test("a token that was given issues alone sees no checks of a private repository", async () => {
  const { sha, number } = await readHead((sha) => run(sha, 960, DONE));
  const token = await createApiToken(world.ctx, {
    userId: world.userId,
    canWrite: false,
    permissions: ["issues:read", "pull_requests:read"],
  });
  const answer = await get(`/commits/${sha}/check-runs`, token);
  expect([answer.status, answer.body.message]).toEqual([403, "Resource not accessible by personal access token"]);
  expect(answer.headers.get("x-accepted-github-permissions")).toBe("checks=read");
  const asked = await rollup(number, token);
  expect(asked.shown).toBe(null);
  expect(asked.body.errors).toMatchObject([{ type: "FORBIDDEN" }]);
});

test.each([
  ["a classic token", { kind: "classic", scopes: ["repo"] } as const, false],
  ["a fine-grained token", { kind: "fine-grained" } as const, true],
])("of %s it is known what it sees of checks, or upstream is asked with it", async (name, kind, passes) => {
  const { sha, number } = await readHead((sha) => run(sha, 970, DONE));
  const token = `token of ${name}`.replaceAll(" ", "-");
  world.upstream.tokens.create({ token, login: "mirror-owner", repositories: "all", ...kind });
  expect(isPassed(await get(`/commits/${sha}/check-runs`, token))).toBe(passes);
  if (!passes) expect((await rollup(number, token)).shown.state).toBe("SUCCESS");
});

test("of a commit that was just pushed there is what webhooks tell, and one question shows that it is all", async () => {
  await pass(60_000);
  upstream.asked.length = 0;
  const { sha, number } = await newHead();
  const none = await get(`/commits/${sha}/check-runs`);
  expect([isPassed(none), none.body.total_count, (await rollup(number)).shown]).toEqual([false, 0, null]);
  upstream.of(sha).runs.push(run(sha, 995));
  upstream.of(sha).suites.push(suite(sha, 70));
  await deliver("check_run", { action: "created", check_run: run(sha, 995, { check_suite: suite(sha, 70) }) });
  expect((await rollup(number)).shown.state).toBe("PENDING");
  expect(upstream.asked).toEqual([]);
  // No event says that it has begun.
  const begun = run(sha, 995, { status: "in_progress", started_at: "2026-01-01T00:01:00Z" });
  upstream.of(sha).runs.splice(0, 1, begun);
  await pass(60_000);
  expect((await get(`/commits/${sha}/check-runs`)).body.check_runs).toMatchObject([
    { id: 995, status: "in_progress", started_at: "2026-01-01T00:01:00Z" },
  ]);
  const about = upstream.asked.filter((one) => one.includes(sha));
  expect(about).toEqual([`sums of ${sha}`, `200 /commits/${sha}/check-suites`]);
});

test("of a push that is told of late upstream is asked at once", async () => {
  await pass(60_000);
  upstream.asked.length = 0;
  const { sha } = await newHead({ lateMs: 120_000 });
  expect(upstream.asked).toContain(`sums of ${sha}`);
});

test("a head that was just read is not read again before every replica knows of it", async () => {
  await pass(60_000);
  const first = await newHead({ action: "edited" });
  const isAsked = () => upstream.asked.some((one) => one.includes(first.sha));
  expect(isAsked()).toBe(true);
  upstream.asked.length = 0;
  const second = await newHead({ action: "edited" });
  await refreshChecks(world.ctx, new NodeQuestions(world.ctx), repository.id);
  expect([isAsked(), upstream.asked.some((one) => one.includes(second.sha))]).toEqual([false, true]);
  await pass(60_000);
  expect(isAsked()).toBe(true);
});

test("a head that is heard of while others are read is read at once", async () => {
  await pass(60_000);
  const [first, second] = [
    pullAt(pulls[next % pulls.length]?.number ?? 0),
    pullAt(pulls[(next + 1) % pulls.length]?.number ?? 0),
  ];
  const { world: theirs } = world.upstream;
  const move = async (pull: PullIssue, until: () => Promise<void>) => {
    const sha = nextSha();
    next++;
    advance(2_000);
    pushToPull(theirs, pull.repository.ownerId, pull, sha);
    const { number } = pull;
    const path = `/repos/${repository.fullName}/pulls/${number}`;
    const { body } = await askAt(upstream.url, "GET", path, { token: UPSTREAM_TOKEN });
    const payload = { action: "edited", number, pull_request: body, repository: shownRepository };
    await forge({ ctx: world.ctx, url: world.url, settle: until }, "pull_request", payload);
    return sha;
  };
  let late = "";
  upstream.asked.length = 0;
  upstream.meanwhile = async () => {
    late = await move(second, () =>
      until(
        "it is applied",
        async () => (await world.ctx.db.count(sql`select from deliveries where status = 'pending'`)) === 0,
      ),
    );
  };
  await move(first, settle);
  expect(late).not.toBe("");
  expect(upstream.asked.some((one) => one.includes(late))).toBe(true);
});

test("upstream that does not show the mirror any checks is not taken for one that has none", async () => {
  upstream.isHidden = true;
  try {
    const { sha } = await newHead();
    await pass(60_000);
    const answer = await get(`/commits/${sha}/check-runs`);
    expect([answer.status, isPassed(answer)]).toEqual([404, true]);
  } finally {
    upstream.isHidden = false;
  }
});

test("a repository whose checks are mirrored no longer has its questions passed on again", async () => {
  const { sha } = await readHead((sha) => run(sha, 990, DONE));
  expect(isPassed(await get(`/commits/${sha}/check-runs`))).toBe(false);
  await settleParts({ ...world.ctx, config: { ...world.ctx.config, mirror: [] } });
  expect(isPassed(await get(`/commits/${sha}/check-runs`))).toBe(true);
});
