import { afterAll, beforeAll, expect, test } from "vitest";
import { REST_OPERATIONS } from "../../src/api/rest/operations.ts";
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
