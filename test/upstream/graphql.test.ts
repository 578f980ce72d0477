import { expect, test } from "vitest";
import { classifyFailure } from "../../src/sync/problems/causes.ts";
import { graphqlPath, pagesOf } from "../../src/upstream/protocol/address.ts";
import { GraphqlTooHeavyError, QuotaSpentError, UpstreamRefusedError } from "../../src/upstream/protocol/errors.ts";
import { list, nextCursor, nullable, object, text, whole } from "../../src/upstream/protocol/field-readers.ts";
import { isMutation } from "../../src/upstream/protocol/graphql.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { at, json, openUpstreamWorld, quotaHeaders, type UpstreamWorld } from "./world.ts";

const document =
  "query Viewer($n: Int!) { viewer { login } rateLimit { cost limit remaining resetAt used nodeCount } }";
const headers = (remaining: number) => quotaHeaders(remaining, { resource: "graphql" });
const rateLimit = (cost: number, remaining: number) => ({
  cost,
  limit: 5_000,
  remaining,
  resetAt: at(3_600).toISOString(),
  used: 5_000 - remaining,
  nodeCount: 1,
});
const ask = (world: UpstreamWorld, text = document) => world.upstream.graphql(text, { n: 1 }, { priority: "refresh" });
const graphqlQuota = async (world: UpstreamWorld) =>
  (await quotaReport(world.ctx)).find(({ bucket }) => bucket === "graphql");

test("a query is answered with its data and cost, and the budget corrected by it", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, { data: { viewer: { login: "o" }, rateLimit: rateLimit(6, 4_000) } }),
  );
  expect(await ask(world)).toMatchObject({ data: { viewer: { login: "o" } }, errors: [], cost: 6, seenAt: at(0) });
  expect(world.asked[0]).toMatchObject({ method: "POST", url: "/graphql", token: "token-one" });
  expect(JSON.parse(world.asked[0]?.body ?? "")).toEqual({ query: document, variables: { n: 1 } });
  expect(await graphqlQuota(world)).toMatchObject({ limit: 5_000, remaining: 4_000, resetAt: at(3_600) });
});

test("a document is leased at what it cost last time", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, { data: { rateLimit: rateLimit(400, 450) } }, headers(450)),
  );
  await ask(world);
  // 450 points are left. A refresh must leave 2 % of 5,000, and this one would need 400.
  await expect(ask(world)).rejects.toThrow(QuotaSpentError);
  expect(world.asked).toHaveLength(1);
});

test.each([
  { type: "RATE_LIMIT", code: "graphql_rate_limit", message: "API rate limit already exceeded for user ID 1." },
  { type: "RATE_LIMITED", message: "API rate limit exceeded for user ID 1." },
])("%o with status 200 is a spent quota, of GraphQL alone", async (error) => {
  await using world = await openUpstreamWorld(({ url }, response) =>
    url === "/graphql"
      ? json(response, 200, { errors: [error] }, headers(0))
      : json(response, 200, {}, quotaHeaders(4_000)),
  );
  await expect(ask(world)).rejects.toMatchObject({ name: "QuotaSpentError", bucket: "graphql", resetAt: at(3_600) });
  await expect(ask(world)).rejects.toThrow(QuotaSpentError);
  expect(await world.upstream.get("/user", { priority: "caller" })).toMatchObject({ kind: "ok" });
  expect(world.asked).toHaveLength(2);
});

test("a spent quota without any headers is waited for a minute", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, { errors: [{ type: "RATE_LIMITED", message: "x" }] }),
  );
  await expect(ask(world)).rejects.toMatchObject({ resetAt: at(60) });
});

test("a secondary limit with status 200 silences REST as well", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(
      response,
      200,
      { errors: [{ message: "You have exceeded a secondary rate limit. Please wait" }] },
      headers(4_000),
    ),
  );
  await expect(ask(world)).rejects.toMatchObject({ resetAt: at(60) });
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(60) });
});

test("what cannot be resolved is told with its type and path beside the rest", async () => {
  const error = {
    type: "NOT_FOUND",
    path: ["b"],
    locations: [],
    message: "Could not resolve to a Repository with the name 'o/b'.",
  };
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, { data: { a: { id: "R_1" }, b: null }, errors: [error] }),
  );
  expect(await ask(world)).toMatchObject({
    data: { a: { id: "R_1" }, b: null },
    errors: [{ type: "NOT_FOUND", path: ["b"], message: error.message }],
    cost: null,
  });
});

test.each<{ is: string; viewer: unknown }>([
  { is: "a null", viewer: { login: null, ids: [1], of: null } },
  { is: "a text for a number", viewer: { login: "o", ids: ["1"], of: null } },
  { is: "an object for a list", viewer: { login: "o", ids: {}, of: null } },
  { is: "a number too large to be one", viewer: { login: "o", ids: [2 ** 60], of: null } },
  { is: "an absent field", viewer: { login: "o", ids: [1] } },
  { is: "a list for an object", viewer: [] },
])("$is where the document asks for something else is upstream's failure, and no bug", async ({ viewer }) => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, { data: { viewer } }));
  const read = object({ login: text, ids: list(whole), of: nullable(text) });
  const reading = ask(world).then(({ data }) => read(data.viewer, "viewer"));
  const failure = await reading.catch((error: unknown) => error);
  expect(failure).toMatchObject({ name: "UpstreamUnavailableError", outage: "unreadable" });
  expect(classifyFailure(failure)).toEqual({ kind: "failed", cause: "unavailable" });
});

test.each([
  [
    "partial data for want of resources",
    200,
    {
      data: { a: 1, b: null },
      errors: [{ type: "RESOURCE_LIMITS_EXCEEDED", path: ["b"], message: "Resource limits for this query exceeded." }],
    },
  ],
  [
    "too many nodes",
    200,
    { errors: [{ type: "MAX_NODE_LIMIT_EXCEEDED", message: "This query requests up to 2,010,050 possible nodes" }] },
  ],
  [
    "a time-out in JSON",
    502,
    {
      data: null,
      errors: [{ message: "Something went wrong while executing your query on 2025-05-09T08:44:58+00:00." }],
    },
  ],
  [
    "a time-out with status 200",
    200,
    { data: null, errors: [{ message: "Something went wrong while executing your query." }] },
  ],
  ["a time-out in words", 200, { errors: [{ message: "We couldn't respond to your request in time." }] }],
  ["504", 504, "<html>Gateway time-out</html>"],
])("%s is too heavy, and not sent a second time as it stands", async (_, status, body) => {
  await using world = await openUpstreamWorld((_asked, response) => json(response, status, body));
  await expect(ask(world)).rejects.toThrow(GraphqlTooHeavyError);
  expect(world.asked).toHaveLength(1);
});

test("a document that upstream does not understand is refused in upstream's words", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 200, { errors: [{ message: "Field 'x' doesn't exist on type 'User'" }] }),
  );
  const error = await ask(world).catch((reason) => reason);
  expect(error).toBeInstanceOf(UpstreamRefusedError);
  expect(error.message).toContain("Field 'x' doesn't exist");
});

test("a refusal as REST has it is told in upstream's words", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(response, 403, { message: 'No "read" for you\n', documentation_url: "https://docs.example" }),
  );
  await expect(ask(world)).rejects.toMatchObject({
    status: 403,
    message: expect.stringContaining('No "read" for you\n'),
  });
});

test.each([
  ["SERVICE_UNAVAILABLE", 200, { data: null, errors: [{ type: "SERVICE_UNAVAILABLE", message: "x" }] }, "failed", 1],
  ["503", 503, { message: "Unavailable" }, "failed", 3],
  ["500", 500, { message: "Server Error" }, "failed", 1],
  ["HTML with status 200", 200, "<html>", "unreadable", 1],
])("%s means that upstream is not available", async (_, status, body, outage, times) => {
  await using world = await openUpstreamWorld((_asked, response) => {
    response.writeHead(status);
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await expect(ask(world)).rejects.toMatchObject({ name: "UpstreamUnavailableError", outage });
  expect(world.asked).toHaveLength(times);
});

test("a token that GraphQL rejects gives way to another", async () => {
  await using world = await openUpstreamWorld(
    ({ token }, response) =>
      token === "bad"
        ? json(response, 401, { message: "Bad credentials" })
        : json(response, 200, { data: { viewer: {} } }),
    { tokens: ["bad", "good"] },
  );
  expect(await ask(world)).toMatchObject({ data: { viewer: {} } });
  expect(world.tokens()).toEqual(["bad", "good"]);
});

test("a mutation is never sent twice, and a time-out of one is no matter of size", async () => {
  await using world = await openUpstreamWorld((_, response) => void response.socket?.resetAndDestroy(), {
    tokens: ["a", "b"],
  });
  const mutation = "mutation Close { closeIssue(input: {}) { clientMutationId } }";
  await expect(ask(world, mutation)).rejects.toMatchObject({ outage: "interrupted" });
  world.play = (_, response) =>
    json(response, 502, { data: null, errors: [{ message: "Something went wrong while executing your query" }] });
  await expect(ask(world, mutation)).rejects.toMatchObject({ name: "UpstreamUnavailableError", status: 502 });
  world.play = (_, response) => json(response, 401, { message: "Bad credentials" });
  await expect(ask(world, mutation)).rejects.toMatchObject({ name: "CredentialRejectedError" });
  expect(world.asked).toHaveLength(3);
});

test("a page that has a next one, and names no place behind its own, is followed by nobody", () => {
  const page = (hasNextPage: boolean, endCursor: string | null) => ({ hasNextPage, endCursor });
  for (const [one, after] of [
    [page(true, null), null],
    [page(true, null), "a"],
    [page(true, "a"), "a"],
  ] as const)
    expect(() => nextCursor(one, after)).toThrow(expect.objectContaining({ outage: "unreadable" }));
  expect(nextCursor(page(true, "b"), "a")).toBe("b");
  expect(nextCursor(page(false, "a"), "a")).toBeNull();
  expect(nextCursor(page(false, null), null)).toBeNull();
});

test("a mutation is known by the document's own level", () => {
  expect(isMutation('# mutation\nquery { a(text: "mutation {") { mutation } }')).toBe(false);
  expect(isMutation("fragment F on User { id } mutation M { a { ...F } }")).toBe(true);
  expect(isMutation("{ viewer { login } }")).toBe(false);
});

test("GraphQL's address follows from that of REST", () => {
  expect(graphqlPath("https://api.github.com")).toBe("/graphql");
  expect(graphqlPath("https://git.example/api/v3")).toBe("/api/graphql");
  expect(graphqlPath("http://127.0.0.1:9000")).toBe("/graphql");
  expect(graphqlPath("http://127.0.0.1:9000/mirror")).toBe("/mirror/graphql");
});

test("the address of the pages for people follows from that of REST", () => {
  expect(pagesOf("https://api.github.com")).toBe("https://github.com");
  expect(pagesOf("https://git.example/api/v3")).toBe("https://git.example");
  expect(pagesOf("https://git.example/below/api/v3")).toBe("https://git.example/below");
  expect(pagesOf("http://127.0.0.1:9000")).toBe("http://127.0.0.1:9000");
});
