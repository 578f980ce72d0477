import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { apiTokenId } from "../../src/api/callers/tokens.ts";
import { type ListedWrite, listWrites, pruneWrites } from "../../src/api/record/writes.ts";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const PERSON = "ghp_of-a-person-who-writes";
const READER = "ghp_of-a-person-who-may-not";

let world: ApiWorld;
let repo: string;
let id: number;
/** Never answers, and resets what it is told to. */
let silent: Server;
let onRequest: () => void = () => {};

beforeAll(async () => {
  world = await openApiWorld({ issues: 10, repositories: 1, upstreamTokens: 20, env: { PASS_THROUGH: "on" } });
  const [first] = world.repositories;
  repo = first?.fullName ?? "";
  id = first?.id ?? 0;
  world.upstream.tokens.create({ token: PERSON, login: "person", repositories: "all" });
  world.upstream.tokens.create({ token: READER, login: "reader", repositories: [] });
  silent = createServer((_request, response) => {
    onRequest();
    void response;
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  silent?.closeAllConnections();
  silent?.close();
  await world?.[Symbol.asyncDispose]();
});
beforeEach(() => world.ctx.db.query(sql`truncate writes`));

const recorded = (): Promise<ListedWrite[]> => listWrites(world.ctx, { limit: 10 });
const own = () => ({ tokenOf: "own", token: apiTokenId(world.token), userId: world.userId });

test("a write by REST is one row: who, what, when, and what upstream answered under which id", async () => {
  const before = world.ctx.clock.now();
  const answer = await world.send("POST", `/repos/${repo}/issues`, { body: '{"title":"recorded"}' });
  expect(answer.status).toBe(201);
  const [row, ...others] = await recorded();
  expect(others).toEqual([]);
  expect(row).toMatchObject({
    ...own(),
    login: "mirror-owner",
    method: "POST",
    route: "/repos/{owner}/{repo}/issues",
    path: `/repositories/${id}/issues`,
    repositoryId: id,
    repository: repo,
    outcome: "answered",
    status: 201,
    requestId: answer.headers.get("x-github-request-id"),
  });
  expect(row?.upstreamRequestId).toMatch(/^[0-9A-F:]+$/);
  expect(row?.upstreamRequestId).not.toBe(row?.requestId);
  expect(row?.begunAt.getTime()).toBeGreaterThanOrEqual(before.getTime());
  expect(row?.endedAt?.getTime()).toBeGreaterThanOrEqual(row?.begunAt.getTime() ?? 0);
});

test("what upstream refuses is a row too, and what Tain refuses is none", async () => {
  const refused = await world.send("PATCH", `/repos/${repo}/issues/1`, { body: '{"state":"sideways"}' });
  expect(refused.status).toBe(422);
  const barred = await world.send("POST", `/repos/${repo}/labels`, { token: world.readToken, body: '{"name":"x"}' });
  expect(barred.status).toBe(403);
  expect(await recorded()).toMatchObject([
    { ...own(), method: "PATCH", path: `/repositories/${id}/issues/1`, outcome: "answered", status: 422 },
  ]);
});

test("a caller with a token of upstream's is named by account and fingerprint, and no secret is kept", async () => {
  const written = await world.send("POST", `/repos/${repo}/labels`, { token: PERSON, body: '{"name":"theirs"}' });
  expect(written.status).toBe(201);
  const refused = await world.send("POST", `/repos/${repo}/labels`, { token: READER, body: '{"name":"not theirs"}' });
  expect(refused.status).toBeGreaterThanOrEqual(403);
  expect(await recorded()).toMatchObject([
    { tokenOf: "upstream", token: fingerprint(READER), login: "reader", status: refused.status },
    { tokenOf: "upstream", token: fingerprint(PERSON), login: "person", status: 201 },
  ]);
  const [dump] = await world.ctx.db.query<{ text: string }>(sql`select json_agg(w)::text as text from writes w`);
  for (const secret of [PERSON, READER]) expect(dump?.text).not.toContain(secret);
});

describe("mutations", () => {
  const mutate = (name: string, input: object, token = world.token) => {
    const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
    const query = `mutation($input: ${type}!) { ${name}(input: $input) { clientMutationId } }`;
    return world.send("POST", "/graphql", { token, body: JSON.stringify({ query, variables: { input } }) });
  };

  test.each([
    ["the mirror's token", () => world.token, "own"],
    ["a caller's own", () => PERSON, "upstream"],
  ])(
    "sent as REST or as a mutation, by %s, each is a row that names the mutation and its subject",
    async (...given) => {
      const [, token, tokenOf] = given;
      const made = await world.send("POST", `/repos/${repo}/issues`, { body: '{"title":"m","labels":["bug"]}' });
      const [label] = made.body.labels;
      await world.ctx.db.query(sql`truncate writes`);
      expect((await mutate("closeIssue", { issueId: made.body.node_id }, token())).body.errors).toBeUndefined();
      const off = { labelableId: made.body.node_id, labelIds: [label.node_id] };
      expect((await mutate("removeLabelsFromLabelable", off, token())).body.errors).toBeUndefined();
      expect((await mutate("removeLabelsFromLabelable", off, token())).body).toBeDefined();
      const rows = await recorded();
      const path = `/repositories/${id}/issues/${made.body.number}`;
      expect(rows.slice(1)).toMatchObject([
        {
          tokenOf,
          method: "POST",
          route: "mutation removeLabelsFromLabelable",
          path,
          outcome: "answered",
          status: 200,
        },
        { tokenOf, method: "PATCH", route: "mutation closeIssue", path, outcome: "answered", status: 200 },
      ]);
      expect(rows).toHaveLength(3);
      for (const row of rows) expect(row.upstreamRequestId).toMatch(/^[0-9A-F:]+$/);
    },
  );
});

test("a write that is only forwarded is a row, and a read that is forwarded is none", async () => {
  const path = `/repos/${repo}/git/refs`;
  const made = await world.send("POST", `${path}?secret=in-the-query`, { token: PERSON, body: "{}" });
  expect(made.headers.get("x-tain-passed-through")).toBe("upstream");
  await world.get(`/repos/${repo}/git/ref/heads/main`, { token: PERSON });
  expect(await recorded()).toMatchObject([
    {
      tokenOf: "upstream",
      token: fingerprint(PERSON),
      method: "POST",
      route: null,
      path,
      repositoryId: id,
      outcome: "answered",
      status: made.status,
    },
  ]);
});

describe("when upstream does not answer", () => {
  const through = async (upstream: string, headersTimeoutMs = 300) =>
    world.openSibling({ UPSTREAM_URL: upstream, REDIS_PREFIX: testRedis().prefix }, {}, { headersTimeoutMs });

  test("the row stands before the write is sent, and says that its answer is unknown", async () => {
    const seen = Promise.withResolvers<ListedWrite[]>();
    onRequest = () => void recorded().then(seen.resolve, seen.reject);
    const url = await through(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    const answer = await askAt(url, "POST", `/repos/${repo}/issues`, { token: world.token, body: '{"title":"?"}' });
    expect(answer.status).toBe(504);
    const open = { ...own(), path: `/repositories/${id}/issues`, outcome: "unknown", status: null };
    // As a crash would have left it.
    expect(await seen.promise).toMatchObject([{ ...open, endedAt: null }]);
    expect(await recorded()).toMatchObject([open]);
  });

  test("a write that reached nobody says so", async () => {
    const url = await through("http://127.0.0.1:1");
    const answer = await askAt(url, "DELETE", `/repos/${repo}/labels/bug`, { token: world.token });
    expect(answer.status).toBe(502);
    expect(await recorded()).toMatchObject([
      { method: "DELETE", route: "/repos/{owner}/{repo}/labels/{name}", outcome: "unsent", status: null },
    ]);
  });
});

test("rows go when they are older than WRITE_RETENTION, and not before", async () => {
  await world.send("POST", `/repos/${repo}/labels`, { body: '{"name":"old"}' });
  await world.send("POST", `/repos/${repo}/labels`, { body: '{"name":"new"}' });
  const keptMs = world.ctx.config.writeRetentionMs;
  const [newest, oldest] = await recorded();
  const past = new Date(world.ctx.clock.now().getTime() - keptMs - 60_000);
  await world.ctx.db.query(sql`update writes set begun_at = ${past} where id = ${oldest?.id ?? null}`);
  expect(await pruneWrites(world.ctx)).toBe(1);
  expect(await recorded()).toMatchObject([{ id: newest?.id }]);
});

test("they are found by time, token and repository", async () => {
  await world.send("POST", `/repos/${repo}/labels`, { body: '{"name":"a"}' });
  await world.send("POST", `/repos/${repo}/labels`, { token: PERSON, body: '{"name":"b"}' });
  const [theirs, ours] = await recorded();
  const find = (filter: Parameters<typeof listWrites>[1]) => listWrites(world.ctx, filter);
  expect(await find({ limit: 1 })).toEqual([theirs]);
  expect(await find({ limit: 9, token: apiTokenId(world.token) })).toEqual([ours]);
  expect(await find({ limit: 9, token: "PERSON" })).toEqual([theirs]);
  expect(await find({ limit: 9, repository: repo.toUpperCase() })).toEqual([theirs, ours]);
  expect(await find({ limit: 9, repository: "no/body" })).toEqual([]);
  expect(await find({ limit: 9, since: new Date(world.ctx.clock.now().getTime() + 1_000) })).toEqual([]);
});
