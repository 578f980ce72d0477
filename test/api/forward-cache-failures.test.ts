import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { ForwardedAnswers } from "../../src/api/forward/cache/forwarded-answers.ts";
import { etagOf } from "../../src/simulator/rest/headers.ts";
import { type Asking, askAt } from "../support/asking.ts";
import { until } from "../support/patience.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// What is kept of upstream's answers when something is wrong: with upstream, with Postgres, or with the answer.

const [ANN, BEN] = ["ghp_of-ann", "ghp_of-ben"];
type Play = (request: IncomingMessage, response: ServerResponse) => unknown;
let play: Play;
const asked: string[] = [];
const upstream = createServer((request, response) => {
  if (request.url === "/user") response.end(JSON.stringify({ id: 5, login: "person", type: "User" }));
  else if (request.url === "/graphql")
    response.end(JSON.stringify({ data: { nodes: [], metadata: [], issues: [], pulls: [] } }));
  else {
    asked.push(`${request.headers.authorization?.split("-").at(-1)} ${request.headers["if-none-match"] ?? "plain"}`);
    play(request, response);
  }
});
let world: ApiWorld;
let repository: { id: number; fullName: string };
beforeAll(async () => {
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  world = await openApiWorld({ repositories: 6, issues: 30, upstreamUrl });
  repository = world.repositories.find((row) => !row.private) ?? { id: 0, fullName: "" };
  for (const token of [ANN, BEN]) await askAt(world.url, "GET", "/user", { token });
});
afterAll(async () => {
  upstream.closeAllConnections();
  upstream.close();
  await world?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  asked.length = 0;
});

const SHA = "0123456789012345678901234567890123456789";
let at = 0;
/** The path of a question that was never asked. */
const fresh = (kind: "sha" | "name" = "name") =>
  kind === "sha" ? `/git/blobs/${SHA.slice(4)}${1_000 + at++}` : `/branches/b${at++}`;
const get = (path: string, token: string, more: Asking & { base?: string } = {}) =>
  askAt(more.base ?? world.url, "GET", `/repos/${repository.fullName}${path}`, { token, ...more });
/** Answers as upstream does: with a 304 for the tag that this body has for this token. */
const answers =
  (body: string, headers: Record<string, string> = {}): Play =>
  (request, response) => {
    const etag = `"${etagOf(request.headers, true, body)}"`;
    const all = { ...{ etag, vary: "Accept, Authorization", "content-type": "application/json" }, ...headers };
    if (request.headers["if-none-match"] === etag) response.writeHead(304, all).end();
    else response.writeHead(200, all).end(body);
  };
const stored = async () =>
  (await world.ctx.db.query<{ bytes: number }>(sql`select bytes from forwarded_answers order by used_at`)).map(
    ({ bytes }) => bytes,
  );

test("an answer that breaks off is an error, looks like none, and is not kept", async () => {
  const path = fresh("sha");
  play = (_request, response) => {
    response.writeHead(200, { etag: '"x"', "content-type": "application/json", "content-length": "100" }).write("[1, ");
    setImmediate(() => response.destroy());
  };
  const broken = await get(path, ANN);
  expect([broken.status, broken.body.message]).toEqual([
    502,
    expect.stringContaining("gave no answer that can be read"),
  ]);
  play = answers('{"a":1}');
  expect((await get(path, ANN)).headers.get("x-cache")).toBe("miss");
});

test("an answer that is too long is forwarded as it arrives, for each who asks, and not kept", async () => {
  const path = fresh("sha");
  const long = JSON.stringify("x".repeat(3 * 1024 * 1024));
  for (const framing of [{}, { "content-length": String(long.length) }]) {
    play = answers(long, framing);
    const all = await Promise.all([get(path, ANN), get(path, ANN), get(path, BEN)]);
    expect(all.map(({ text }) => text === long)).toEqual([true, true, true]);
    expect(all.map(({ headers }) => headers.get("x-cache"))).toEqual(["miss", "miss", "miss"]);
  }
  expect(asked.every((one) => one.endsWith("plain"))).toBe(true);
});

test("equal requests of one token at once are one, and others wait to be shown the same for nothing", async () => {
  const path = fresh();
  const { promise: open, resolve } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  play = async (request, response) => {
    begin();
    if (request.url?.endsWith(path)) await open;
    answers('{"a":1}')(request, response);
  };
  const used = async () => (await askAt(world.url, "GET", "/rate_limit", { token: ANN })).body.resources.core.used;
  const before = await used();
  const first = get(path, ANN);
  await begun;
  const others = [get(path, ANN), get(path, BEN), get(path, ANN), get(path, BEN)];
  // Each request pays before it looks whether another one is under way.
  await expect.poll(async () => (await used()) - before).toBe(5);
  // This later request takes the same steps. Once it is answered, the requests before it have looked, too.
  await get(fresh(), BEN);
  resolve();
  for (const { status, text } of await Promise.all([first, ...others]))
    expect([status, text]).toEqual([200, '{"a":1}']);
  expect(asked.map((one) => one.replace(/"\w+"/, "tag"))).toEqual(["ann plain", "ben plain", "ben tag"]);
});

test("who waits for a request that its caller gave up asks again", async () => {
  const path = fresh();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  play = () => begin();
  const leaving = new AbortController();
  const headers = { "user-agent": "test", authorization: `Bearer ${ANN}` };
  const first = fetch(`${world.url}/repos/${repository.fullName}${path}`, { headers, signal: leaving.signal });
  await begun;
  const others = [get(path, ANN, { headers: { accept: "*/*" } }), get(path, BEN, { headers: { accept: "*/*" } })];
  play = answers('{"a":2}');
  leaving.abort();
  await expect(first).rejects.toThrow();
  for (const { status, text } of await Promise.all(others)) expect([status, text]).toEqual([200, '{"a":2}']);
});

test("while upstream is away nobody is shown what it has not just confirmed, nor what another was shown by sha", async () => {
  const [byName, bySha] = [fresh(), fresh("sha")];
  play = answers('{"a":1}');
  for (const path of [byName, bySha]) expect((await get(path, ANN)).status).toBe(200);
  play = (request) => request.socket.destroy();
  for (const [path, token] of [
    [byName, ANN],
    [byName, BEN],
    [bySha, BEN],
  ] as const) {
    const refused = await get(path, token);
    expect([refused.status, refused.body.message]).toEqual([502, expect.stringContaining("and upstream, which may,")]);
  }
  expect((await get(bySha, ANN)).headers.get("x-cache")).toBe("hit");
});

test("upstream's limits and failures are forwarded, and nothing that was kept is shown instead", async () => {
  const path = fresh();
  play = answers('{"a":1}');
  await get(path, ANN);
  for (const status of [403, 404, 429, 500, 503]) {
    play = (_request, response) =>
      response.writeHead(status, { "content-type": "application/json", "retry-after": "7" }).end('{"message":"No"}');
    const answer = await get(path, ANN);
    expect([answer.status, answer.body, answer.headers.get("retry-after")]).toEqual([status, { message: "No" }, "7"]);
  }
  play = answers('{"a":1}');
  expect((await get(path, ANN)).headers.get("x-cache")).toBe("revalidated");
});

test("a full last page is asked for each time, since no tag tells that another follows", async () => {
  const [full, more, short] = ["[1,2]", "[3,4]", "[5]"];
  const path = fresh();
  const next = '<https://x.example/?page=2>; rel="next"';
  const outcomes: (string | null)[] = [];
  for (const [page, body, headers] of [
    [3, full, {}],
    [1, more, { link: next }],
    [4, short, {}],
  ] as const) {
    play = answers(body, headers);
    for (let turn = 0; turn < 2; turn++)
      outcomes.push((await get(`${path}?per_page=2&page=${page}`, ANN)).headers.get("x-cache"));
  }
  expect(outcomes).toEqual(["miss", "miss", "miss", "revalidated", "miss", "revalidated"]);
});

/** Waits until the earlier tests' answers are stored, and answers what is there. Answers are stored after the reply. */
async function storedSoFar(): Promise<number[]> {
  let last: number[] = [];
  let alike = 0;
  await until("nothing more is stored", async () => {
    const now = await stored();
    alike = now.join() === last.join() ? alike + 1 : 0;
    last = now;
    return alike === 5;
  });
  return last;
}

test("settings, secrets, what is personal, and what says so are never kept", async () => {
  const before = await storedSoFar();
  play = answers('{"a":1}');
  for (const path of [
    ...[
      "/hooks",
      "/keys",
      "/actions/secrets",
      "/actions/runners",
      "/subscription",
      "/branches/main/protection",
      "/traffic/views",
    ],
    ...["/dependabot/alerts", "/environments/x/secrets", "/code-scanning/alerts", "/installation", "/invitations"],
  ])
    for (let turn = 0; turn < 2; turn++) expect((await get(path, ANN)).headers.get("x-cache"), path).toBeNull();
  for (const path of ["/user/keys", "/orgs/a/members/b", "/notifications/threads/1", "/user/emails"])
    expect((await askAt(world.url, "GET", path, { token: ANN })).headers.get("x-cache"), path).toBeNull();
  for (const headers of [{ "cache-control": "no-store" }, { etag: "" }, { "content-encoding": "gzip" }]) {
    const bare = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""));
    play = (_request, response) => response.writeHead(200, { "content-type": "text/plain", ...bare }).end("x");
    await get(fresh("sha"), ANN);
  }
  expect(await storedSoFar()).toEqual(before);
});

test("while Postgres refuses, everything is forwarded as if nothing were kept", async () => {
  const before = (await stored()).length;
  const paths = [fresh(), fresh()];
  play = answers('{"a":1}');
  for (const path of paths) await get(path, ANN);
  await expect.poll(async () => (await stored()).length).toBe(before + paths.length);
  await world.ctx.db.query(sql`alter table forwarded_answers rename to elsewhere`);
  try {
    for (const [index, token] of [ANN, BEN].entries()) {
      const answer = await get(paths[index] ?? "", token);
      expect([answer.status, answer.text, answer.headers.get("x-cache")]).toEqual([200, '{"a":1}', "miss"]);
    }
  } finally {
    await world.ctx.db.query(sql`alter table elsewhere rename to forwarded_answers`);
  }
});

test("while Postgres does not write, no more than sixteen megabytes wait for it", async () => {
  const kept = new ForwardedAnswers(world.ctx);
  const [at, headers] = [world.ctx.clock.now(), { etag: '"x"' }];
  await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`lock table forwarded_answers in access exclusive mode`);
    for (let n = 0; n < 20; n++) {
      const question = { key: `waiting-${n}`, fullName: null, id: null, isImmutable: false, perPage: null };
      const times = { madeAt: at, usedAt: at };
      const body = Buffer.alloc(1024 * 1024);
      kept.keep(
        {
          id: crypto.randomUUID(),
          question: question.key,
          shownTo: "",
          headers,
          body,
          variesBy: null,
          ...times,
          mirrors: null,
        },
        question,
      );
    }
  });
  await kept.close();
  const inPostgres = sql`select from forwarded_answers where question like 'waiting-%'`;
  expect(await world.ctx.db.query(inPostgres)).toHaveLength(15);
});

test("beyond its bound that goes which was of no use for longest, and with 0 nothing is kept", async () => {
  await world.ctx.db.query(sql`delete from forwarded_answers`);
  const small = await world.openSibling({ FORWARD_CACHE_BYTES: "1MB" });
  await askAt(small, "GET", "/user", { token: ANN });
  const body = JSON.stringify("x".repeat(98_000));
  play = answers(body);
  const paths = Array.from({ length: 14 }, () => fresh());
  for (const [index, path] of paths.entries()) {
    world.advance(1_000);
    expect((await get(path, ANN, { base: small })).status).toBe(200);
    await expect.poll(async () => (await stored()).length).toBeGreaterThanOrEqual(Math.min(index + 1, 8));
  }
  await expect.poll(async () => (await stored()).reduce((total, bytes) => total + bytes, 0)).toBeLessThanOrEqual(1e6);
  expect((await get(paths.at(-1) ?? "", ANN, { base: small })).headers.get("x-cache")).toBe("revalidated");
  expect((await get(paths[0] ?? "", ANN, { base: small })).headers.get("x-cache")).toBe("miss");
  const off = await world.openSibling({ FORWARD_CACHE_BYTES: "0" });
  expect((await get(paths.at(-1) ?? "", ANN, { base: off })).headers.get("x-cache")).toBeNull();
});
