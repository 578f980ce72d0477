import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { pushBranch, pushToPull } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { broughtCommit } from "../../src/simulator/world/commits.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markListsDue } from "../support/due.ts";
import { mirrorFirst, passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Lists that the mirror holds whole, from the webhook to the answer. Each answer must equal upstream's, and the test
// knows whether upstream was asked.

let world: TestWorld;
let repository: Repository;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "commits" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 8 });
      for (const one of filled.repositories.values()) one.visibility = "private";
    },
  });
  repository = await mirrorFirst(world);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const pass = (ms: number) => passRound(world, ms, markListsDue);

function pulls(): PullIssue[] {
  return [...repository.rows.issuesByCreated.ascending()].filter((one): one is PullIssue => isPull(one));
}

function openPull(at = 0): PullIssue {
  const pull = pulls().filter(({ state }) => state === "open")[at];
  if (!pull) throw new Error("There are too few open pull requests");
  return pull;
}

const get = (path: string, token = world.token) => askAt(world.url, "GET", `/repos/${world.first}${path}`, { token });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
const commitsAndFiles = ({ number }: PullIssue) => [`/pulls/${number}/commits`, `/pulls/${number}/files`];

/** Expects the mirror to answer from its own rows, and as upstream answers. */
async function expectHeld(...paths: string[]): Promise<void> {
  for (const path of paths) {
    const ours = await get(path);
    const theirs = await askAt(world.simulator.url, "GET", `/repos/${world.first}${path}`, { token: UPSTREAM_TOKEN });
    expect([path, isPassed(ours)]).toEqual([path, false]);
    expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
  }
}

async function query(text: string, number: number, token = world.token) {
  const [owner, name] = world.first.split("/");
  const body = JSON.stringify({ query: text, variables: { owner, name, number } });
  const [ours, theirs] = await Promise.all([
    askAt(world.url, "POST", "/graphql", { token, body }),
    askAt(world.simulator.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body }),
  ]);
  return { ours, theirs };
}

const ON_PULL = (selection: string) =>
  `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { ${selection} } } }`;
const LISTS = ON_PULL(`commits(first: 100) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes {
    pullRequest { number } commit { id oid abbreviatedOid message messageHeadline messageBody authoredDate committedDate url
      author { name email user { login } } committer { name email }
      authors(first: 5) { totalCount pageInfo { hasNextPage } nodes { name email user { login } } } } } }
  files(first: 100) { totalCount pageInfo { hasNextPage } nodes { path additions deletions changeType } }`);

test("of every pull request the commits and files are copied, for a request each, and answered as upstream answers", async () => {
  for (const pull of pulls()) await expectHeld(...commitsAndFiles(pull));
  const { routes } = world.simulator.meter.read();
  for (const list of ["commits", "files"])
    expect(routes[`GET /repos/:owner/:repo/pulls/:number/${list}`]?.charged, list).toBeLessThanOrEqual(
      2 * pulls().length,
    );
});

test("files are JSON also for clients that accept a diff", async () => {
  const { number } = openPull();
  for (const [list, side] of [
    ["files", false],
    ["commits", true],
  ] as const) {
    const path = `/repos/${world.first}/pulls/${number}/${list}?page=1&per_page=100`;
    const asked = { token: UPSTREAM_TOKEN, headers: { accept: "application/vnd.github.v3.diff" } };
    const [ours, theirs] = [
      await askAt(world.url, "GET", path, asked),
      await askAt(world.simulator.url, "GET", path, asked),
    ];
    const shown = rebased(theirs.text, world.simulator.url, world.url);
    expect([list, isPassed(ours), ours.body]).toEqual([list, side, shown]);
  }
});

test("GraphQL shows them as upstream does", async () => {
  for (const { number } of pulls()) {
    const { ours, theirs } = await query(LISTS, number);
    expect([ours.status, isPassed(ours)]).toEqual([200, false]);
    expect(ours.body).toEqual(theirs.body);
  }
});

test("only upstream knows whom a message means by its co-authors", async () => {
  const pull = openPull();
  const sha = "d".repeat(40);
  const message = "fix: both\n\nCo-authored-by: Another <another@example.test>";
  broughtCommit(world.simulator.world, repository.ownerId, repository, {
    ...{ sha, message, parents: [pull.pull.head.sha] },
  });
  pushToPull(world.simulator.world, repository.ownerId, pull, sha);
  await pass(60_000);
  await expectHeld(...commitsAndFiles(pull));
  const { ours, theirs } = await query(LISTS, pull.number, UPSTREAM_TOKEN);
  expect([isPassed(ours), ours.body]).toEqual([true, theirs.body]);
  const { ours: part } = await query(LISTS, pull.number);
  expect(part.body.errors.at(-1)).toMatchObject({ type: "FORBIDDEN", path: expect.arrayContaining(["authors"]) });
});

test("pages lead to each other", async () => {
  const pull = pulls().find(({ pull: { changedFiles } }) => changedFiles > 2);
  if (!pull) throw new Error("No pull request changes three files");
  const first = await get(`/pulls/${pull.number}/files?per_page=2`);
  expect(first.headers.get("link")).toContain('per_page=2&page=2>; rel="next"');
  const second = await get(`/pulls/${pull.number}/files?per_page=2&page=2`);
  const whole = await get(`/pulls/${pull.number}/files`);
  expect([...first.body, ...second.body]).toEqual(whole.body.slice(0, 4));
});

test.each(["commits", "files"])("pages of GraphQL lead to each other: %s", async (list) => {
  const pull = pulls().find(({ pull: { changedFiles, commits } }) => changedFiles > 1 && commits > 1);
  if (!pull) throw new Error("No pull request has two commits and two files");
  const shown = async (page: string) => {
    const nodes = list === "commits" ? "commit { oid }" : "path";
    const { ours } = await query(
      ON_PULL(`${list}(${page}) { pageInfo { endCursor } nodes { ${nodes} } }`),
      pull.number,
    );
    expect(ours.body.errors).toBeUndefined();
    return ours.body.data.repository.pullRequest[list];
  };
  const first = await shown("first: 1");
  const second = await shown(`first: 1, after: "${first.pageInfo.endCursor}"`);
  expect([...first.nodes, ...second.nodes]).toEqual((await shown("first: 2")).nodes);
});

test("a push leaves the lists to upstream until they are read, and one commit more is here then", async () => {
  const pull = openPull();
  const before = (await get(`/pulls/${pull.number}/commits`)).body.length;
  pushToPull(world.simulator.world, repository.ownerId, pull);
  await pass(0);
  await expectHeld(...commitsAndFiles(pull));
  expect((await get(`/pulls/${pull.number}/commits`)).body).toHaveLength(before + 1);
});

test("a list that a lagging replica shows of the head before is not believed", async () => {
  const pull = openPull();
  const { simulator, ctx } = world;
  // The mirror believes the webhook at once. A lagging replica answers the read, and shows an older state.
  simulator.setFaults({ lagMs: 30_000 });
  pushToPull(simulator.world, repository.ownerId, pull);
  await world.settle();
  const [held] = await ctx.db.query<{ read_at: Date | null }>(sql`
    select read_at from mirrored_lists where repository_id = ${repository.id} and number = ${pull.number} and list = 'commits'`);
  simulator.setFaults({});
  expect(held).toEqual({ read_at: null });
  await pass(60_000);
  await expectHeld(...commitsAndFiles(pull));
});

test("what a push to the base takes out of a pull request is found, though nothing says so", async () => {
  const pull = openPull();
  const { simulator } = world;
  pushToPull(simulator.world, repository.ownerId, pull);
  await pass(0);
  pull.pull.commits = 1;
  pushBranch(simulator.world, repository.ownerId, repository, pull.pull.base.ref, simulator.world.newSha());
  await world.settle();
  await pass(6 * 60_000);
  await expectHeld(`/pulls/${pull.number}/commits`);
  expect((await get(`/pulls/${pull.number}/commits`)).body).toHaveLength(1);
});

test("a push of which the webhook is lost is found with the pull request", async () => {
  const pull = openPull(1);
  const { simulator } = world;
  simulator.setFaults({ webhooks: { drop: 1 } });
  pushToPull(simulator.world, repository.ownerId, pull);
  simulator.setFaults({});
  await world.catchUp();
  await pass(2 * 3_600_000);
  await expectHeld(...commitsAndFiles(pull));
});

test("unchanged lists cost one question for their lengths", async () => {
  const { simulator } = world;
  await pass(2 * 3_600_000);
  simulator.meter.reset();
  await pass(2 * 3_600_000);
  const { charged, points, requests } = simulator.meter.read();
  expect({ charged, points, requests }).toEqual({ charged: 1, points: 1, requests: 1 });
});

test("a list that upstream cannot show delays no other, and is upstream's to answer", async () => {
  const [broken, other] = [openPull(0), openPull(1)];
  const { simulator } = world;
  simulator.setFaults({ http: [{ match: `pulls/${broken.number}/files`, kind: "status", status: 422 }] });
  for (const pull of [broken, other]) pushToPull(simulator.world, repository.ownerId, pull);
  await pass(0);
  await expectHeld(...commitsAndFiles(other), `/pulls/${broken.number}/commits`);
  simulator.setFaults({});
  expect(isPassed(await get(`/pulls/${broken.number}/files`))).toBe(true);
  await pass(3 * 3_600_000);
  await expectHeld(`/pulls/${broken.number}/files`);
});

test("a token that was given issues alone sees no commits, and one that reads pull requests does", async () => {
  const { number } = openPull();
  const userId =
    (await world.ctx.db.query<{ id: number }>(sql`select user_id::float8 as id from api_tokens`))[0]?.id ?? 0;
  const tokenFor = (permission: "issues:read" | "pull_requests:read") =>
    createApiToken(world.ctx, { userId, canWrite: false, permissions: [permission] });
  const refused = await get(`/pulls/${number}/commits`, await tokenFor("issues:read"));
  expect([refused.status, refused.headers.get("x-accepted-github-permissions")]).toEqual([403, "pull_requests=read"]);
  const shown = await get(`/pulls/${number}/commits`, await tokenFor("pull_requests:read"));
  expect([shown.status, isPassed(shown)]).toEqual([200, false]);
});

test("a repository whose commits are mirrored no longer has its questions forwarded again", async () => {
  const { number } = openPull();
  await settleParts({ ...world.ctx, config: { ...world.ctx.config, mirror: [] } });
  expect(isPassed(await get(`/pulls/${number}/commits`))).toBe(true);
  const { ours, theirs } = await query(LISTS, number, UPSTREAM_TOKEN);
  expect([isPassed(ours), ours.body]).toEqual([true, theirs.body]);
});
