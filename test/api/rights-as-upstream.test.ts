import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import type { TokenInput } from "../../src/simulator/world/tokens.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { EACH_GIVEN, GIVEN } from "./app-tokens.ts";
import { pathOf, type Target, targetOf } from "./targets.ts";

// Each kind of upstream's tokens is answered here as it is answered there.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: ApiWorld;
let hidden: Target;

beforeAll(async () => {
  world = await openApiWorld({ repositories: 6, issues: 50, env: { RATE_LIMIT_USER: "0", RATE_LIMIT_GRAPHQL: "0" } });
  const found = world.repositories.find((one) => one.private);
  if (!found) throw new Error("The world needs a private repository");
  hidden = await targetOf(world, found);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Those that permissions or scopes bound, each of an account of its own. */
const TOKENS: [string, Omit<TokenInput, "login" | "token">][] = [
  ...EACH_GIVEN.flatMap((name): (typeof TOKENS)[number][] => [
    [`fine-grained, ${name}`, { kind: "fine-grained", ...GIVEN[name] }],
    [`of Actions, ${name}`, { kind: "actions", ...GIVEN[name] }],
  ]),
  ["classic", { kind: "classic" }],
  ["classic, for public repositories", { kind: "classic", scopes: ["public_repo"] }],
  ["of an OAuth app, without a scope", { kind: "oauth", scopes: [] }],
];

const NOT_SIMULATED = new Set(["/assignees", "/assignees/:assignee", "/milestones/:number/labels"]);
const reads = MIRROR_OPERATIONS.filter(
  ({ path, route }) => route.run.of === "repository" && route.method === "GET" && !NOT_SIMULATED.has(path),
);
const READ = `query($owner: String!, $name: String!, $issue: Int!, $pull: Int!) { repository(owner: $owner, name: $name) {
  issue(number: $issue) { title } pullRequest(number: $pull) { title } labels(first: 1) { totalCount } } }`;
const LISTS = ["issues(first: 1) { totalCount }", "pullRequests(first: 1) { totalCount }"].map(
  (list) =>
    `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { nameWithOwner ${list} } }`,
);

describe.each(TOKENS)("a token that is %s", (name, input) => {
  const prefix = { "fine-grained": "github_pat", actions: "ghs" }[String(input.kind)] ?? "ghp";
  const token = `${prefix}_${name.replace(/\W+/g, "_")}`;
  beforeAll(() => {
    world.upstream.tokens.create({ ...input, token, login: `reader-${token}`, repositories: [hidden.fullName] });
  });
  const both = (method: string, path: string, body?: string) =>
    Promise.all(
      [world.url, world.upstream.url].map((base) => askAt(base, method, path, { token, ...(body ? { body } : {}) })),
    );

  test.each(reads.map(({ path }) => path))("GET /repos/{owner}/{repo}%s", async (path) => {
    const [ours, theirs] = await both("GET", `/repos/${hidden.fullName}${pathOf(path, hidden)}`);
    expect(ours?.status, ours?.text).toBe(theirs?.status);
    if (theirs?.status === 200) return;
    expect(ours?.body?.message).toBe(theirs?.body?.message);
    if (theirs?.status === 403) {
      const accepted = [ours, theirs].map((answer) => answer?.headers.get("x-accepted-github-permissions"));
      expect(accepted[0]).toBe(accepted[1]);
    }
  });

  test("by GraphQL", async () => {
    const [owner = "", repository = ""] = hidden.fullName.split("/");
    const { number, "pulls/number": pull } = hidden.params;
    const named = { owner, name: repository };
    const asked: [string, object][] = [[READ, { ...named, issue: Number(number), pull: Number(pull) }]];
    for (const list of LISTS) asked.push([list, named]);
    for (const [query, variables] of asked) {
      const [ours, theirs] = await both("POST", "/graphql", JSON.stringify({ query, variables }));
      const shown = ({ data, errors = [] }: Body) => ({
        data,
        // Fields beside each other are refused in the order in which that is found out.
        errors: errors
          .map(({ type, path, message, extensions }: Body) => ({ type, path, message, extensions }))
          .toSorted((one: Body, other: Body) => String(one.path).localeCompare(String(other.path))),
      });
      expect(shown(ours?.body)).toEqual(shown(theirs?.body));
    }
  });
});
