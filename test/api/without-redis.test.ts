import { afterAll, beforeAll, expect, test } from "vitest";
import { askAt } from "../support/asking.ts";
import { OWNER } from "../support/config.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// What callers see of a web process whose Redis is away.

const CALLERS_TOKEN = "ghp_of_the_owner";
let world: ApiWorld;
let url: string;
let repo: string;
let number: number;

beforeAll(async () => {
  world = await openApiWorld({ issues: 10, repositories: 1 });
  repo = `/repos/${world.repositories[0]?.fullName}`;
  ({ number } = (await world.get(`${repo}/issues?per_page=1`)).body[0]);
  world.upstream.tokens.create({ token: CALLERS_TOKEN, login: OWNER, scopes: ["repo"], repositories: "all" });
  url = await world.openSibling({ REDIS_URL: "redis://127.0.0.1:1" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const comments = async () => (await world.getUpstream(`${repo}/issues/${number}`)).body.comments;
const comment = (token: string) =>
  askAt(url, "POST", `${repo}/issues/${number}/comments`, { token, body: '{"body":"written"}' });

test("what is mirrored is read as ever", async () => {
  const { status, body } = await askAt(url, "GET", `${repo}/issues/${number}`, { token: world.readToken });
  expect([status, body.number]).toEqual([200, number]);
});

test("a write with the mirror's quota is refused before anything is sent, and says when to come back", async () => {
  const before = await comments();
  const { status, body, headers } = await comment(world.token);
  expect([status, body.message]).toEqual([
    503,
    "What is left of the mirror's quota at upstream is not known at the moment. Nothing was sent, and nothing was queued.",
  ]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  const issueId = (await world.get(`${repo}/issues/${number}`)).body.node_id;
  const document = 'mutation ($id: ID!) { addComment(input: { subjectId: $id, body: "x" }) { clientMutationId } }';
  const asked = { token: world.token, body: JSON.stringify({ query: document, variables: { id: issueId } }) };
  expect((await askAt(url, "POST", "/graphql", asked)).body.errors).toEqual([
    expect.objectContaining({ type: "SERVICE_UNAVAILABLE", message: body.message }),
  ]);
  expect(await comments()).toBe(before);
});

test("a write with the caller's own token of upstream's is sent", async () => {
  const before = await comments();
  expect((await comment(CALLERS_TOKEN)).status).toBe(201);
  expect(await comments()).toBe(before + 1);
});

test("a fresh read by a token of Tain's is answered from the mirror, and says so", async () => {
  const { status, headers } = await askAt(url, "GET", `${repo}/issues/${number}?fresh=true`, { token: world.token });
  expect(status).toBe(200);
  expect(headers.get("warning")).toMatch(
    /Not refreshed: .*nobody knows at the moment what is left of the mirror's quota/,
  );
});
