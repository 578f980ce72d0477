import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { Fields } from "../../src/json.ts";
import { editPull, pushToPull } from "../../src/simulator/changes/pulls.ts";
import type { PullIssue } from "../../src/simulator/world/records.ts";
import { checksWhole } from "../../src/sync/checks/refresh.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { NodeQuestions } from "../../src/sync/questions/node-questions.ts";
import { refreshWhole } from "../../src/sync/wholes/whole.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { forge } from "../support/forging.ts";
import { until } from "../support/patience.ts";
import { type ChecksWorld, DONE, openChecksWorld } from "./checks-world.ts";

// Checks and statuses, from the webhook to the answer. Each test puts there what upstream answers about commits.

let at: ChecksWorld;
beforeAll(async () => {
  at = await openChecksWorld();
});
afterAll(() => at?.[Symbol.asyncDispose]());

test("where checks are not mirrored, what is asked of them is forwarded", async () => {
  const { sha } = await at.newHead();
  at.upstream.of(sha).runs.push(at.run(sha, 100));
  const answer = await at.get(`/commits/${sha}/check-runs`);
  expect([answer.status, at.isPassed(answer), answer.body.total_count]).toEqual([200, true, 1]);
  expect(await at.deliver("check_run", { action: "completed", check_run: at.run(sha, 100, DONE) })).toBe(
    "check_run events are followed only where checks are mirrored",
  );
});

test("once they are, the heads are read, and everything is answered from here as upstream answers it", async () => {
  await settleParts(at.world.ctx);
  const { sha } = await at.newHead();
  at.upstream.of(sha).runs.push(at.run(sha, 200, DONE), at.run(sha, 201, { name: "lint" }));
  at.upstream.of(sha).suites.push(at.suite(sha, 70));
  at.upstream.of(sha).statuses.push(at.status(sha, 210, "pending"), at.status(sha, 211, "success", { context: "CI" }));
  await at.pass(60_000);
  at.upstream.asked.length = 0;

  const runs = await at.get(`/commits/${sha}/check-runs`);
  expect(at.isPassed(runs)).toBe(false);
  expect(runs.body).toEqual(at.ours({ total_count: 2, check_runs: at.upstream.of(sha).runs.toReversed() }));
  expect((await at.get(`/check-runs/200`)).body).toEqual(at.ours(at.run(sha, 200, DONE)));
  expect((await at.get(`/check-suites/70/check-runs?check_name=lint`)).body.check_runs).toHaveLength(1);
  const suites = await at.get(`/commits/${sha}/check-suites`);
  expect(suites.body.check_suites).toMatchObject([{ id: 70, repository: { id: at.repository.id } }]);
  expect((await at.get(`/commits/${sha}/statuses`)).body).toEqual(at.ours(at.upstream.of(sha).statuses.toReversed()));
  const combined = await at.get(`/commits/${sha}/status`);
  // Contexts that differ only in case are the same one, and its last status counts.
  expect(combined.body).toMatchObject({ state: "success", sha, total_count: 1, statuses: [{ id: 211 }] });
  expect(combined.body.statuses[0]).not.toHaveProperty("creator");
  expect(combined.body.repository).toMatchObject({ id: at.repository.id, full_name: at.repository.fullName });
  expect(at.upstream.asked).toEqual([]);
});

test("pages of check runs lead to each other", async () => {
  const { sha } = await at.readHead(
    ...[1, 2, 3].map((n) => (sha: string) => at.run(sha, 300 + n, { name: `run ${n}` })),
  );
  const first = await at.get(`/commits/${sha}/check-runs?per_page=2`);
  expect(first.body.total_count).toBe(3);
  expect(first.headers.get("link")).toContain('per_page=2&page=2>; rel="next"');
  const second = await at.get(`/commits/${sha}/check-runs?per_page=2&page=2`);
  expect(second.body.check_runs.map(({ id }: Fields) => id)).toEqual([301]);
});

test("a run that ends is shown at once, and upstream is not asked", async () => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 400, { status: "in_progress" }));
  expect((await at.rollup(number)).shown.state).toBe("PENDING");
  at.upstream.of(sha).runs.splice(0, 1, at.run(sha, 400, DONE));
  await at.deliver("check_run", {
    action: "completed",
    check_run: at.run(sha, 400, { ...DONE, check_suite: at.suite(sha, 70) }),
  });
  expect((await at.get(`/commits/${sha}/check-runs`)).body.check_runs).toMatchObject([{ conclusion: "success" }]);
  expect((await at.rollup(number)).shown.state).toBe("SUCCESS");
  expect(at.upstream.asked).toEqual([]);
});

test("events that come late, twice and out of order change nothing", async () => {
  const { sha } = await at.readHead();
  at.upstream.of(sha).runs.push(at.run(sha, 500, { ...DONE, conclusion: "failure" }));
  const created = { action: "created", check_run: at.run(sha, 500) };
  const completed = { action: "completed", check_run: at.run(sha, 500, { ...DONE, conclusion: "failure" }) };
  for (const payload of [completed, created, completed, created]) await at.deliver("check_run", payload);
  const { body } = await at.get(`/commits/${sha}/check-runs`);
  expect(body.check_runs).toMatchObject([{ status: "completed", conclusion: "failure" }]);
  const marks = await at.world.ctx.db.query(sql`select kind, key from refresh_marks where kind = 'check_run'`);
  expect(marks).toEqual([]);
});

test("two ends of a run that contradict each other ask upstream, which is right", async () => {
  const { sha } = await at.readHead((sha) => at.run(sha, 550, DONE));
  at.upstream.of(sha).runs.splice(0, 1, at.run(sha, 550, { ...DONE, conclusion: "neutral" }));
  at.advance(1_000);
  await at.deliver("check_run", {
    action: "completed",
    check_run: at.run(sha, 550, { ...DONE, conclusion: "failure" }),
  });
  // Tain asks about conflicts together, once no replica can lag.
  await at.pass(60_000);
  expect((await at.get(`/check-runs/550`)).body.conclusion).toBe("neutral");
});

test("a job of Actions that begins shows its check run in progress", async () => {
  const { sha } = await at.readHead((sha) => at.run(sha, 560));
  const job = {
    id: 560,
    check_run_url: `${at.base()}/check-runs/560`,
    head_sha: sha,
    name: "build",
    status: "in_progress",
  };
  at.upstream
    .of(sha)
    .runs.splice(0, 1, at.run(sha, 560, { status: "in_progress", started_at: "2026-01-01T00:01:00Z" }));
  await at.deliver("workflow_job", {
    action: "in_progress",
    workflow_job: { ...job, started_at: "2026-01-01T00:01:00Z" },
  });
  const { body } = await at.get(`/commits/${sha}/check-runs`);
  expect(body.check_runs).toMatchObject([{ status: "in_progress", started_at: "2026-01-01T00:01:00Z" }]);
});

test("of a rerun within a suite the last is shown, and all where all are asked for", async () => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 600, { ...DONE, conclusion: "failure" }));
  at.upstream.of(sha).runs.push(at.run(sha, 601));
  await at.deliver("check_run", { action: "created", check_run: at.run(sha, 601) });
  const ids = async (query: string) =>
    (await at.get(`/commits/${sha}/check-runs${query}`)).body.check_runs.map(({ id }: Fields) => id);
  expect(await ids("")).toEqual([601]);
  expect(await ids("?filter=all")).toEqual([601, 600]);
  expect((await at.rollup(number)).shown.state).toBe("PENDING");
});

test("a run of a suite that was never read leaves the list of suites to upstream, until it is read", async () => {
  const { sha } = await at.readHead((sha) => at.run(sha, 620, DONE));
  at.upstream.of(sha).suites.push(at.suite(sha, 71));
  at.upstream.of(sha).runs.push(at.run(sha, 621, { check_suite: { id: 71 } }));
  await at.deliver("check_run", { action: "created", check_run: at.run(sha, 621, { check_suite: at.suite(sha, 71) }) });
  expect(at.isPassed(await at.get(`/commits/${sha}/check-runs`))).toBe(false);
  await at.pass(60_000);
  const answer = await at.get(`/commits/${sha}/check-suites`);
  expect([at.isPassed(answer), answer.body.total_count]).toEqual([false, 2]);
});

test("a status counts at once, and is listed once upstream has shown its global id", async () => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 700, DONE));
  const { owner: sender } = at.shownRepository as { owner: Fields };
  const shown = at.status(sha, 710, "failure", { creator: sender, avatar_url: sender.avatar_url ?? null });
  const { url: _, node_id: __, creator: ___, ...pushed } = shown;
  at.upstream.of(sha).statuses.push(shown);
  const moment = String(pushed.created_at).replace("Z", "+00:00");
  await at.deliver("status", {
    ...pushed,
    sender,
    sha,
    name: at.repository.fullName,
    commit: {},
    branches: [],
    created_at: moment,
    updated_at: moment,
  });
  expect((await at.rollup(number)).shown).toMatchObject({ state: "FAILURE", contexts: { totalCount: 2 } });
  await at.pass(60_000);
  const answer = await at.get(`/commits/${sha}/statuses`);
  expect([at.isPassed(answer), answer.body]).toEqual([false, at.ours([shown])]);
  expect(at.upstream.asked.filter((one) => one.includes(sha))).toEqual([`sums of ${sha}`]);
});

test("what webhooks missed is found when upstream is asked how many checks are in which state", async () => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 800, { status: "in_progress" }));
  at.upstream.of(sha).runs.splice(0, 1, at.run(sha, 800, { ...DONE, conclusion: "failure" }));
  expect((await at.rollup(number)).shown.state).toBe("PENDING");
  await at.pass(6 * 60_000);
  expect((await at.rollup(number)).shown.state).toBe("FAILURE");
  expect(at.upstream.asked).toContain("sums");
  // Tain read only the head that differed.
  expect(at.upstream.asked.filter((one) => one.startsWith("200 /commits/") && !one.includes(sha))).toEqual([]);
});

test("unchanged heads cost one question for their sums", async () => {
  await at.pass(2 * 3_600_000);
  at.upstream.asked.length = 0;
  await at.pass(2 * 3_600_000);
  expect(at.upstream.asked.filter((one) => !one.startsWith("304 "))).toEqual(["sums"]);
});

test("a run that upstream lists no more is gone", async () => {
  const { sha } = await at.readHead(
    (sha) => at.run(sha, 850, DONE),
    (sha) => at.run(sha, 851, { ...DONE, name: "lint" }),
  );
  at.upstream.of(sha).runs.pop();
  await at.pass(2 * 3_600_000);
  expect((await at.get(`/commits/${sha}/check-runs`)).body.check_runs.map(({ id }: Fields) => id)).toEqual([850]);
  const gone = await at.get(`/check-runs/851`);
  expect([gone.status, at.isPassed(gone)]).toEqual([404, true]);
});

test("a commit that is nobody's head any more is upstream's to answer, and its rows go", async () => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 900, DONE));
  editPull(at.world.upstream.world, at.pullAt(number).repository.ownerId, at.pullAt(number), { state: "closed" });
  at.close(number);
  await at.tell("closed", number);
  expect(at.isPassed(await at.get(`/commits/${sha}/check-runs`))).toBe(true);
  await at.pass(26 * 3_600_000);
  const left = await at.world.ctx.db.query(sql`select from check_runs where head_sha = ${sha}`);
  expect(left).toEqual([]);
});

test("the head of the default branch is followed by its pushes", async () => {
  const { body } = await at.get("");
  at.upstream.defaultHead = "e".repeat(40);
  at.upstream.of(at.upstream.defaultHead).runs.push(at.run(at.upstream.defaultHead, 950, DONE));
  await at.deliver("push", {
    ref: `refs/heads/${body.default_branch}`,
    before: "d".repeat(40),
    after: at.upstream.defaultHead,
    commits: [],
  });
  await at.pass(60_000);
  const ref = encodeURIComponent(`heads/${body.default_branch}`);
  const answer = await at.get(`/commits/${ref}/check-runs`);
  expect([at.isPassed(answer), answer.body.check_runs.map(({ id }: Fields) => id)]).toEqual([false, [950]]);
});

test("a name that may be a branch's or a tag's, and a commit that is no head, are upstream's to answer", async () => {
  for (const ref of ["main", "f".repeat(40)])
    expect(at.isPassed(await at.get(`/commits/${ref}/check-runs`))).toBe(true);
  const none = await at.get("/check-runs/123456789");
  expect([none.status, at.isPassed(none)]).toEqual([404, true]);
});

test("a token that was given issues alone sees no checks of a private repository", async () => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 960, DONE));
  const token = await createApiToken(at.world.ctx, {
    userId: at.world.userId,
    canWrite: false,
    permissions: ["issues:read", "pull_requests:read"],
  });
  const answer = await at.get(`/commits/${sha}/check-runs`, token);
  expect([answer.status, answer.body.message]).toEqual([403, "Resource not accessible by personal access token"]);
  expect(answer.headers.get("x-accepted-github-permissions")).toBe("checks=read");
  const asked = await at.rollup(number, token);
  expect(asked.shown).toBe(null);
  expect(asked.body.errors).toMatchObject([{ type: "FORBIDDEN" }]);
});

test.each([
  ["a classic token", { kind: "classic", scopes: ["repo"] } as const, false],
  ["a fine-grained token", { kind: "fine-grained" } as const, true],
])("of %s it is known what it sees of checks, or upstream is asked with it", async (name, kind, passes) => {
  const { sha, number } = await at.readHead((sha) => at.run(sha, 970, DONE));
  const token = `token of ${name}`.replaceAll(" ", "-");
  at.world.upstream.tokens.create({ token, login: "mirror-owner", repositories: "all", ...kind });
  expect(at.isPassed(await at.get(`/commits/${sha}/check-runs`, token))).toBe(passes);
  if (!passes) expect((await at.rollup(number, token)).shown.state).toBe("SUCCESS");
});

test("of a commit that was just pushed there is what webhooks tell, and one question shows that it is all", async () => {
  await at.pass(60_000);
  at.upstream.asked.length = 0;
  const { sha, number } = await at.newHead();
  const none = await at.get(`/commits/${sha}/check-runs`);
  expect([at.isPassed(none), none.body.total_count, (await at.rollup(number)).shown]).toEqual([false, 0, null]);
  at.upstream.of(sha).runs.push(at.run(sha, 995));
  at.upstream.of(sha).suites.push(at.suite(sha, 70));
  await at.deliver("check_run", { action: "created", check_run: at.run(sha, 995, { check_suite: at.suite(sha, 70) }) });
  expect((await at.rollup(number)).shown.state).toBe("PENDING");
  expect(at.upstream.asked).toEqual([]);
  // No event says that the run has begun.
  const begun = at.run(sha, 995, { status: "in_progress", started_at: "2026-01-01T00:01:00Z" });
  at.upstream.of(sha).runs.splice(0, 1, begun);
  await at.pass(60_000);
  expect((await at.get(`/commits/${sha}/check-runs`)).body.check_runs).toMatchObject([
    { id: 995, status: "in_progress", started_at: "2026-01-01T00:01:00Z" },
  ]);
  const about = at.upstream.asked.filter((one) => one.includes(sha));
  expect(about).toEqual([`sums of ${sha}`, `200 /commits/${sha}/check-suites`]);
});

test("of a push that is told of late upstream is asked at once", async () => {
  await at.pass(60_000);
  at.upstream.asked.length = 0;
  const { sha } = await at.newHead({ lateMs: 120_000 });
  expect(at.upstream.asked).toContain(`sums of ${sha}`);
});

test("a head that was just read is not read again before every replica knows of it", async () => {
  await at.pass(60_000);
  const first = await at.newHead({ action: "edited" });
  const isAsked = () => at.upstream.asked.some((one) => one.includes(first.sha));
  expect(isAsked()).toBe(true);
  at.upstream.asked.length = 0;
  const second = await at.newHead({ action: "edited" });
  await refreshWhole(at.world.ctx, new NodeQuestions(at.world.ctx), checksWhole, at.repository.id);
  expect([isAsked(), at.upstream.asked.some((one) => one.includes(second.sha))]).toEqual([false, true]);
  await at.pass(60_000);
  expect(isAsked()).toBe(true);
});

test("a head that is heard of while others are read is read at once", async () => {
  await at.pass(60_000);
  const [first, second] = [at.pullAt(at.upcoming()), at.pullAt(at.upcoming(1))];
  const { world: theirs } = at.world.upstream;
  const move = async (pull: PullIssue, until: () => Promise<void>) => {
    const sha = at.takeSha();
    at.advance(2_000);
    pushToPull(theirs, pull.repository.ownerId, pull, sha);
    const { number } = pull;
    const path = `/repos/${at.repository.fullName}/pulls/${number}`;
    const { body } = await askAt(at.upstream.url, "GET", path, { token: UPSTREAM_TOKEN });
    const payload = { action: "edited", number, pull_request: body, repository: at.shownRepository };
    await forge({ ctx: at.world.ctx, url: at.world.url, settle: until }, "pull_request", payload);
    return sha;
  };
  let late = "";
  at.upstream.asked.length = 0;
  at.upstream.meanwhile = async () => {
    late = await move(second, () =>
      until(
        "it is applied",
        async () => (await at.world.ctx.db.count(sql`select from deliveries where status = 'pending'`)) === 0,
      ),
    );
  };
  await move(first, at.settle);
  expect(late).not.toBe("");
  expect(at.upstream.asked.some((one) => one.includes(late))).toBe(true);
});

test("upstream that does not show the mirror any checks is not taken for one that has none", async () => {
  at.upstream.isHidden = true;
  try {
    const { sha } = await at.newHead();
    await at.pass(60_000);
    const answer = await at.get(`/commits/${sha}/check-runs`);
    expect([answer.status, at.isPassed(answer)]).toEqual([404, true]);
  } finally {
    at.upstream.isHidden = false;
  }
});

test.each([null, { databaseId: null }])(
  "a head that upstream shows without the id of its repository is read from its lists: %o",
  async (owner) => {
    await at.pass(60_000);
    at.upstream.asked.length = 0;
    at.upstream.owner = owner;
    try {
      const { sha } = await at.newHead({ action: "edited" });
      expect(at.upstream.asked).toEqual(expect.arrayContaining([`sums of ${sha}`, `200 /commits/${sha}/check-runs`]));
      expect(await at.world.ctx.db.query(sql`select * from problems`)).toEqual([]);
    } finally {
      at.upstream.owner = undefined;
    }
  },
);

test("a repository whose checks are mirrored no longer has its questions forwarded again", async () => {
  const { sha } = await at.readHead((sha) => at.run(sha, 990, DONE));
  expect(at.isPassed(await at.get(`/commits/${sha}/check-runs`))).toBe(false);
  await settleParts({ ...at.world.ctx, config: { ...at.world.ctx.config, mirror: [] } });
  expect(at.isPassed(await at.get(`/commits/${sha}/check-runs`))).toBe(true);
});
