import { afterAll, beforeAll, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { checkApp, createCheckRun, createStatus } from "../../src/simulator/changes/checks.ts";
import { pushToPull } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import type { CheckConclusion, StatusState } from "../../src/simulator/world/records-code.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { askAt } from "../support/asking.ts";
import { markChecksDue } from "../support/due.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Searches by the state of a pull request's checks. The mirror must find what upstream finds.

const STATES = ["success", "failure", "pending"];
const CLASSIC = "ghp_of_a_person";
const FINE = "github_pat_of_a_person";
let world: TestWorld;
let repo: string;
let repository: Repository;
let open: PullIssue[];

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "checks" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 40 });
      for (const one of filled.repositories.values()) one.visibility = "private";
    },
  });
  repo = world.first;
  const [owner = "", name = ""] = repo.split("/");
  const { simulator } = world;
  const found = simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  const pulls = [...repository.rows.issuesByCreated.ascending()].filter((one): one is PullIssue => isPull(one));
  open = pulls.filter(({ state }) => state === "open");
  const closed = pulls.find(({ state }) => state === "closed");
  if (open.length < 6 || !closed) throw new Error("The generated world needs six open pull requests and a closed one");
  say(open[0], "failure", "success");
  say(open[1], "success", "success");
  say(open[2], null, "success");
  say(open[3], "neutral");
  say(open[4], "skipped", "pending");
  say(closed, "failure");
  // The rerun, which passed, counts instead of the run that it repeats.
  say(open[1], "failure");
  say(open[1], "success");
  simulator.tokens.create({ token: CLASSIC, login: "person", repositories: "all" });
  simulator.tokens.create({
    ...{ token: FINE, login: "fine", kind: "fine-grained", repositories: [repo] },
    permissions: { issues: "read", pull_requests: "read", statuses: "read" },
  });
  await world.mirror(repo);
  await world.listen(repo);
  await copyChecks();
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** @param conclusion null: the run is under way */
function say(pull: PullIssue | undefined, conclusion: CheckConclusion | null, state?: StatusState): void {
  const { world: records } = world.simulator;
  const headSha = pull?.pull.head.sha ?? "";
  const app = checkApp(records, "linter");
  const by = repository.ownerId;
  createCheckRun(records, by, { repository, app, headSha, name: "build", ...(conclusion && { conclusion }) });
  if (state) createStatus(records, by, { repository, sha: headSha, state, context: "ci" });
}

async function copyChecks(): Promise<void> {
  await world.settle();
  world.advance(60_000);
  await markChecksDue(world.ctx);
  await world.settleMarks();
}

const search = (query: string, token: string) => {
  const body = JSON.stringify({
    query:
      "query($q: String!) { search(type: ISSUE, query: $q, first: 50) { issueCount nodes { ... on PullRequest { number } ... on Issue { number } } } }",
    variables: { q: query },
  });
  const ask = (url: string) => askAt(url, "POST", "/graphql", { token, body });
  return { ours: () => ask(world.url), theirs: () => ask(world.simulator.url) };
};

const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");

test("finds by each state what upstream finds, for callers with our tokens and with upstream's", async () => {
  const seen = new Set<number>();
  for (const state of STATES) {
    const query = `repo:${repo} is:open is:pr status:${state}`;
    const { body: theirs } = await search(query, CLASSIC).theirs();
    const numbers: number[] = theirs.data.search.nodes.map(({ number }: { number: number }) => number);
    for (const token of [CLASSIC, world.token]) {
      const ours = await search(query, token).ours();
      expect(isPassed(ours), query).toBe(false);
      expect(ours.body, query).toEqual(theirs);
      const rest = await askAt(world.url, "GET", `/search/issues?q=${encodeURIComponent(query)}`, { token });
      expect(rest.body.items.map((one: { number: number }) => one.number).sort(), query).toEqual(numbers.sort());
    }
    for (const number of numbers) seen.add(number);
  }
  const of = (...at: number[]) => at.map((one) => open[one]?.number);
  expect([...seen].sort()).toEqual(of(0, 1, 2, 3, 4).sort());
});

test("is upstream's to answer where it is not known how the checks stand", async () => {
  const asked: [query: string, token: string][] = [
    [`repo:${repo} is:pr status:failure`, CLASSIC],
    [`repo:${repo} is:open -status:failure`, CLASSIC],
    [`repo:${repo} is:open status:failure`, FINE],
  ];
  for (const [query, token] of asked) {
    const { ours, theirs } = search(query, token);
    const answer = await ours();
    expect(isPassed(answer), query).toBe(true);
    expect(answer.body, query).toEqual((await theirs()).body);
  }
  const withoutChecks = await createApiToken(world.ctx, {
    ...{ userId: repository.ownerId, canWrite: false },
    permissions: ["issues:read", "pull_requests:read"],
  });
  for (const [path, token] of [
    [`repo:${repo} is:pr status:failure`, world.token],
    [`repo:${repo} is:open status:broken`, world.token],
    [`repo:${repo} is:open status:failure`, withoutChecks],
  ] as const) {
    const answer = await askAt(world.url, "GET", `/search/issues?q=${encodeURIComponent(path)}`, { token });
    expect([answer.status, answer.body.errors?.[0].message], path).toEqual([422, expect.stringContaining('"status:"')]);
  }
});

test("a new head, and an error of a status, are upstream's until they are known", async () => {
  const query = `repo:${repo} is:open status:failure`;
  const [pull, other] = [open[5], open[3]];
  if (!pull || !other) throw new Error("There are too few pull requests");
  const by = repository.ownerId;
  pushToPull(world.simulator.world, by, pull);
  await world.settle();
  await copyChecks();
  expect(isPassed(await search(query, CLASSIC).ours())).toBe(false);
  createStatus(world.simulator.world, by, { repository, sha: other.pull.head.sha, state: "error", context: "ci" });
  await world.settle();
  const { ours, theirs } = search(query, CLASSIC);
  const answer = await ours();
  expect(isPassed(answer)).toBe(true);
  expect(answer.body).toEqual((await theirs()).body);
});
