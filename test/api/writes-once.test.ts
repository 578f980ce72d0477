import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

/** What becomes of a request on its way to upstream and back. */
type Way = "is reset before upstream sees it" | "is reset after upstream did it" | "hangs after upstream did it";

const WAYS: [Way, number, string][] = [
  ["is reset before upstream sees it", 502, "Upstream gave no answer that can be read."],
  ["is reset after upstream did it", 502, "Upstream gave no answer that can be read."],
  ["hangs after upstream did it", 504, "Upstream did not answer in time."],
];

const TOKENS = 20;

let world: ApiWorld;
let repo: string;
let repoId: number;
let number: number;
let way: Way = "is reset before upstream sees it";
const writes: string[] = [];
let between: Server;

beforeAll(async () => {
  world = await openApiWorld({ issues: 10, repositories: 1, upstreamTokens: TOKENS });
  const [first] = world.repositories;
  if (!first) throw new Error("The generated world has no repository");
  ({ fullName: repo, id: repoId } = first);
  between = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = "GET", url: path = "/" } = request;
    writes.push(`${method} ${path}`);
    if (way === "is reset before upstream sees it") return void request.socket.resetAndDestroy();
    const body = Buffer.concat(chunks).toString();
    await askAt(world.upstream.url, method, path, { token: UPSTREAM_TOKEN, ...(body ? { body } : {}) });
    if (way === "is reset after upstream did it") return void request.socket.resetAndDestroy();
    // Never answered; the connection ends with the test.
    void response;
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  number = (await world.send("POST", `/repos/${repo}/issues`, { body: '{"title":"target"}' })).body.number;
});
afterAll(async () => {
  between?.closeAllConnections();
  await new Promise<void>((resolve) => (between ? between.close(() => resolve()) : resolve()));
  await world?.[Symbol.asyncDispose]();
});

/** By a process that has not written yet, and so need not wait a second between two writes. */
const through = async (method: string, path: string, body?: object): Promise<Answered> => {
  const url = await world.openSibling(
    { UPSTREAM_URL: `http://127.0.0.1:${(between.address() as AddressInfo).port}`, REDIS_PREFIX: testRedis().prefix },
    {},
    { headersTimeoutMs: 300 },
  );
  writes.length = 0;
  return askAt(url, method, path, { token: world.token, ...(body ? { body: JSON.stringify(body) } : {}) });
};

describe.each(WAYS)("a write that %s", (which, status, message) => {
  test.each([
    ["POST", "/comments", { body: "once" }],
    ["PATCH", "", { title: "perhaps" }],
    ["PUT", "/lock", { lock_reason: "spam" }],
    ["DELETE", "/labels", undefined],
  ] as const)(
    "%s %s: %i that says that nobody knows; it is sent once, and the mirror asks later",
    async (method, below, body) => {
      way = which;
      await world.ctx.db.query(sql`delete from refresh_marks`);
      const before = (await world.getUpstream(`/repos/${repo}/issues/${number}`)).body.comments;
      const answer = await through(method, `/repos/${repo}/issues/${number}${below}`, body);
      expect([answer.status, answer.body.message]).toEqual([
        status,
        `${message} Whether it did what was asked is not known; nothing was queued, and it is not sent again.`,
      ]);
      expect(writes).toEqual([`${method} /repositories/${repoId}/issues/${number}${below}`]);
      const isDone = which !== "is reset before upstream sees it";
      const after = (await world.getUpstream(`/repos/${repo}/issues/${number}`)).body.comments;
      expect(after - before).toBe(isDone && below === "/comments" ? 1 : 0);
      const rows = await world.ctx.db.query<{ kind: string; key: string }>(sql`
        select kind, key::text from refresh_marks`);
      expect(rows).toEqual([{ kind: "issue", key: String(number) }]);
    },
  );

  test("a mutation: SERVICE_UNAVAILABLE with the same words, sent once", async () => {
    way = which;
    const { node_id } = (await world.get(`/repos/${repo}/issues/${number}`)).body;
    const label = (await world.get(`/repos/${repo}/labels/bug`)).body.node_id;
    for (const [name, input] of [
      ["addComment", { subjectId: node_id, body: "b" }],
      ["removeLabelsFromLabelable", { labelableId: node_id, labelIds: [label] }],
    ] as const) {
      const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
      const query = `mutation($input: ${type}!) { ${name}(input: $input) { clientMutationId } }`;
      const answer = await through("POST", "/graphql", { query, variables: { input } });
      expect(answer.body.errors[0]).toMatchObject({ type: "SERVICE_UNAVAILABLE", path: [name] });
      expect(answer.body.errors[0].message).toMatch(message);
      expect(writes).toHaveLength(1);
    }
  });
});

test("a write that finds nobody there leaves nothing to ask about", async () => {
  await world.ctx.db.query(sql`delete from refresh_marks`);
  const nowhere = await world.openSibling({ UPSTREAM_URL: "http://127.0.0.1:1", REDIS_PREFIX: testRedis().prefix });
  const answer = await askAt(nowhere, "DELETE", `/repos/${repo}/labels/bug`, { token: world.token });
  expect([answer.status, answer.body.message]).toEqual([
    502,
    "Upstream cannot be reached. Nothing was done, and nothing was queued.",
  ]);
  expect((await world.get(`/repos/${repo}/labels/bug`)).status).toBe(200);
});

test("a write for which no quota is left is not sent, and says when there is", async () => {
  const poor = await openApiWorld({ issues: 10, repositories: 1 });
  try {
    const token = poor.upstream.tokens.find(UPSTREAM_TOKEN);
    if (!token) throw new Error("Upstream does not know the mirror's token");
    const name = poor.repositories[0]?.fullName;
    await fetch(`${poor.upstream.url}/-/quota`, {
      method: "POST",
      body: JSON.stringify({ token: UPSTREAM_TOKEN, remaining: 0 }),
    });
    // Upstream refuses the first write itself. From then on the mirror knows, and refuses.
    const told = await poor.send("POST", `/repos/${name}/labels`, { body: '{"name":"first"}' });
    expect(told.status).toBe(403);
    expect(told.body.message).toMatch(/^API rate limit exceeded/);
    const known = await poor.send("POST", `/repos/${name}/labels`, { body: '{"name":"second"}' });
    expect([known.status, known.body.message]).toEqual([
      503,
      "The mirror's quota at upstream is spent. Nothing was sent, and nothing was queued.",
    ]);
    expect(Number(known.headers.get("retry-after"))).toBeGreaterThan(0);
  } finally {
    await poor[Symbol.asyncDispose]();
  }
});

describe("a refusal", () => {
  test.each([
    ["PATCH", "/issues/999999", { title: "t" }, 404],
    ["POST", "/issues/999999/comments", { body: "b" }, 404],
    ["DELETE", "/labels/none%2Fsuch", undefined, 404],
    ["PATCH", "/issues/{number}", { state: "ajar" }, 422],
    ["POST", "/issues/{number}/comments", { body: "" }, 422],
    ["POST", "/labels", { name: "bug" }, 422],
    ["POST", "/labels", { name: "x", color: "red" }, 422],
    ["POST", "/milestones", {}, 422],
    ["POST", "/issues/{number}/assignees", { assignees: ["nobody-at-all"] }, 422],
    ["DELETE", "/issues/{number}/labels/none", undefined, 404],
  ] as const)("%s %s %j: upstream's own %i", async (method, path, body, status) => {
    const at = `/repos/${repo}${path.replace("{number}", String(number))}`;
    const sent = body ? { body: JSON.stringify(body) } : {};
    const ours = await world.send(method, at, sent);
    const theirs = await askAt(world.upstream.url, method, at, { token: UPSTREAM_TOKEN, ...sent });
    expect(ours.status, ours.text).toBe(status);
    expect(ours.body).toEqual(theirs.body);
    for (const name of ["cache-control", "vary"]) expect(ours.headers.get(name)).toBe(theirs.headers.get(name));
  });

  test.each([
    ["PATCH", "/issues/1", "[]", "Body should be a JSON object"],
    ["PUT", "/issues/1/labels", '"bug"', "Body should be a JSON object"],
    ["PUT", "/issues/1/lock", "{", "Problems parsing JSON"],
    ["POST", "/issues/1/comments", "", "Problems parsing JSON"],
  ])("%s %s with %j: 400 before upstream is asked", async (method, path, body, message) => {
    const answer = await world.send(method, `/repos/${repo}${path}`, { body });
    expect([answer.status, answer.body.message]).toEqual([400, message]);
  });

  test("a number or id that is none: 404; a token that only reads: 403; nobody: 401", async () => {
    const body = '{"title":"t"}';
    expect((await world.send("PATCH", `/repos/${repo}/issues/abc`, { body })).status).toBe(404);
    expect((await world.send("DELETE", `/repos/${repo}/issues/comments/0`)).status).toBe(404);
    const at = `/repos/${repo}/issues/${number}`;
    expect((await world.send("PATCH", at, { body, token: world.readToken })).status).toBe(403);
    expect((await world.send("PATCH", at, { body, token: null })).status).toBe(401);
  });
});
