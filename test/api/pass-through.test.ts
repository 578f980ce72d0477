import { createServer, get as getRaw } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiWorld, askAt, openApiWorld } from "./api-world.ts";

const TOKEN = "ghp_of-a-person";
let world: ApiWorld;
let on: string;
let repo: string;
let hidden: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 6, issues: 30 });
  repo = world.repositories.find((row) => !row.private)?.fullName as string;
  hidden = world.repositories.find((row) => row.private)?.fullName as string;
  world.upstream.tokens.create({ token: TOKEN, login: "person", repositories: [repo] });
  on = await world.openSibling({ PASS_THROUGH: "on" });
}, 60_000);
afterAll(() => world?.[Symbol.asyncDispose]());

// The simulator has this route and the mirror does not.
const unserved = (name: string) => `/repos/${name}/git/ref/heads/main`;
const ask = (path: string, options: Parameters<typeof askAt>[3] = {}) =>
  askAt(on, "GET", path, { token: TOKEN, ...options });

test("a route that is not mirrored is upstream's answer for a token of upstream's", async () => {
  const theirs = await askAt(world.upstream.url, "GET", unserved(repo), { token: TOKEN });
  expect(theirs.status).toBe(200);
  const ours = await ask(unserved(repo));
  expect(ours.status).toBe(200);
  expect(ours.text).toBe(theirs.text.replaceAll(world.upstream.url, on));
  expect(ours.headers.get("x-tain-passed-through")).toBe("upstream");
  expect(ours.headers.get("cache-control")).toBe(theirs.headers.get("cache-control"));
  // The figures are of the caller's quota here.
  expect(ours.headers.get("x-ratelimit-limit")).toBe("5000");

  world.upstream.meter.reset();
  const again = await ask(unserved(repo), { headers: { "if-none-match": ours.headers.get("etag") ?? "" } });
  expect([again.status, again.text]).toEqual([304, ""]);
  expect(world.upstream.meter.read()).toMatchObject({ requests: 1, notModified: 1, charged: 0 });

  const head = await askAt(on, "HEAD", unserved(repo), { token: TOKEN });
  expect([head.status, head.text]).toEqual([200, ""]);
  const missing = await ask("/no/such/route");
  expect([missing.status, missing.body.message]).toEqual([404, "Not Found"]);
});

test("nobody else is passed on, and all are told the same, whatever repository they name", async () => {
  world.upstream.meter.reset();
  const texts = new Set<string>();
  for (const name of [repo, hidden, "no/body"]) {
    for (const token of [null, world.token, world.readToken]) {
      const answer = await askAt(on, "GET", unserved(name), { token });
      expect(answer.status).toBe(404);
      texts.add(answer.text);
    }
    // Where it is off, a token of upstream's gets no further.
    const off = await askAt(world.url, "GET", unserved(name), { token: TOKEN });
    expect(off.status).toBe(404);
    texts.add(off.text);
  }
  expect(texts.size).toBe(1);
  expect([...texts][0]).toContain("this mirror does not serve GET on this route");
  const routes = Object.keys(world.upstream.meter.read().routes).filter((route) => route.includes("git/ref"));
  expect(routes).toEqual([]);
});

test("a route that is mirrored is never asked of upstream, and what upstream hides stays hidden", async () => {
  expect((await ask(unserved(hidden))).status).toBe(404);
  world.upstream.meter.reset();
  expect((await ask("/repos/no/body/issues")).status).toBe(404);
  expect(world.upstream.meter.read().requests).toBe(0);
});

test("what leads out of the API, what is no text, and an upstream that is away are refused", async () => {
  const seen: string[] = [];
  const odd = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (request.url === "/user") response.end(JSON.stringify({ id: 5, login: "person", type: "User" }));
    else if (request.url === "/graphql") response.end(JSON.stringify({ data: { nodes: [null] } }));
    else if (request.url === "/broken") request.socket.destroy();
    else response.setHeader("content-type", "application/zip").end("PK\u0003\u0004");
  });
  await new Promise<void>((resolve) => odd.listen(0, "127.0.0.1", resolve));
  try {
    await using away = await openApiWorld({
      repositories: 1,
      issues: 2,
      upstreamUrl: `http://127.0.0.1:${(odd.address() as AddressInfo).port}`,
      env: { PASS_THROUGH: "on" },
    });
    const get = (path: string) => askAt(away.url, "GET", path, { token: TOKEN });
    expect((await get("/archive")).body.message).toBe(
      "Upstream answers with application/zip; this mirror passes text on alone.",
    );
    const broken = await get("/broken");
    expect([broken.status, broken.body.message]).toEqual([
      502,
      "This mirror does not serve this route, and upstream, which may, cannot be reached.",
    ]);
    seen.length = 0;
    for (const path of ["/../x", "/a/%2e%2E/x", "/a/%2e%2e%2fx", "/a/..%5cx", "/a/./x"])
      expect(await statusOf(away.url, path), path).toBe(404);
    expect(seen).toEqual([]);
  } finally {
    odd.closeAllConnections();
    odd.close();
  }
});

/** Asks for a path exactly as it is written. */
function statusOf(base: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(base);
  const headers = { "user-agent": "test", authorization: `Bearer ${TOKEN}` };
  return new Promise((resolve, reject) => {
    getRaw({ hostname, port, path, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on("error", reject);
  });
}
