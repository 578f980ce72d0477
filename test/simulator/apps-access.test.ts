import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { APP_ID, CLIENT_ID, jwtOf, NOW, openAppWorld } from "./app-world.ts";
import { answerSchema, problemsOf, readDescription, unknownFields } from "./openapi.ts";
import { rel, TOKEN } from "./simulated.ts";

const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const GOOD = { iss: CLIENT_ID, iat: NOW - 60, exp: NOW + 540 };
const NOT_DECODED = "A JSON web token could not be decoded";
const NO_EXPIRY =
  "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
const TOO_FAR = "'Expiration time' claim ('exp') is too far in the future";
const NO_ISSUE = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
const NO_ISSUER = "'Issuer' claim ('iss') must be an Integer";

test.each([
  ["its client id", jwtOf(GOOD), 200, undefined],
  ["its id as a number", jwtOf({ ...GOOD, iss: APP_ID }), 200, undefined],
  ["its id in digits", jwtOf({ ...GOOD, iss: String(APP_ID) }), 200, undefined],
  ["an id that no App has", jwtOf({ ...GOOD, iss: 1 }), 404, "Integration not found"],
  ["a client id that no App has", jwtOf({ ...GOOD, iss: "Iv23unknown" }), 401, NO_ISSUER],
  ["another key", jwtOf(GOOD, other), 401, NOT_DECODED],
  ["another algorithm", jwtOf(GOOD, undefined, { alg: "HS256" }), 401, NOT_DECODED],
  ["no algorithm", `${jwtOf(GOOD, undefined, { alg: "none" }).replace(/[^.]+$/, "")}`, 401, NOT_DECODED],
  ["a broken signature", `${jwtOf(GOOD).slice(0, -9)}AAAAAAAAA`, 401, NOT_DECODED],
  ["exp at just ten minutes", jwtOf({ ...GOOD, exp: NOW + 600 }), 200, undefined],
  ["exp a second beyond", jwtOf({ ...GOOD, exp: NOW + 601 }), 401, TOO_FAR],
  ["exp in the past", jwtOf({ ...GOOD, exp: NOW }), 401, NO_EXPIRY],
  ["exp that is no number", jwtOf({ ...GOOD, exp: "soon" }), 401, NO_EXPIRY],
  ["no exp", jwtOf({ iss: CLIENT_ID, iat: NOW }), 401, NO_EXPIRY],
  ["iat now", jwtOf({ ...GOOD, iat: NOW }), 200, undefined],
  ["iat in the future", jwtOf({ ...GOOD, iat: NOW + 1 }), 401, NO_ISSUE],
  ["iat that is no integer", jwtOf({ ...GOOD, iat: NOW - 0.5 }), 401, NO_ISSUE],
])("a JWT with %s", async (_what, jwt, status, message) => {
  await using it = await openAppWorld();
  const reply = await it.get("/app", { token: null, headers: { authorization: `Bearer ${jwt}` } });
  expect([reply.status, reply.body.message]).toEqual([status, message]);
});

test("an App's routes take a JWT as Bearer and nothing else; other routes take no JWT", async () => {
  await using it = await openAppWorld();
  expect((await it.get("/app", { token: null })).body.message).toBe(NOT_DECODED);
  expect((await it.get("/app")).body).toMatchObject({ message: NOT_DECODED, status: "401" });
  expect((await it.get("/app", { token: it.jwt() })).status).toBe(401);
  expect((await it.app("GET", "/repos/octo/demo")).body.message).toBe("Bad credentials");
  expect((await it.app("POST", "/graphql", { query: "{ viewer { login } }" })).status).toBe(401);
});

test("the service's own clock decides, and its Date header tells it", async () => {
  await using it = await openAppWorld();
  const jwt = it.jwt();
  it.clock.advance(3_600_000);
  const late = await it.get("/app", { token: null, headers: { authorization: `Bearer ${jwt}` } });
  expect([late.status, late.body.message]).toEqual([401, NO_EXPIRY]);
  expect(Date.parse(late.headers.get("date") ?? "")).toBe(it.clock.now());
  it.clock.advance(-2 * 3_600_000);
  const early = await it.get("/app", { token: null, headers: { authorization: `Bearer ${jwt}` } });
  expect(early.body.message).toBe(TOO_FAR);
});

test("answers to a JWT carry no rate limit, and validators that survive the next JWT", async () => {
  await using it = await openAppWorld();
  const first = await it.app("GET", "/app");
  expect([...first.headers.keys()].filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
  expect(first.headers.get("cache-control")).toBe("public, max-age=60, s-maxage=60");
  it.clock.advance(300_000);
  const again = await it.app("GET", "/app", undefined, { "if-none-match": first.headers.get("etag") ?? "" });
  expect(again.status).toBe(304);
  const meter = (await it.control("GET", "/-/meter")).body;
  expect(meter.callers[`app:${APP_ID}`].core).toMatchObject({ requests: 2, notModified: 1 });
});

test("every answer for Apps has the shape that the service's description gives it", async () => {
  const description = readDescription();
  const wrong: string[] = [];
  const check = (method: string, template: string, status: string, body: unknown) => {
    const schema = answerSchema(description, method, template, status);
    wrong.push(...problemsOf(description, schema, body).map((problem) => `${template} ${problem}`));
    wrong.push(...unknownFields(description, schema, body).map((field) => `${template} ${field}: unknown`));
  };
  await using it = await openAppWorld();
  it.simulator.world.addUser({ login: "acme", type: "Organization" });
  await it.control("POST", "/-/installations", { app: APP_ID, account: "acme" });
  check("get", "/app", "200", (await it.app("GET", "/app")).body);
  // The description has an older copy of this schema for the list. Nothing can meet it: the account would be a user and
  // an enterprise at once. So each installation is checked by itself.
  for (const one of (await it.app("GET", "/app/installations")).body)
    check("get", "/app/installations/{installation_id}", "200", one);
  const { installationId } = it;
  for (const [path, template] of [
    [`/app/installations/${installationId}`, "/app/installations/{installation_id}"],
    ["/repos/octo/secret/installation", "/repos/{owner}/{repo}/installation"],
    ["/orgs/acme/installation", "/orgs/{org}/installation"],
    ["/users/octo/installation", "/users/{username}/installation"],
    ["/app/hook/config", "/app/hook/config"],
  ] as const) {
    const reply = await it.app("GET", path);
    expect(reply.status, path).toBe(200);
    check("get", template, "200", reply.body);
  }
  const tokens = `/app/installations/${installationId}/access_tokens`;
  const made = await it.app("POST", tokens, { repositories: ["demo"] });
  expect(made.status).toBe(201);
  check("post", "/app/installations/{installation_id}/access_tokens", "201", made.body);
  const list = await it.get("/installation/repositories", { token: made.body.token });
  check("get", "/installation/repositories", "200", list.body);
  expect(wrong).toEqual([]);
});

test("installations are listed in pages, found by where they are, and only the App's own", async () => {
  await using it = await openAppWorld();
  const { world, apps } = it.simulator;
  world.addUser({ login: "acme", type: "Organization" });
  await it.control("POST", "/-/installations", { app: APP_ID, account: "acme" });
  const foreign = apps.create({ slug: "other", installations: [{ account: "eve" }] });
  const page = await it.app("GET", "/app/installations?per_page=1");
  expect(page.body.map((one: { id: number }) => one.id)).toEqual([it.installationId]);
  const next = new URL(rel(page, "next") ?? "");
  expect((await it.app("GET", next.pathname + next.search)).body[0].account.login).toBe("acme");
  expect((await it.app("GET", `/app/installations/${apps.of(foreign.app)[0]?.id}`)).status).toBe(404);
  for (const path of ["/users/eve/installation", "/users/acme/installation", "/orgs/octo/installation"])
    expect((await it.app("GET", path)).status, path).toBe(404);
  expect((await it.app("GET", "/repos/octo/nowhere/installation")).status).toBe(404);
  await it.control("PATCH", `/-/apps/${APP_ID}`, { permissions: { issues: "write" } });
  expect((await it.app("GET", "/app/installations?outdated=1")).body).toHaveLength(2);
  await it.control("PATCH", `/-/installations/${it.installationId}`, { accept: true });
  expect((await it.app("GET", "/app/installations?outdated=1")).body).toHaveLength(1);
});

test("an installation token lasts an hour by the service's clock, in either form", async () => {
  await using it = await openAppWorld();
  const path = `/app/installations/${it.installationId}/access_tokens`;
  const long = (await it.app("POST", path)).body;
  expect(long.token).toMatch(new RegExp(`^ghs_${APP_ID}_[\\w-]+\\.[\\w-]+\\.[\\w-]+$`));
  expect(long.token.length).toBeGreaterThan(480);
  expect(long.token.length).toBeLessThan(560);
  expect(long).toMatchObject({
    expires_at: "2026-10-01T13:00:00Z",
    repository_selection: "all",
    permissions: { metadata: "read", issues: "read" },
  });
  expect(long).not.toHaveProperty("repositories");
  const short = (await it.app("POST", path, {}, { "x-github-stateless-s2s-token": "disabled" })).body.token;
  expect(short).toMatch(/^ghs_[A-Za-z0-9]{36}$/);
  for (const token of [long.token, short]) {
    it.clock.set(Date.parse("2026-10-01T12:59:59Z"));
    expect((await it.get("/repos/octo/secret", { token })).status).toBe(200);
    it.clock.set(Date.parse("2026-10-01T13:00:00Z"));
    const late = await it.get("/repos/octo/secret", { token });
    expect([late.status, late.body.message]).toEqual([401, "Bad credentials"]);
  }
});

test("the service says what is wrong with a request for a token", async () => {
  await using it = await openAppWorld();
  const ask = async (body: unknown, id = it.installationId) => {
    const reply = await it.app("POST", `/app/installations/${id}/access_tokens`, body);
    return [reply.status, reply.body.message];
  };
  const notThere =
    "There is at least one repository that does not exist or is not accessible to the parent installation.";
  expect(await ask({ repositories: ["demo", "nowhere"] })).toEqual([422, notThere]);
  expect(await ask({ repository_ids: [1] })).toEqual([422, notThere]);
  expect(await ask({ permissions: { issues: "write" } })).toEqual([
    422,
    "The permissions requested are not granted to this installation.",
  ]);
  expect((await ask({ permissions: { issues: "everything" } }))[0]).toBe(422);
  expect((await ask({ repositories: "demo" }))[0]).toBe(422);
  expect((await ask({ repository_ids: ["1"] }))[0]).toBe(422);
  expect((await ask("{"))[0]).toBe(400);
  expect(await ask({}, 1)).toEqual([404, "Not Found"]);
  await it.control("PATCH", `/-/installations/${it.installationId}`, { suspended: true });
  expect(await ask({})).toEqual([403, "This installation has been suspended"]);
});

test("a token sees what its installation covers at the moment, and of others what anybody sees", async () => {
  await using it = await openAppWorld();
  const { world } = it.simulator;
  const eve = world.addUser({ login: "eve" });
  world.addRepository({ ownerId: eve.id, name: "open" });
  world.addRepository({ ownerId: eve.id, name: "closed", visibility: "private" });
  const all = await it.token();
  const one = await it.token({ repositories: ["demo"] });
  const status = async (token: string, path: string) => (await it.get(path, { token })).status;
  expect(await status(all, "/repos/octo/secret/issues")).toBe(200);
  expect(await status(one, "/repos/octo/secret/issues")).toBe(404);
  expect(await status(all, "/repos/eve/open/issues")).toBe(200);
  expect(await status(all, "/repos/eve/closed")).toBe(404);
  const list = async (token: string, query = "") =>
    (await it.get(`/installation/repositories${query}`, { token })).body;
  expect(await list(one)).toMatchObject({ total_count: 1, repository_selection: "selected" });
  const page = await list(all, "?per_page=1&page=2");
  expect(page).toMatchObject({ total_count: 2, repository_selection: "all", repositories: [{ name: "secret" }] });
  await it.control("PATCH", `/-/installations/${it.installationId}`, { repositories: ["octo/demo"] });
  expect(await status(all, "/repos/octo/secret/issues")).toBe(404);
  expect((await list(all)).total_count).toBe(1);
  expect((await it.get("/installation/repositories")).body.message).toMatch(/^You must authenticate with an install/);
  const graphql = await it.ask("POST", "/graphql", {
    token: one,
    body: {
      query:
        '{ a: repository(owner: "octo", name: "demo") { name } b: repository(owner: "octo", name: "secret") { name } }',
    },
  });
  expect(graphql.body).toMatchObject({ data: { a: { name: "demo" }, b: null }, errors: [{ type: "NOT_FOUND" }] });
});

test("permissions are enforced, and the refusal says which would have done", async () => {
  await using it = await openAppWorld({ permissions: { issues: "read", metadata: "read" } });
  const token = await it.token();
  const ask = async (method: string, path: string, body?: unknown) => {
    const reply = await it.ask(method, path, { token, body });
    return [reply.status, reply.body?.message, reply.headers.get("x-accepted-github-permissions")];
  };
  const refused = (accepted: string) => [403, "Resource not accessible by integration", accepted];
  expect((await ask("GET", "/repos/octo/secret/issues"))[0]).toBe(200);
  expect(await ask("GET", "/repos/octo/secret/pulls")).toEqual(refused("pull_requests=read"));
  expect((await ask("GET", "/repos/octo/demo/pulls"))[0]).toBe(200);
  expect(await ask("GET", "/repos/octo/demo/hooks")).toEqual(refused("repository_hooks=read"));
  expect(await ask("POST", "/repos/octo/demo/issues", { title: "t" })).toEqual(refused("issues=write"));
  const issue = it.issue();
  const path = `/repos/octo/demo/issues/${issue.number}`;
  expect(await ask("PATCH", path, { title: "t" })).toEqual(refused("issues=write; pull_requests=write"));
  expect(await ask("PATCH", "/repos/octo/demo", { description: "d" })).toEqual(refused("administration=write"));
  expect((await ask("GET", "/user")).slice(0, 2)).toEqual([403, "Resource not accessible by integration"]);
  expect((await ask("GET", "/user/repos")).slice(0, 2)).toEqual([403, "Resource not accessible by integration"]);
  expect((await ask("POST", "/user/repos", { name: "n" }))[0]).toBe(403);
  const mutation = 'mutation($id: ID!) { addComment(input: { subjectId: $id, body: "b" }) { subject { id } } }';
  const { node_id: id } = (await it.get(path)).body;
  const graphql = await it.ask("POST", "/graphql", { token, body: { query: mutation, variables: { id } } });
  expect(graphql.body.errors).toMatchObject([{ type: "FORBIDDEN", message: "Resource not accessible by integration" }]);
});

test("with permission to write, the App acts as its bot", async () => {
  await using it = await openAppWorld({ permissions: { issues: "write", repository_hooks: "write" } });
  const token = await it.token();
  const made = await it.ask("POST", "/repos/octo/secret/issues", { token, body: { title: "t", labels: ["bug"] } });
  expect(made.body).toMatchObject({ user: { login: "mirror[bot]", type: "Bot" }, labels: [{ name: "bug" }] });
  const reader = await it.token({ permissions: { issues: "read" } });
  expect((await it.ask("POST", "/repos/octo/secret/issues", { token: reader, body: { title: "t" } })).status).toBe(403);
  const config = { url: "http://127.0.0.1:9/", content_type: "json" };
  expect((await it.ask("POST", "/repos/octo/demo/hooks", { token, body: { config } })).status).toBe(201);
  it.simulator.world.addRepository({ ownerId: it.simulator.world.addUser({ login: "eve" }).id, name: "open" });
  expect((await it.ask("POST", "/repos/eve/open/issues", { token, body: { title: "t" } })).status).toBe(403);
});

test("suspended: every token is refused; deleted: unknown; revoked: that one alone", async () => {
  await using it = await openAppWorld();
  const token = await it.token();
  const spare = await it.token();
  const said = async (one = token) => {
    const reply = await it.get("/repos/octo/demo", { token: one });
    return [reply.status, reply.body.message];
  };
  const path = `/-/installations/${it.installationId}`;
  await it.control("PATCH", path, { suspended: true });
  expect(await said()).toEqual([403, "This installation has been suspended"]);
  const shown = (await it.app("GET", `/app/installations/${it.installationId}`)).body;
  expect(shown).toMatchObject({ suspended_at: "2026-10-01T12:00:00Z", suspended_by: { login: "octo" } });
  const graphql = await it.ask("POST", "/graphql", { token, body: { query: "{ viewer { login } }" } });
  expect([graphql.status, graphql.body.message]).toEqual([403, "This installation has been suspended"]);
  await it.control("PATCH", path, { suspended: false });
  expect((await said())[0]).toBe(200);
  expect((await it.ask("DELETE", "/installation/token", { token: spare })).status).toBe(204);
  expect(await said(spare)).toEqual([401, "Bad credentials"]);
  expect((await said())[0]).toBe(200);
  await it.control("DELETE", path);
  expect(await said()).toEqual([401, "Bad credentials"]);
  expect((await it.app("GET", `/app/installations/${it.installationId}`)).status).toBe(404);
});

test("an installation has a quota of its own, larger for many repositories; ETags change with its token", async () => {
  await using it = await openAppWorld();
  const token = await it.token();
  const first = await it.get("/repos/octo/demo", { token });
  expect(first.headers.get("x-ratelimit-limit")).toBe("5000");
  const renewed = await it.token();
  const second = await it.get("/repos/octo/demo", { token: renewed });
  expect(second.headers.get("x-ratelimit-used")).toBe("2");
  expect(second.headers.get("etag")).not.toBe(first.headers.get("etag"));
  expect((await it.get("/repos/octo/demo")).headers.get("x-ratelimit-used")).toBe("1");
  for (let n = 0; n < 19; n++) it.simulator.world.addRepository({ ownerId: it.owner.id, name: `r${n}` });
  const limit = async () => (await it.get("/rate_limit", { token })).body.resources;
  expect(await limit()).toMatchObject({ core: { limit: 6_050 }, graphql: { limit: 6_050 } });
  for (let n = 19; n < 200; n++) it.simulator.world.addRepository({ ownerId: it.owner.id, name: `r${n}` });
  expect((await limit()).core.limit).toBe(12_500);
  await it.control("POST", "/-/quota", { token, remaining: 0 });
  const refused = await it.get("/repos/octo/demo", { token });
  expect(refused.body.message).toMatch(
    new RegExp(`^API rate limit exceeded for installation ID ${it.installationId}\\.`),
  );
  const meter = (await it.control("GET", "/-/meter")).body;
  expect(meter.callers[`installation:${it.installationId}`].core).toMatchObject({ requests: 5, primaryLimited: 1 });
});

test("any token can be rotated, expired and revoked while the simulator runs", async () => {
  await using it = await openAppWorld();
  const status = async (token: string) => (await it.get("/user", { token })).status;
  const { token } = (await it.control("POST", "/-/tokens/rotate", { token: TOKEN })).body;
  expect([await status(TOKEN), await status(token)]).toEqual([401, 200]);
  await it.control("POST", "/-/tokens/expire", { token, at: it.clock.now() + 1_000 });
  expect(await status(token)).toBe(200);
  it.clock.advance(1_000);
  expect(await status(token)).toBe(401);
  expect((await it.control("POST", "/-/tokens/rotate", { token: "unknown" })).status).toBe(400);
  const made = (await it.control("POST", "/-/tokens", { login: "octo" })).body.token;
  expect(await status(made)).toBe(200);
  await it.control("DELETE", `/-/tokens/${made}`);
  expect(await status(made)).toBe(401);
});

test("GraphQL shows an App of private repositories what it may read, of public ones everything", async () => {
  await using it = await openAppWorld({ permissions: { pull_requests: "read" } });
  const token = await it.token();
  const issue = it.issue("findable");
  const secret = await it.ask("POST", "/repos/octo/secret/issues", { body: { title: "findable" } });
  const query = `query($ids: [ID!]!) {
    open: repository(owner: "octo", name: "demo") { issue(number: 1) { number } }
    closed: repository(owner: "octo", name: "secret") { issue(number: 1) { number } pullRequests { totalCount } }
    list: repository(owner: "octo", name: "secret") { issues { totalCount } }
    nodes(ids: $ids) { id }
    search(type: ISSUE, query: "findable", first: 5) { nodes { ... on Issue { number repository { name } } } }
  }`;
  const ids = [(await it.get(`/repos/octo/demo/issues/${issue.number}`)).body.node_id, secret.body.node_id];
  const { data, errors } = (await it.ask("POST", "/graphql", { token, body: { query, variables: { ids } } })).body;
  expect(data).toEqual({
    open: { issue: { number: 1 } },
    closed: { issue: null, pullRequests: { totalCount: 0 } },
    list: null,
    nodes: [{ id: ids[0] }, null],
    search: { nodes: [{ number: 1, repository: { name: "demo" } }] },
  });
  expect(errors.map((error: { type: string; path: unknown[] }) => [error.type, error.path[0]]).toSorted()).toEqual([
    ["FORBIDDEN", "closed"],
    ["FORBIDDEN", "list"],
    ["FORBIDDEN", "nodes"],
  ]);
});
