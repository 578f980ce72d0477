import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { REST_OPERATIONS } from "../../src/api/operations.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// With ANONYMOUS=off nothing of the mirror is shown to callers without a token, public or not.

let world: ApiWorld;
/** The path of a public repository. */
let repository: string;

const REFUSAL = {
  message: "Must authenticate to access this API.",
  documentation_url: "https://docs.github.com/rest",
  status: "401",
};

beforeAll(async () => {
  world = await openApiWorld({ env: { ANONYMOUS: "off", RATE_LIMIT_ANONYMOUS: "0" } });
  const shown = world.repositories.find((each) => !each.private);
  repository = `/repos/${shown?.fullName}`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

test("every operation, known or not, is refused to callers without a token", async () => {
  const asked = REST_OPERATIONS.map(({ path, route: { method, run } }) => {
    const below = path.replace(/:\w+/g, "1");
    return [method, run.of === "service" ? below : `${repository}${below === "/" ? "" : below}`] as const;
  });
  for (const [method, path] of [
    ...asked,
    ["GET", "/nothing"],
    ["GET", "/-/status"],
    ["GET", "/api/v3/user"],
  ] as const) {
    const answer = await world.send(method, path, { token: null });
    expect([answer.status, answer.body], `${method} ${path}`).toEqual([401, REFUSAL]);
  }
});

/** What every answer has, whatever was asked. */
const HEADERS_OF_ALL =
  /^(access-control-.*|cache-control|connection|content-.*|date|keep-alive|referrer-policy|server|strict-transport-.*|transfer-encoding|vary|x-(content-type-options|frame-options|xss-protection|github-.*|ratelimit-.*))$/;

test("no header of a refusal tells of what is mirrored, whatever the request prefers", async () => {
  const { ctx, repositories } = world;
  for (const { id } of repositories)
    await ctx.db.query(sql`insert into refresh_marks (repository_id, kind, key, asked_at, not_before)
      values (${id}, 'issue', 1, ${ctx.clock.now()}, ${ctx.clock.now()})`);
  const headers = { prefer: "settled, rewrite-urls", "cache-control": "no-cache", "if-none-match": "*" };
  for (const { path, route } of REST_OPERATIONS) {
    const below = path.replace(/:\w+/g, "1");
    const at = route.run.of === "service" ? below : `${repository}${below === "/" ? "" : below}`;
    const { status, headers: told } = await world.send(route.method, at, { token: null, headers });
    const odd = [...told.keys()].filter((name) => !HEADERS_OF_ALL.test(name));
    expect([status, odd], `${route.method} ${at}`).toEqual([401, []]);
  }
  const refused = await world.send("POST", "/graphql", { token: null, headers, body: '{"query":"{viewer{login}}"}' });
  expect(refused.headers.get("x-tain-in-doubt")).toBeNull();
  expect((await world.get(repository, { headers })).headers.get("x-tain-in-doubt")).toContain("/issue/1");
});

test("a page that is kept is refused to them as well, with the validators of those who have it too", async () => {
  const path = `${repository}/issues`;
  let known = await world.get(path);
  for (let time = 0; time < 3; time++) known = await world.get(path);
  expect(known.status).toBe(200);
  for (const headers of [{}, { "if-none-match": known.headers.get("etag") ?? "" }, { "if-none-match": "*" }])
    for (let time = 0; time < 3; time++)
      expect((await world.get(path, { token: null, headers })).body).toEqual(REFUSAL);
});

test("GraphQL stays refused to them; a preflight, the probes and the description are open", async () => {
  expect((await world.send("POST", "/graphql", { token: null, body: '{"query":"{viewer{login}}"}' })).status).toBe(401);
  expect((await world.send("OPTIONS", `${repository}/issues`, { token: null })).status).toBe(204);
  for (const path of ["/-/live", "/-/ready", "/-/docs", "/-/openapi.json"])
    expect((await world.get(path, { token: null })).status, path).toBe(200);
});

test("callers with a token see what they saw, and by default everybody sees what is public", async () => {
  expect((await world.get(repository)).status).toBe(200);
  const open = await world.openSibling({ ANONYMOUS: "" });
  expect((await askAt(open, "GET", repository)).status).toBe(200);
});
