import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { mergePull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import { deleteBranch, moveBranch } from "../../src/simulator/changes/refs.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { broughtCommit, hashOf, history } from "../../src/simulator/world/commits.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { fetchAndStoreHistory } from "../../src/sync/history/read.ts";
import { QuestionsPacedError } from "../../src/sync/questions/paced.ts";
import { askAt, rebased } from "../support/asking.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markHistoriesDue, markListsDue, markRefsDue } from "../support/due.ts";
import { mirrorFirst, passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// The history of the default branch, from the push to the answer. Each answer must equal upstream's, and the test knows
// whether upstream was asked.

let world: TestWorld;
let repository: Repository;
const LIST = "GET /repos/:owner/:repo/commits";
const HOUR = 3_600_000;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "commits,refs" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 14 });
      for (const one of filled.repositories.values()) {
        one.visibility = "private";
        grow(one, 230, filled);
      }
    },
  });
  repository = await mirrorFirst(world);
  await pass(60_000);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** A push of so many commits, one on another, to the default branch; the clock goes on with each. */
function grow(to: Repository, count: number, upstream = world.simulator.world, branch = to.defaultBranch): string[] {
  const shas: string[] = [];
  for (let left = count; left > 0; left--) {
    (upstream.clock as SettableClock).advance(1_000);
    const before = shas.at(-1) ?? to.branches.get(branch) ?? "";
    const sha = hashOf(`after ${before}`);
    broughtCommit(upstream, to.ownerId, to, {
      sha,
      message: `feat: number ${left}\n\nOf ${count}.`,
      parents: [before],
    });
    shas.push(sha);
  }
  moveBranch(upstream, to.ownerId, to, branch, { sha: shas.at(-1) ?? "", force: true });
  return shas;
}

const pass = (ms: number) =>
  passRound(world, ms, async (ctx) => {
    for (const markDue of [markRefsDue, markListsDue, markHistoriesDue]) await markDue(ctx);
  });
const head = () => repository.branches.get(repository.defaultBranch) ?? "";
const listReads = () => world.simulator.meter.read().routes[LIST]?.requests ?? 0;
const at = (path: string) => `/repos/${world.first}${path}`;
const get = (path: string, token: string | null = world.token) => askAt(world.url, "GET", at(path), { token });
const upstreams = (path: string) => askAt(world.simulator.url, "GET", at(path), { token: UPSTREAM_TOKEN });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through") || headers.has("x-cache");

/** Expects the same as upstream's answer, by the mirror's own rows or by upstream's word. */
async function expectAs(side: "mirror" | "upstream", ...paths: string[]): Promise<void> {
  for (const path of paths) {
    const [ours, theirs] = [await get(path), await upstreams(path)];
    expect([path, isPassed(ours) ? "upstream" : "mirror", ours.status]).toEqual([path, side, theirs.status]);
    if (side === "upstream") continue;
    expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
    const links = (one: Headers) => one.get("link")?.replaceAll(`${world.simulator.url}/`, `${world.url}/`);
    expect([path, links(ours.headers)]).toEqual([path, links(theirs.headers)]);
  }
}

async function query(inner: string, token = UPSTREAM_TOKEN) {
  const [owner, name] = world.first.split("/");
  const text = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { ${inner} } }`;
  const body = JSON.stringify({ query: text, variables: { owner, name } });
  const ours = await askAt(world.url, "POST", "/graphql", { token, body });
  const theirs = await askAt(world.simulator.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body });
  return { ours, theirs };
}

async function expectShown(inner: string, token = UPSTREAM_TOKEN): Promise<void> {
  const { ours, theirs } = await query(inner, token);
  expect([isPassed(ours), ours.body], inner).toEqual([false, theirs.body]);
}

/** Pages of the history, and its parts. */
function everyPath(): string[] {
  const times = [...history(world.simulator.world, repository, head())].map(({ committedAt }) => committedAt);
  const moment = (place: number) => new Date((times[place] ?? 0) * 1_000).toISOString().replace(".000", "");
  return [
    ...["/commits", "/commits?per_page=7&page=3", "/commits?per_page=100&page=2", "/commits?per_page=50&page=99"],
    ...[`/commits?sha=${repository.defaultBranch}&per_page=5`, `/commits?sha=heads/${repository.defaultBranch}`],
    ...[`/commits?sha=${head()}`, `/commits?since=${moment(40)}`, `/commits?until=${moment(40)}&per_page=3`],
    `/commits?since=${moment(60)}&until=${moment(20)}&per_page=10&page=2`,
  ];
}

const HISTORY = `totalCount pageInfo { hasNextPage hasPreviousPage } nodes { oid message messageHeadline committedDate
  author { name email user { login } } parents(first: 3) { nodes { oid } } }`;
const expectHeld = async () => {
  await expectAs("mirror", ...everyPath());
  await expectShown(`defaultBranchRef { target { ... on Commit { history(first: 30) { ${HISTORY} } } } }`);
};

test("the history is copied, a request for each hundred, and answered as upstream answers", async () => {
  const size = [...history(world.simulator.world, repository, head())].length;
  expect(listReads()).toBe(Math.ceil(size / 100));
  await expectHeld();
  const { clock } = world.simulator.world;
  const ago = new Date(clock.now() - 100_000).toISOString();
  for (const token of [UPSTREAM_TOKEN, world.token])
    for (const args of ["last: 4", `first: 5, since: "${ago}"`, `first: 5, until: "${ago}"`, "first: 100"])
      await expectShown(
        `ref(qualifiedName: "${repository.defaultBranch}") { target {
        ... on Commit { history(${args}) { ${HISTORY} } } } }`,
        token,
      );
  await expectShown(`object(oid: "${head()}") { ... on Commit { message history(first: 2) { ${HISTORY} } } }`);
});

test("the newest commits are here with their files, for a request each", async () => {
  const { world: upstream, meter, url } = world.simulator;
  const detailed = () => meter.read().routes["GET /repos/:owner/:repo/commits/*ref"]?.requests ?? 0;
  expect(detailed()).toBe(30);
  const shas = [...history(upstream, repository, head())].map(({ sha }) => sha);
  const one = `/commits/${head()}`;
  await expectAs("mirror", one, `/commits/${shas[29]}`, `/commits/${repository.defaultBranch}`);
  await expectAs(
    "upstream",
    `/commits/${shas[30]}`,
    `${one}?per_page=1`,
    `/commits/${"c".repeat(40)}`,
    "/commits/nowhere",
  );
  for (const accept of ["application/vnd.github.sha", "application/vnd.github.diff"]) {
    const asked = { token: UPSTREAM_TOKEN, headers: { accept } };
    const theirs = await askAt(url, "GET", at(one), asked);
    for (const token of [UPSTREAM_TOKEN, world.token]) {
      const ours = await askAt(world.url, "GET", at(one), { ...asked, token });
      expect([accept, isPassed(ours), ours.status]).toEqual([accept, true, theirs.status]);
    }
  }
});

test("a commit that some list has is here as an object of Git, and with the branch that ends in it", async () => {
  const { world: upstream } = world.simulator;
  const shas = [...history(upstream, repository, head())].map(({ sha }) => sha);
  const proposed = [...repository.rows.issuesByCreated.ascending()].filter(
    (one): one is PullIssue => isPull(one) && one.state === "open" && one.pull.head.repositoryId === repository.id,
  );
  expect(proposed.length).toBeGreaterThan(0);
  const heads = proposed.map(({ pull }) => pull.head);
  const paths = [
    ...[shas[0], shas[200], ...heads.map(({ sha }) => sha)].map((sha) => `/git/commits/${sha}`),
    ...[repository.defaultBranch, ...heads.map(({ ref }) => ref)].map((branch) => `/branches/${branch}`),
  ];
  await expectAs("mirror", ...paths);
  const reader = await createApiToken(world.ctx, {
    ...{ userId: repository.ownerId, canWrite: false, permissions: ["contents:read"] },
  });
  for (const path of paths) expect((await get(path, reader)).text).toBe((await get(path)).text);
  broughtCommit(upstream, repository.ownerId, repository, { sha: "e".repeat(40), message: "alone", parents: [head()] });
  pushBranch(upstream, repository.ownerId, repository, "aside", "e".repeat(40));
  await world.settle();
  await expectAs(
    "upstream",
    ...[`/git/commits/${"e".repeat(40)}`, `/git/commits/${"c".repeat(40)}`, `/git/commits/${head().slice(0, 9)}`],
    "/branches/aside",
  );
});

test("what a release bot asks is answered from the mirror", async () => {
  const { ours } = await query(`ref(qualifiedName: "${repository.defaultBranch}") { target { ... on Commit {
    history(first: 25) { nodes {
      associatedPullRequests(first: 10) { nodes { number title baseRefName headRefName labels(first: 10) { nodes { name } }
        body mergeCommit { oid } files(first: 16) { nodes { path } pageInfo { endCursor hasNextPage } } } }
      sha: oid message } pageInfo { hasNextPage endCursor } } } } }`);
  expect([isPassed(ours), ours.body.errors]).toEqual([false, undefined]);
  expect(ours.body.data.repository.ref.target.history.nodes[0].sha).toBe(head());
});

test("a push costs a request for each hundred commits, and pages that were begun go on where they ended", async () => {
  const page = (after: string | null) => `defaultBranchRef { target { ... on Commit {
    history(first: 10, after: ${JSON.stringify(after)}) { pageInfo { endCursor } nodes { oid } } } } }`;
  const shown = async (after: string | null) =>
    (await query(page(after))).ours.body.data.repository.defaultBranchRef.target.history;
  const before = [...history(world.simulator.world, repository, head())].map(({ sha }) => sha);
  const first = await shown(null);
  for (const [count, requests] of [
    [1, 1],
    [3, 1],
    [150, 2],
  ] as const) {
    world.simulator.meter.reset();
    grow(repository, count);
    await world.settle();
    await world.settleMarks();
    expect([count, listReads()]).toEqual([count, requests]);
    await expectHeld();
  }
  const second = await shown(first.pageInfo.endCursor);
  expect(second.nodes.map(({ oid }: { oid: string }) => oid)).toEqual(before.slice(10, 20));
});

test("merges are told with their pull request, and a commit that nobody proposed with none", async () => {
  const pull = [...repository.rows.issuesByCreated.ascending()].find(
    (one): one is PullIssue =>
      isPull(one) && one.state === "open" && !one.pull.draft && one.pull.base.ref === repository.defaultBranch,
  );
  if (!pull) throw new Error("There is no open pull request");
  const [proposed, pushed] = [pull.pull.head.sha, grow(repository, 1)[0]];
  (world.simulator.world.clock as SettableClock).advance(5_000);
  mergePull(world.simulator.world, repository.ownerId, pull);
  for (let round = 0; round < 2; round++) await pass(60_000);
  await expectHeld();
  const sha = pull.pull.mergeCommitSha ?? "";
  await expectAs("mirror", ...[sha, proposed, pushed].map((one) => `/commits/${one}/pulls`));
  expect((await get(`/commits/${sha}/pulls`)).body).toMatchObject([{ number: pull.number }]);
  expect((await get(`/commits/${pushed}/pulls`)).body).toEqual([]);
  await expectAs("upstream", `/commits/${repository.defaultBranch}/pulls`, `/commits/${"a".repeat(40)}/pulls`);
  for (const oid of [sha, pushed])
    await expectShown(
      `object(oid: "${oid}") { ... on Commit { associatedPullRequests(first: 3) { totalCount nodes { number } } } }`,
    );
});

test("a force push leaves no commit that it took away", async () => {
  const all = [...history(world.simulator.world, repository, head())];
  const [lost, , kept] = all.map(({ sha }) => sha);
  moveBranch(world.simulator.world, repository.ownerId, repository, repository.defaultBranch, {
    sha: kept ?? "",
    force: true,
  });
  await pass(30_000);
  await expectHeld();
  grow(repository, 2);
  await pass(30_000);
  await expectHeld();
  await expectAs("upstream", `/commits?sha=${lost}`);
});

test("a push that no webhook told of is found with the branch, and upstream answers what is not read yet", async () => {
  world.simulator.setFaults({ webhooks: { drop: 1 } });
  grow(repository, 2);
  world.simulator.setFaults({});
  await pass(2 * HOUR);
  await pass(60_000);
  await expectHeld();
});

test("the head of another branch is upstream's to tell, unless it lies in the history", async () => {
  const { world: upstream } = world.simulator;
  const [, second] = [...history(upstream, repository, head())].map(({ sha }) => sha);
  repository.branches.set("behind", second ?? "");
  repository.branches.set("aside", head());
  grow(repository, 1, upstream, "aside");
  await pass(2 * HOUR);
  await pass(60_000);
  await expectAs("mirror", "/commits?sha=behind", `/commits?sha=${second}&per_page=4&page=2`);
  await expectAs("upstream", "/commits?sha=aside", "/commits?sha=nowhere", `/commits?sha=${"b".repeat(40)}`);
  const { ours, theirs } = await query(
    `ref(qualifiedName: "aside") { target { ... on Commit { history(first: 1) { ${HISTORY} } } } }`,
  );
  expect([isPassed(ours), ours.body]).toEqual([true, theirs.body]);
  // The default branch may become another one.
  repository.defaultBranch = "aside";
  upstream.changing(repository);
  deleteBranch(upstream, repository.ownerId, repository, "behind");
  await askAt(world.url, "GET", at(""), { token: UPSTREAM_TOKEN, headers: { "cache-control": "no-cache" } });
  await pass(2 * HOUR);
  await pass(60_000);
  await expectHeld();
});

test("filters that only Git knows, and times that are none, are upstream's", async () => {
  await expectAs("upstream", "/commits?path=src", "/commits?author=octocat", "/commits?since=yesterday");
});

test("nobody sees the history of what they may not read", async () => {
  const { ctx } = world;
  world.simulator.tokens.create({ token: "ghp_stranger", login: "stranger" });
  expect((await get("/commits", "ghp_stranger")).status).toBe(404);
  const token = await createApiToken(ctx, {
    userId: repository.ownerId,
    canWrite: false,
    permissions: ["issues:read", "pull_requests:read"],
  });
  expect((await get("/commits", token)).status).toBe(403);
  expect((await get(`/commits/${head()}/pulls`, token)).status).toBe(403);
  const { ours } = await query(
    `defaultBranchRef { target { ... on Commit { history(first: 1) { nodes { oid } } } } }`,
    token,
  );
  expect(ours.body.errors).toMatchObject([{ type: "FORBIDDEN" }]);
});

test("a read that breaks off goes on where it ended", async () => {
  const { ctx } = world;
  const mirrored = await ctx.jobReads.repository(repository.id);
  if (!mirrored) throw new Error("The repository is not mirrored");
  await ctx.db.query(sql`update commit_lists set head_sha = null, reading_sha = null`);
  let left = 2;
  const asked: string[] = [];
  const faulty = withUpstream(ctx, {
    get: async (path, options) => {
      asked.push(path);
      if (left-- === 0) throw new Error("cut off");
      return await ctx.upstream.get(path, options);
    },
  });
  await expect(fetchAndStoreHistory(faulty, mirrored, { head: head(), copied: null })).rejects.toThrow("cut off");
  await expectAs("upstream", "/commits");
  await fetchAndStoreHistory(faulty, mirrored, { head: head(), copied: null });
  expect(asked.filter((path) => !/&page=/.test(path))).toHaveLength(1);
  await expectHeld();
});

test("of a long history the newest commits are here, and its length", async () => {
  grow(repository, 1_900);
  await world.ctx.db.query(sql`update commit_lists set head_sha = null, reading_sha = null`);
  world.simulator.meter.reset();
  await pass(60_000);
  expect(listReads()).toBe(21);
  await expectAs("mirror", "/commits", "/commits?per_page=100&page=20");
  await expectAs("upstream", "/commits?per_page=100&page=21", "/commits?since=2001-01-01T00:00:00Z");
  const counted = `defaultBranchRef { target { ... on Commit { history(first: 3) { ${HISTORY} } } } }`;
  await expectShown(counted);
  const { ours } = await query(counted.replace("first", "last"), world.token);
  expect(ours.body.errors[0]).toMatchObject({ type: "UNPROCESSABLE" });
  grow(repository, 1);
  await pass(60_000);
  await expectAs("mirror", "/commits", "/commits?per_page=100&page=20");
});

test("a branch that is moved to and fro is read anew at a pace", async () => {
  const { ctx } = world;
  const mirrored = await ctx.jobReads.repository(repository.id);
  if (!mirrored) throw new Error("The repository is not mirrored");
  const readAnew = async () => {
    await ctx.db.query(sql`update commit_lists set head_sha = null, reading_sha = null`);
    await fetchAndStoreHistory(ctx, mirrored, { head: head(), copied: null });
  };
  await ctx.db.query(sql`delete from upkeep where task = ${`history ${repository.id}`}`);
  world.simulator.meter.reset();
  for (let time = 0; time < 8; time++) await readAnew();
  const asked = listReads();
  await expect(readAnew()).rejects.toThrow(QuestionsPacedError);
  expect([asked, listReads()]).toEqual([8 * 21, 8 * 21]);
  world.advance(HOUR / 2);
  await readAnew();
});

test("parts that are mirrored no longer leave no history", async () => {
  const { ctx } = world;
  await settleParts({ ...ctx, config: { ...ctx.config, mirror: ["commits"] } });
  expect(await ctx.db.count(sql`select from commit_lists where head_sha is not null`)).toBe(0);
  await expectAs("upstream", "/commits");
});
