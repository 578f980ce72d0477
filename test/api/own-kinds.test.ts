import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Permission } from "../../src/api/callers/permissions.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { EACH_GIVEN, GIVEN, type Given } from "./app-tokens.ts";
import { pathOf, type Target, targetOf } from "./targets.ts";

// One of our own tokens, given some kinds, is answered as a fine-grained token of upstream's that was given the same.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: ApiWorld;
let hidden: Target;
let open: Target;
const theirs = {} as Record<Given, string>;
const ours = {} as Record<Given, string>;
/** Our own tokens for everything that is mirrored. */
const wide = {} as Record<Given, string>;

const make = (permissions: readonly Permission[], repositoryIds?: number[]) => {
  const scope = repositoryIds ? { repositoryIds, ownerIds: [] } : null;
  return createApiToken(world.ctx, { userId: world.userId, canWrite: false, permissions, scope });
};

beforeAll(async () => {
  const off = { RATE_LIMIT_USER: "0", RATE_LIMIT_GRAPHQL: "0", RATE_LIMIT_SEARCH_USER: "0", PASS_THROUGH: "off" };
  world = await openApiWorld({ repositories: 6, issues: 50, upstreamTokens: 20, env: off });
  const found = world.repositories.find((one) => one.private);
  const isPublic = world.repositories.find((one) => !one.private);
  if (!found || !isPublic) throw new Error("The world needs a public repository and a private one");
  [hidden, open] = [await targetOf(world, found), await targetOf(world, isPublic)];
  const repositories = [hidden.fullName];
  for (const name of EACH_GIVEN) {
    theirs[name] = `github_pat_${name.replace(/\W+/g, "_")}`;
    const login = `reader-${theirs[name]}`;
    world.upstream.tokens.create({ token: theirs[name], login, repositories, kind: "fine-grained", ...GIVEN[name] });
    const kinds = Object.keys(GIVEN[name].permissions).filter((kind) => kind !== "metadata");
    // No type can say that what is left are kinds.
    const permissions = kinds.map((kind) => `${kind}:read`) as Permission[];
    ours[name] = await make(permissions, [hidden.id]);
    wide[name] = await make(permissions);
  }
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Removes the keys that depend on the account's own role in the repository. */
const withoutViewer = (text: string) =>
  text
    .replaceAll(/,"(permissions|security_and_analysis)":\{("\w+":(\w+|\{[^}]*\}),?)*\}/g, "")
    .replaceAll(
      /,"(temp_clone_token|allow_(?!forking)\w+|delete_branch_on_merge|use_squash_\w+|(squash_)?merge_commit_\w+)":("\w*"|\w+)/g,
      "",
    );
const HIDDEN_LISTS = ["", "issues", "pulls"].map((list) => [`/repos/:r/${list}?state=all&per_page=100`] as const);
const SEARCHES = ["/search/issues?q=is:issue", "/search/issues?q=is:pr", "/search/labels?q=bug&repository_id=:id"];

describe.each(EACH_GIVEN)("given %s", (name) => {
  const both = async (method: string, path: string, body?: object) =>
    Promise.all(
      [ours[name], theirs[name]].map((token) =>
        world.send(method, path, { token, ...(body ? { body: JSON.stringify(body) } : {}) }),
      ),
    );

  test("each read of a private repository has the same answer", async () => {
    const reads = MIRROR_OPERATIONS.filter(({ route }) => route.run.of === "repository" && route.method === "GET");
    for (const { path } of reads) {
      const [mine, upstreams] = await both("GET", `/repos/${hidden.fullName}${pathOf(path, hidden)}`);
      expect([mine?.status, withoutViewer(mine?.text ?? "")], path).toEqual([
        upstreams?.status,
        withoutViewer(upstreams?.text ?? ""),
      ]);
      const accepted = [mine, upstreams].map((answer) => answer?.headers.get("x-accepted-github-permissions"));
      expect(accepted[0], path).toBe(accepted[1]);
      const ofAll = await world.get(`/repos/${hidden.fullName}${pathOf(path, hidden)}`, { token: wide[name] });
      expect([ofAll.status, ofAll.text], path).toEqual([mine?.status, mine?.text]);
    }
  });

  test.each([...HIDDEN_LISTS, ...SEARCHES.map((path) => [path] as const)])(
    "%s: what it lists, finds and counts is the same",
    async (path) => {
      const asked = path.replace(":r", hidden.fullName).replace(":id", String(hidden.id));
      const [mine, upstreams] = await both("GET", asked);
      expect(withoutViewer(mine?.text ?? "")).toEqual(withoutViewer(upstreams?.text ?? ""));
    },
  );

  test("by GraphQL too: fields, lists, counts and searches", async () => {
    const [owner, repository] = hidden.fullName.split("/");
    for (const asked of [
      `repository(owner: "${owner}", name: "${repository}") { issues(first: 9) { totalCount nodes { title } } }`,
      `repository(owner: "${owner}", name: "${repository}") { pullRequests(first: 9) { totalCount nodes { title } } }`,
      `repository(owner: "${owner}", name: "${repository}") { labels(first: 9) { totalCount } }`,
      `search(type: ISSUE, query: "is:issue", first: 20) { issueCount nodes { ... on Issue { title } } }`,
      `search(type: ISSUE, query: "is:pr", first: 20) { issueCount nodes { ... on PullRequest { title } } }`,
    ]) {
      const [mine, upstreams] = await both("POST", "/graphql", { query: `{ ${asked} }` });
      const shown = ({ data, errors = [] }: Body) => [data, errors.map(({ type, message }: Body) => [type, message])];
      expect(shown(mine?.body), asked).toEqual(shown(upstreams?.body));
    }
  });

  test("it writes nothing, and is told what that takes", async () => {
    const { number } = hidden.params;
    for (const target of [hidden, open]) {
      const answer = await world.send("PATCH", `/repos/${target.fullName}/issues/${number}`, {
        token: ours[name],
        body: '{"title":"no"}',
      });
      expect([answer.status, answer.body.message]).toEqual([403, "Resource not accessible by personal access token"]);
      expect(answer.headers.get("x-accepted-github-permissions")).toBe("issues=write; pull_requests=write");
    }
  });
});

describe.each([
  ["issues:write", "issue", "pull request"],
  ["pull_requests:write", "pull request", "issue"],
] as const)("given %s", (permission, writable, other) => {
  const subjects = async (kind: string) => {
    const isPull = kind === "pull request";
    const rows: Body[] = (await world.get(`/repos/${open.fullName}/issues?state=all&per_page=100`)).body;
    const row = rows.find((one) => !!one.pull_request === isPull);
    const comment = await world.send("POST", `/repos/${open.fullName}/issues/${row.number}/comments`, {
      body: '{"body":"a comment"}',
    });
    return { number: row.number, node: row.node_id, comment: comment.body };
  };

  test(`it writes to a(n) ${writable} and what lies there, and not to a(n) ${other}`, async () => {
    const token = await make([permission]);
    const asked = async (kind: string) => {
      const { number, node, comment } = await subjects(kind);
      const below = `/repos/${open.fullName}/issues`;
      const statuses: number[] = [];
      for (const [method, path, body] of [
        ["PATCH", `${below}/${number}`, '{"title":"changed"}'],
        ["PATCH", `${below}/comments/${comment.id}`, '{"body":"changed"}'],
      ] as const)
        statuses.push((await world.send(method, path, { token, body })).status);
      const input = { subjectId: node, body: "by GraphQL" };
      const query = "mutation($input: AddCommentInput!) { addComment(input: $input) { clientMutationId } }";
      const answer = await world.send("POST", "/graphql", {
        token,
        body: JSON.stringify({ query, variables: { input } }),
      });
      return { statuses, errors: (answer.body.errors ?? []).map(({ type, message }: Body) => [type, message]) };
    };
    expect(await asked(writable)).toEqual({ statuses: [200, 200], errors: [] });
    expect(await asked(other)).toEqual({
      statuses: [403, 403],
      errors: [["FORBIDDEN", "Resource not accessible by personal access token"]],
    });
    const label = await world.send("POST", `/repos/${open.fullName}/labels`, {
      token,
      body: JSON.stringify({ name: permission }),
    });
    expect(label.status).toBe(201);
  });

  test("what is not mirrored yet, and so may be either, is not written to", async () => {
    const token = await make([permission]);
    const at = (below: string) => `/repos/${open.fullName}/issues/${below}`;
    for (const path of [at("999999"), at("comments/999999999")])
      expect((await world.send("PATCH", path, { token, body: '{"body":"x"}' })).status, path).toBe(403);
  });

  test("it reads what it writes, and is told of no rights beyond reading", async () => {
    const token = await make([permission]);
    const list = permission === "issues:write" ? "issues" : "pulls";
    expect((await world.get(`/repos/${hidden.fullName}/${list}`, { token })).status).toBe(200);
    expect((await world.get(`/repos/${hidden.fullName}`, { token })).body.permissions).toEqual({
      admin: false,
      maintain: false,
      push: false,
      triage: false,
      pull: true,
    });
  });
});
