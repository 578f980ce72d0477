import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken, revokeApiTokens } from "../../src/api/callers/tokens.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import { storeTransfer } from "../../src/mirror/store/transfers.ts";
import type { Answered } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { countStatements } from "../support/statements.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { pathOf, type Target, targetOf } from "./targets.ts";

// Who sees what: every kind of caller, every visibility, every operation, as the router and the schema list them.

let world: ApiWorld;
/** The token of each kind of caller; null shows none. */
let tokens: Record<string, string | null>;
let open: Target;
let hidden: Target;
let other: Target;
/** An issue that left the open repository for the hidden one. */
let transferred: number;

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

const UNKNOWN = "nobody/nothing";
const GONE_NAME = "former-owner/former-name";

beforeAll(async () => {
  world = await openApiWorld({
    repositories: 6,
    issues: 50,
    env: {
      // What the mirror itself shows them.
      PASS_THROUGH: "off",
      RATE_LIMIT_ANONYMOUS: "0",
      RATE_LIMIT_SEARCH_USER: "0",
      RATE_LIMIT_SEARCH_ANONYMOUS: "0",
    },
  });
  const { ctx, userId, upstream } = world;
  const found = world.repositories.find(({ private: isPrivate }) => isPrivate);
  const others = world.repositories.filter(({ private: isPrivate }) => !isPrivate);
  if (!found || !others[0] || !others[1]) throw new Error("The world needs two public repositories and a private one");
  [hidden, open, other] = [
    await targetOf(world, found),
    await targetOf(world, others[0]),
    await targetOf(world, others[1]),
  ];
  await ctx.db.query(sql`insert into former_names (full_name, repository_id) values (${GONE_NAME}, ${hidden.id})`);
  const { number } = open.params;
  const [left] = await ctx.db.query<{ number: number }>(sql`
    update issues set deleted_at = now() where repository_id = ${open.id} and number =
      (select max(number) from issues
      where repository_id = ${open.id} and number <> ${Number(number)} and not is_pull_request) returning number`);
  transferred = left?.number ?? 0;
  const [from, to] = [
    { repositoryId: open.id, number: transferred },
    { repositoryId: hidden.id, number: Number(hidden.params.number) },
  ];
  await ctx.db.transaction((tx) => storeTransfer(tx, from, to));
  const scope = (id: number) => ({ repositoryIds: [id], ownerIds: [] });
  const revoked = await createApiToken(ctx, { userId, canWrite: true });
  await revokeApiTokens(ctx, [(await import("../../src/api/callers/tokens.ts")).apiTokenId(revoked)]);
  upstream.tokens.create({ token: "ghp_sees", login: "insider", repositories: [hidden.fullName] });
  upstream.tokens.create({ token: "ghp_blind", login: "outsider" });
  tokens = {
    "our token": await createApiToken(ctx, { userId, canWrite: true }),
    "our token that reads": await createApiToken(ctx, { userId, canWrite: false }),
    "our token for it": await createApiToken(ctx, { userId, canWrite: true, scope: scope(hidden.id) }),
    "our token for another": await createApiToken(ctx, { userId, canWrite: true, scope: scope(other.id) }),
    "upstream's token that sees it": "ghp_sees",
    "upstream's token that does not": "ghp_blind",
    nobody: null,
    "a revoked token": revoked,
    "a token of nobody": "ghp_invented",
  };
});
afterAll(() => world?.[Symbol.asyncDispose]());

const sees: Record<string, boolean> = {
  "our token": true,
  "our token that reads": true,
  "our token for it": true,
  "our token for another": false,
  "upstream's token that sees it": true,
  "upstream's token that does not": false,
  nobody: false,
  "a revoked token": false,
  "a token of nobody": false,
};
const isRefused = (caller: string) => caller === "a revoked token" || caller === "a token of nobody";
const callers = Object.keys(sees);
const operations = MIRROR_OPERATIONS.filter(({ route }) => route.run.of === "repository");
const reads = operations.filter(({ route }) => route.method === "GET").map(({ path }) => path);
const writes = operations.filter(({ route }) => route.method !== "GET").map(({ path, route }) => [route.method, path]);

/** An answer without the headers that differ between any two requests. */
function shape({ status, headers, text }: Answered): Body {
  const kept = [...headers].filter(
    ([name]) => !/^(date|x-github-request-id|x-ratelimit-(remaining|used|reset))$/.test(name),
  );
  return { status, headers: Object.fromEntries(kept), text };
}

/** Nothing is forwarded here, so nobody can tell a token of upstream's whether upstream would show a repository. */
const unknownTo = (caller: string) => (caller.startsWith("upstream's") ? 403 : 404);

const ask = (caller: string, method: string, path: string, body?: string) =>
  world.send(method, path, { token: tokens[caller] ?? null, ...(body === undefined ? {} : { body }) });

describe.each(callers)("%s", (caller) => {
  test.each(reads)("GET /repos/{owner}/{repo}%s", async (path) => {
    const at = (name: string, target: Target) => ask(caller, "GET", `/repos/${name}${pathOf(path, target)}`);
    const [seen, unseen, unknown] = [
      await at(open.fullName, open),
      await at(hidden.fullName, hidden),
      await at(UNKNOWN, hidden),
    ];
    if (isRefused(caller)) {
      for (const answer of [seen, unseen, unknown]) expect(answer.body.message).toBe("Bad credentials");
      return;
    }
    expect(seen.status, seen.text).toBeLessThan(300);
    expect(unknown.status).toBe(unknownTo(caller));
    if (sees[caller]) {
      expect(unseen.status, unseen.text).toBeLessThan(300);
      expect((await at(GONE_NAME, hidden)).status).toBe(301);
      return;
    }
    expect(shape(unseen)).toEqual(shape(unknown));
    expect(shape(await at(GONE_NAME, hidden))).toEqual(shape(unknown));
    expect(shape(await ask(caller, "GET", `/repositories/${hidden.id}${pathOf(path, hidden)}`))).toEqual(
      shape(unknown),
    );
  });

  test("an issue that was transferred to it", async () => {
    const { status, headers } = await ask(caller, "GET", `/repos/${open.fullName}/issues/${transferred}`);
    expect(status).toBe(isRefused(caller) ? 401 : sees[caller] ? 301 : 404);
    const place = `/repositories/${hidden.id}/issues/${hidden.params.number}`;
    expect(headers.get("location")?.endsWith(place) ?? false).toBe(sees[caller]);
  });

  test.each(writes)("%s /repos/{owner}/{repo}%s", async (method, path) => {
    if (caller === "our token" || caller === "our token for it" || caller === "upstream's token that sees it") return;
    const at = (name: string, target: Target) =>
      ask(caller, method ?? "", `/repos/${name}${pathOf(path ?? "", target)}`, "{}");
    const [unseen, unknown] = [await at(hidden.fullName, hidden), await at(UNKNOWN, hidden)];
    if (sees[caller]) expect(unseen.status).toBe(403);
    else expect(shape(unseen)).toEqual(shape(unknown));
    const inPublic = await at(open.fullName, open);
    // Upstream itself judges the writes of callers with its own tokens.
    const isJudged = caller === "upstream's token that does not";
    // Everyone who sees a pull request may begin a review. It is visible to its author alone until it is submitted.
    const refusals = isJudged ? [path === "/pulls/:number/reviews" ? 200 : 403, 403, 404, 422] : [401, 403];
    expect(refusals, inPublic.text).toContain(inPublic.status);
  });

  test("what lists repositories lists those that they see, and counts no more", async () => {
    if (isRefused(caller) || caller === "nobody") return;
    const { body } = await ask(caller, "GET", "/user/repos?per_page=100");
    const names = body.map((row: Body) => row.full_name);
    expect(names.includes(hidden.fullName)).toBe(sees[caller]);
    expect(names).toContain(open.fullName);
  });
});

/** Reads outside any repository. Each must keep quiet about a hidden one, in its rows, its counts and its errors. */
const elsewhere = MIRROR_OPERATIONS.filter(({ route }) => route.run.of === "service" && route.method === "GET");

describe.each(callers)("%s, elsewhere", (caller) => {
  test.each(elsewhere.map(({ path }) => path))("GET %s", async (path) => {
    const [owner = "", name = ""] = hidden.fullName.split("/");
    const title = `"${hidden.title}"`;
    const queries = path.startsWith("/search/")
      ? [title, `${title} is:open`, name, `user:${owner}`, `${title} repo:${open.fullName}`]
      : [null];
    for (const q of queries) {
      const params: Record<string, string> = { ":id": String(hidden.ownerId), ":repository_id": String(hidden.id) };
      const at = path
        .split("/")
        .map((segment) => (segment.startsWith(":") ? (params[segment] ?? owner) : segment))
        .join("/");
      const asked = new URLSearchParams({
        per_page: "100",
        ...(q === null ? {} : { q }),
        ...(path === "/search/labels" ? { repository_id: String(hidden.id) } : {}),
      });
      if (path === "/issues" || path === "/user/issues" || path.endsWith("/issues"))
        if (q === null) asked.set("filter", "all");
      const { status, text, body } = await ask(caller, "GET", `${at}?${asked}`);
      expect(status, text).toBeLessThan(500);
      if (sees[caller]) continue;
      expect(text, `${at}?${asked}`).not.toContain(hidden.fullName);
      expect(text).not.toContain(`/repositories/${hidden.id}/`);
      if (Array.isArray(body?.items)) expect(body.items).toHaveLength(body.total_count);
    }
  });

  test("a search in it is a search in nothing", async () => {
    for (const path of ["/search/issues", "/search/repositories"]) {
      const at = (name: string) => ask(caller, "GET", `${path}?q=${encodeURIComponent(`repo:${name} is:public`)}`);
      const [unseen, unknown] = [await at(hidden.fullName), await at(UNKNOWN)];
      if (sees[caller]) expect(unseen.status).toBe(200);
      else expect(shape(unseen)).toEqual(shape(unknown));
    }
  });
});

test("a hidden repository costs as many statements as one that does not exist", async () => {
  const countOnce = async (name: string) => {
    using statements = countStatements();
    await ask("our token for another", "GET", `/repos/${name}/issues`);
    return statements.count();
  };
  // The lowest of several counts: tasks that the server does by the clock may add to one.
  const count = async (name: string) => {
    await countOnce(name);
    return Math.min(await countOnce(name), await countOnce(name), await countOnce(name));
  };
  expect(await count(hidden.fullName)).toBe(await count(UNKNOWN));
});

test.each(callers.filter((caller) => !isRefused(caller)))("%s: searches", async (caller) => {
  for (const path of ["/search/issues?q=repo:", "/search/repositories?q=repo:"]) {
    const [seen, unknown] = [
      await ask(caller, "GET", path + hidden.fullName),
      await ask(caller, "GET", path + UNKNOWN),
    ];
    expect(unknown.status).toBe(422);
    if (sees[caller]) expect(seen.body.total_count).toBeGreaterThan(0);
    else expect([seen.status, seen.text]).toEqual([unknown.status, unknown.text]);
  }
  const labels = await ask(caller, "GET", `/search/labels?repository_id=${hidden.id}&q=bug`);
  expect(labels.status).toBe(sees[caller] ? 200 : unknownTo(caller));
});

describe("GraphQL", () => {
  const graphql = async (caller: string, query: string, variables: object = {}): Promise<Body> =>
    (await ask(caller, "POST", "/graphql", JSON.stringify({ query, variables }))).body;
  const named = (fullName: string) => {
    const [owner, name] = fullName.split("/");
    return { owner, name };
  };
  const BY_NAME = "query($owner: String!, $name: String!)";
  const users = callers.filter((caller) => caller !== "nobody" && !isRefused(caller));

  test("every root field is looked at below", () => {
    const fields = Object.keys(apiSchema().getQueryType()?.getFields() ?? {});
    const looked = [
      "repository",
      "repositoryOwner",
      "organization",
      "user",
      "viewer",
      "node",
      "nodes",
      "resource",
      "search",
    ];
    expect(fields.filter((field) => !looked.includes(field))).toEqual(["rateLimit"]);
  });

  test.each(users)("%s", async (caller) => {
    const query = `${BY_NAME} { repository(owner: $owner, name: $name) { id issues { totalCount } } }`;
    const [seen, unseen, unknown, former] = [
      await graphql(caller, query, named(open.fullName)),
      await graphql(caller, query, named(hidden.fullName)),
      await graphql(caller, query, named(UNKNOWN)),
      await graphql(caller, query, named(GONE_NAME)),
    ];
    expect(seen.data.repository.id).toBe(open.nodes.repository);
    if (sees[caller]) {
      expect(unseen.data.repository.id).toBe(hidden.nodes.repository);
      expect(former.data.repository.id).toBe(hidden.nodes.repository);
    } else {
      const as = (body: Body, name: string) => JSON.parse(JSON.stringify(body).replaceAll(name, UNKNOWN));
      expect(as(unseen, hidden.fullName)).toEqual(unknown);
      expect(as(former, GONE_NAME)).toEqual(unknown);
    }

    for (const [kind, id] of Object.entries(hidden.nodes)) {
      const { data, errors } = await graphql(
        caller,
        "query($id: ID!) { node(id: $id) { id } nodes(ids: [$id]) { id } }",
        { id },
      );
      expect([data.node?.id ?? null, data.nodes[0]?.id ?? null], kind).toEqual(sees[caller] ? [id, id] : [null, null]);
      if (!sees[caller]) expect(errors.map((error: Body) => error.type)).toEqual(["NOT_FOUND", "NOT_FOUND"]);
    }
    for (const url of hidden.pages) {
      const { data } = await graphql(caller, "query($url: URI!) { resource(url: $url) { url } }", { url });
      expect(data.resource?.url ?? null).toBe(sees[caller] ? url : null);
    }

    const search =
      "query($q: String!) { search(type: ISSUE, query: $q, first: 50) { issueCount nodes { ... on Issue { url } ... on PullRequest { url } } } }";
    for (const q of [`"${hidden.title}"`, `user:${named(hidden.fullName).owner}`]) {
      const found = (await graphql(caller, search, { q })).data?.search;
      const isInIt = (node: Body) => node.url.includes(`/${hidden.fullName}/`);
      if (sees[caller]) expect(found.nodes.some(isInIt)).toBe(true);
      else if (found) expect([found.nodes.some(isInIt), found.issueCount]).toEqual([false, found.nodes.length]);
    }
    const SEARCH = `query($q: String!) { issues: search(type: ISSUE, query: $q, first: 100) { issueCount nodes { ... on Issue { id } ... on PullRequest { id } } }
      repositories: search(type: REPOSITORY, query: $q, first: 100) { repositoryCount nodes { ... on Repository { id } } } }`;
    const inIt = await graphql(caller, SEARCH, { q: `repo:${hidden.fullName}` });
    if (sees[caller]) {
      expect(inIt.data.issues.issueCount).toBeGreaterThan(0);
      expect(inIt.data.repositories.nodes).toEqual([{ id: hidden.nodes.repository }]);
    } else expect(inIt).toEqual(await graphql(caller, SEARCH, { q: `repo:${UNKNOWN}` }));
    const everywhere = (await graphql(caller, SEARCH, { q: `-repo:${open.fullName}` })).data.repositories;
    expect(everywhere.nodes).toHaveLength(everywhere.repositoryCount);
    expect(everywhere.nodes.some(({ id }: { id: string }) => id === hidden.nodes.repository)).toBe(sees[caller]);

    if (!sees[caller]) {
      for (const field of ["issueChanged", "pullRequestChanged"]) {
        const { headers, body } = await world.send("POST", "/graphql", {
          token: tokens[caller] ?? null,
          headers: { accept: "text/event-stream" },
          body: JSON.stringify({
            query: `subscription { ${field}(repositoryId: "${hidden.nodes.repository}") { number } }`,
          }),
        });
        expect(headers.get("content-type")).toMatch(/json/);
        expect(body.errors[0].type).toBe("NOT_FOUND");
      }
    }

    const { owner, name } = named(hidden.fullName);
    const below = await graphql(
      caller,
      `${BY_NAME} { viewer { repositories(first: 100) { totalCount totalDiskUsage nodes { nameWithOwner } } }
        repositoryOwner(login: $owner) { repositories(first: 100) { totalCount nodes { nameWithOwner } } repository(name: $name) { id } }
        organization(login: $owner) { repositories(first: 100) { totalCount } repository(name: $name) { id } }
        user(login: $owner) { repositories(first: 100) { totalCount } repository(name: $name) { id } } }`,
      { owner, name },
    );
    const { viewer, repositoryOwner, organization, user } = below.data;
    for (const { totalCount, nodes } of [viewer.repositories, repositoryOwner.repositories]) {
      expect(nodes).toHaveLength(totalCount);
      if (!sees[caller]) expect(nodes).not.toContainEqual({ nameWithOwner: hidden.fullName });
    }
    if (sees[caller]) expect(repositoryOwner.repositories.nodes).toContainEqual({ nameWithOwner: hidden.fullName });
    expect((organization ?? user).repositories.totalCount).toBe(repositoryOwner.repositories.totalCount);
    for (const account of [repositoryOwner, organization, user].filter(Boolean))
      expect(account.repository?.id ?? null).toBe(sees[caller] ? hidden.nodes.repository : null);
  });

  test("a viewer's permission is the one that REST shows them", async () => {
    const LEVELS = { admin: "ADMIN", maintain: "MAINTAIN", push: "WRITE", triage: "TRIAGE", pull: "READ" };
    const query = `${BY_NAME} { repository(owner: $owner, name: $name) { viewerPermission viewerCanAdminister } }`;
    const shown = new Set<string | null>();
    for (const caller of users) {
      for (const target of sees[caller] ? [open, hidden] : [open]) {
        const { permissions } = (await ask(caller, "GET", `/repos/${target.fullName}`)).body;
        const level = Object.entries(LEVELS).find(([name]) => permissions?.[name])?.[1] ?? null;
        const { data } = await graphql(caller, query, named(target.fullName));
        const wanted = { viewerPermission: level, viewerCanAdminister: level === "ADMIN" };
        expect(data.repository, `${caller}, ${target.fullName}`).toEqual(wanted);
        shown.add(level);
      }
    }
    expect(shown).toEqual(new Set(["ADMIN", "READ"]));
  });

  test("a fork whose origin they do not see has none, for them", async () => {
    const doc = (await world.getUpstream(`/repos/${open.fullName}`)).body;
    const origin = (await world.getUpstream(`/repos/${hidden.fullName}`)).body;
    const fork = { ...doc, fork: true, parent: origin, source: origin, template_repository: origin };
    await store(world.ctx, world.upstream, "repository", fork);
    const query = `${BY_NAME} { repository(owner: $owner, name: $name) { isFork parent { nameWithOwner } templateRepository { nameWithOwner } } }`;
    for (const caller of users) {
      const { data } = await graphql(caller, query, named(open.fullName));
      const shown = sees[caller] ? { nameWithOwner: hidden.fullName } : null;
      expect(data.repository, caller).toEqual({ isFork: true, parent: shown, templateRepository: shown });
    }
    await store(world.ctx, world.upstream, "repository", doc);
  });
});
