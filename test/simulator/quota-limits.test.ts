import { expect, test } from "vitest";
import { openSimulated, START, TOKEN } from "./simulated.ts";

const REST = "/repos/octo/demo";
const used = (reply: { headers: Headers }) => Number(reply.headers.get("x-ratelimit-used"));

test("an hour is a fixed window that begins with the first request", async () => {
  await using it = await openSimulated();
  const first = await it.get(REST);
  const reset = Math.floor(START / 1_000) + 3_600;
  expect(first.headers.get("x-ratelimit-reset")).toBe(String(reset));
  it.clock.advance(3_599_000);
  const last = await it.get(REST);
  expect([used(last), last.headers.get("x-ratelimit-reset")]).toEqual([2, String(reset)]);
  it.clock.advance(60_000);
  const next = await it.get(REST);
  expect([used(next), next.headers.get("x-ratelimit-reset")]).toEqual([
    1,
    String(Math.floor(it.clock.now() / 1_000) + 3_600),
  ]);
});

test("redirects, not found and refusals cost as much as answers; /rate_limit and a wrong token cost nothing", async () => {
  await using it = await openSimulated();
  await it.get("/repos/octo/nope");
  await it.ask("POST", `${REST}/issues`, { body: {} });
  await it.ask("POST", `${REST}/issues`, { body: "{" });
  expect(used(await it.get(REST))).toBe(4);
  const limits = await it.get("/rate_limit");
  expect(limits.body.resources.core).toMatchObject({ limit: 5_000, used: 4, remaining: 4_996 });
  expect(limits.body.rate).toEqual(limits.body.resources.core);
  expect(limits.body.resources.graphql).toMatchObject({ limit: 5_000, used: 0 });
  expect([limits.headers.has("etag"), limits.headers.get("cache-control")]).toEqual([false, "no-cache"]);
  await it.get(REST, { token: "wrong" });
  expect(used(await it.get(REST))).toBe(5);
});

test("an exhausted user is 403 with the service's sentence, until the reset", async () => {
  await using it = await openSimulated({ quota: { limits: { core: 3 } } });
  for (let n = 0; n < 3; n++) expect((await it.get(REST)).status).toBe(200);
  const spent = await it.get(REST);
  expect(spent.status).toBe(403);
  expect(spent.headers.get("x-ratelimit-remaining")).toBe("0");
  expect(spent.headers.has("retry-after")).toBe(false);
  expect(spent.body.message).toMatch(
    new RegExp(
      `^API rate limit exceeded for user ID ${it.owner.id}\\. If you reach out to GitHub Support for help, please include the request ID [0-9A-F:]+ and timestamp 2026-10-01 12:00:00 UTC\\. `,
    ),
  );
  expect(spent.body).toMatchObject({
    documentation_url: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api",
    status: "403",
  });
  expect((await it.get("/rate_limit")).status).toBe(200);
  expect((await it.ask("POST", "/graphql", { body: { query: "{ viewer { login } }" } })).body.data).toEqual({
    viewer: { login: "octo" },
  });
  it.clock.advance(3_600_000);
  expect((await it.get(REST)).status).toBe(200);
});

test("a user's tokens share one quota, a token with a limit has its own, anonymous callers have the address's", async () => {
  await using it = await openSimulated({ quota: { limits: { coreAnonymous: 2 } } });
  await it.control("POST", "/-/tokens", { token: "second", login: "octo" });
  await it.control("POST", "/-/tokens", { token: "own", login: "octo", limit: 7 });
  await it.get(REST);
  expect(used(await it.get(REST, { token: "second" }))).toBe(2);
  const own = await it.get(REST, { token: "own" });
  expect([used(own), own.headers.get("x-ratelimit-limit")]).toEqual([1, "7"]);
  await it.get(REST, { token: null });
  expect((await it.get(REST, { token: null })).headers.get("x-ratelimit-remaining")).toBe("0");
  expect(await it.get(REST, { token: null })).toMatchObject({
    status: 403,
    body: {
      message:
        "API rate limit exceeded for 127.0.0.1. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)",
    },
  });
});

test("points a minute: reads cost 1, writes 5; the refusal says how long to wait", async () => {
  await using it = await openSimulated({ quota: { limits: { restPointsPerMinute: 12 } } });
  await it.ask("POST", `${REST}/issues`, { body: { title: "t" } });
  it.clock.advance(20_000);
  for (let n = 0; n < 7; n++) expect((await it.get(REST)).status).toBe(200);
  const refused = await it.get(REST);
  expect(refused.status).toBe(403);
  expect(refused.headers.get("retry-after")).toBe("40");
  expect(Number(refused.headers.get("x-ratelimit-remaining"))).toBeGreaterThan(0);
  expect(refused.body.message).toMatch(
    /^You have exceeded a secondary rate limit\. Please wait a few minutes before you try again\./,
  );
  expect(refused.body.documentation_url).toBe(
    "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
  );
  it.clock.advance(40_000);
  expect((await it.get(REST)).status).toBe(200);
});

test("content creation has limits of its own; refusals may be 429 and without Retry-After", async () => {
  await using it = await openSimulated({
    quota: { limits: { contentPerMinute: 2, contentPerHour: 3 }, retryAfter: false, status: 429 },
  });
  const create = () => it.ask("POST", `${REST}/issues`, { body: { title: "t" } });
  expect([(await create()).status, (await create()).status]).toEqual([201, 201]);
  const refused = await create();
  expect([refused.status, refused.headers.has("retry-after")]).toEqual([429, false]);
  expect(refused.body.message).toBe(
    "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later.",
  );
  it.clock.advance(61_000);
  expect((await create()).status).toBe(201);
  it.clock.advance(61_000);
  expect((await create()).status).toBe(429);
  expect((await it.get(REST)).status).toBe(200);
});

test("too many requests at once are refused", async () => {
  await using it = await openSimulated({
    quota: { limits: { concurrent: 3 } },
    faults: { http: [{ kind: "slow", delayMs: 1_000 }] },
  });
  const replies = await Promise.all(Array.from({ length: 5 }, () => it.get(REST)));
  expect(replies.map((reply) => reply.status).sort()).toEqual([200, 200, 200, 403, 403]);
  expect((await it.control("GET", "/-/meter")).body).toMatchObject({ maxConcurrent: 5, secondaryLimited: 2 });
});

test("limits and what is left can be set while it runs", async () => {
  await using it = await openSimulated();
  expect((await it.control("POST", "/-/limits", { core: 10, restPointsPerMinute: null })).body.core).toBe(10);
  expect((await it.control("POST", "/-/limits", { nonsense: 1 })).status).toBe(400);
  await it.control("POST", "/-/quota", { token: TOKEN, remaining: 1 });
  expect((await it.get(REST)).headers.get("x-ratelimit-remaining")).toBe("0");
  expect((await it.get(REST)).status).toBe(403);
});

test("the meter counts requests, charges, 304 and points by caller, bucket and route", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/meter/reset");
  const first = await it.get(`${REST}/issues`);
  await it.get(`${REST}/issues`, { headers: { "if-none-match": first.headers.get("etag") ?? "" } });
  await it.get(`/repositories/${it.repository.id}/issues`);
  await it.get("/nope", { token: null });
  await it.ask("POST", "/graphql", { body: { query: "{ rateLimit { cost } }" } });
  const meter = (await it.control("GET", "/-/meter")).body;
  expect(meter).toMatchObject({ requests: 5, notModified: 1, points: 1, errors: 1 });
  expect(meter.callers[TOKEN]).toMatchObject({
    core: { requests: 3, charged: 2, notModified: 1 },
    graphql: { requests: 1, points: 1 },
  });
  expect(meter.callers["ip:127.0.0.1"].core).toMatchObject({ requests: 1, charged: 1, errors: 1 });
  expect(meter.routes["GET /repos/:owner/:repo/issues"]).toMatchObject({ requests: 3, charged: 2 });
  await it.control("POST", "/-/meter/reset");
  expect((await it.control("GET", "/-/meter")).body.requests).toBe(0);
});

test.each([
  ["unless it is told to, it does not charge", {}, 1],
  ["told to, it charges", { quota: { chargeCounts: true } }, 2],
])("%s for connections that are only counted", async (_name, options, cost) => {
  await using it = await openSimulated(options);
  const query = `{ rateLimit { cost used } repository(owner: "octo", name: "demo") {
    pullRequests(first: 100) { nodes { reviews(first: 100) { totalCount } commits { totalCount } } } } }`;
  const { body } = await it.ask("POST", "/graphql", { body: { query } });
  expect(body.data.rateLimit).toEqual({ cost, used: cost });
});
