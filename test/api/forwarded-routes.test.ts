import { readFile } from "node:fs/promises";
import { createServer, get as getRaw } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { extractServiceRoutes } from "../../scripts/generate/service-routes.ts";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const TOKEN = "ghp_of-a-person";
let world: ApiWorld;
let on: string;
let repo: string;
let hidden: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 6, issues: 30, env: { PASS_THROUGH: "off" } });
  repo = world.repositories.find((row) => !row.private)?.fullName as string;
  hidden = world.repositories.find((row) => row.private)?.fullName as string;
  world.upstream.tokens.create({ token: TOKEN, login: "person", repositories: [repo] });
  on = await world.openSibling({ PASS_THROUGH: "on" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

// The simulator has this route and the mirror does not.
const unserved = (name: string) => `/repos/${name}/git/ref/heads/main`;
const ask = (path: string, options: Parameters<typeof askAt>[3] = {}) =>
  askAt(on, "GET", path, { token: TOKEN, ...options });

test("a route that is not mirrored is upstream's answer for a token of upstream's", async () => {
  // The mirror asks once who the caller is, also at the caller's cost.
  await ask("/user");
  const theirs = await askAt(world.upstream.url, "GET", unserved(repo), { token: TOKEN });
  expect(theirs.status).toBe(200);
  const ours = await ask(unserved(repo));
  expect(ours.status).toBe(200);
  expect(ours.text).toBe(theirs.text.replaceAll(world.upstream.url, on));
  expect(ours.headers.get("x-tain-passed-through")).toBe("upstream");
  expect(ours.headers.get("cache-control")).toBe(theirs.headers.get("cache-control"));
  // The request spends the caller's own quota at upstream.
  const used = (answer: typeof ours) => Number(answer.headers.get("x-ratelimit-used"));
  expect(used(ours)).toBe(used(theirs) + 1);
  for (const name of ["limit", "reset", "resource"])
    expect(ours.headers.get(`x-ratelimit-${name}`), name).toBe(theirs.headers.get(`x-ratelimit-${name}`));

  world.upstream.meter.reset();
  const spentHere = async () => (await ask("/rate_limit")).body.resources.core.used;
  const before = await spentHere();
  const again = await ask(unserved(repo), { headers: { "if-none-match": ours.headers.get("etag") ?? "" } });
  expect([again.status, again.text]).toEqual([304, ""]);
  expect(world.upstream.meter.read()).toMatchObject({ requests: 1, notModified: 1, charged: 0 });

  expect(await spentHere()).toBe(before);

  const head = await askAt(on, "HEAD", unserved(repo), { token: TOKEN });
  expect([head.status, head.text]).toEqual([200, ""]);
  const missing = await ask("/no/such/route");
  expect([missing.status, missing.body.message]).toEqual([404, "Not Found"]);
  // The version that was selected is upstream's word: of a route that it lacks, as of this one, it names none.
  const lacked = await ask(`/repos/${repo}/subscribers`);
  expect(lacked.status).toBe(404);
  const selected = ({ headers }: typeof ours) => headers.get("x-github-api-version-selected");
  expect([selected(ours), selected(head), selected(missing), selected(lacked)]).toEqual([
    "2022-11-28",
    "2022-11-28",
    null,
    null,
  ]);
});

test("nobody else is forwarded, and all are told the same, whatever repository they name", async () => {
  world.upstream.meter.reset();
  const texts = new Set<string>();
  for (const name of [repo, hidden, "no/body"]) {
    for (const token of [null, world.token, world.readToken]) {
      const answer = await askAt(on, "GET", unserved(name), { token });
      expect(answer.status).toBe(403);
      texts.add(answer.body.message);
    }
    // Where it is off, a token of upstream's gets no further.
    const off = await askAt(world.url, "GET", unserved(name), { token: TOKEN });
    expect(off.status).toBe(403);
    texts.add(off.body.message);
  }
  const what = "Forbidden: this mirror does not serve GET on this route, and so cannot say what is there.";
  expect([...texts]).toEqual([
    `${what} It asks the service for those who show a token of the service's own.`,
    `${what} Ask the service itself, or have the mirror's operator set PASS_THROUGH=on.`,
  ]);
  const routes = Object.keys(world.upstream.meter.read().routes).filter((route) => route.includes("git/ref"));
  expect(routes).toEqual([]);
});

// What clients read as "no member", "branch deleted", "no checks", "no such file".
test.each([
  ["GET", "/repos/no/body/collaborators/someone"],
  ["GET", "/repositories/7/collaborators/someone"],
  ["GET", "/orgs/no/blocks/someone"],
  ["GET", "/organizations/7/blocks/someone"],
  ["GET", "/repos/no/body/branches/release/1.x"],
  ["HEAD", "/repos/no/body/git/commits/0123456"],
  ["GET", "/repos/no/body/commits/main/status"],
  ["GET", "/repos/no/body/contents/.config/a.yml"],
  ["GET", "/repos/no/body/contents/"],
  ["GET", "/repos/no/body/branches/a/b/protection"],
  ["GET", "/api/v3/users/no/orgs"],
  ["GET", "/user/7/orgs"],
  ["GET", "/user/orgs"],
  ["GET", "/user/keys"],
  ["GET", "/repos/no/body/issues/events"],
  ["GET", "/repositories/7/issues/events"],
  ["DELETE", "/repos/no/body/git/refs/heads/a/b"],
  ["PUT", "/repos/no/body/pulls/1/merge"],
  ["DELETE", "/repos/no/body"],
])("%s %s, which the service has and this mirror has not, is no 404", async (method, path) => {
  for (const token of [null, world.token]) {
    const answer = await askAt(world.url, method, path, { token });
    expect(answer.status).toBe(403);
    if (method !== "HEAD") expect(answer.body.message).toContain(`does not serve ${method} on this route`);
  }
});

test.each([
  ["GET", "/repos/no/body/no-such-thing"],
  ["GET", "/repos/no"],
  ["GET", "/user/nonsense"],
  ["GET", "/repos/no/body/issues/nonsense"],
  ["GET", "/no/such/route"],
  ["PATCH", "/repos/no/body/commits/main/status"],
])("%s %s, which the service has not either, is 404", async (method, path) => {
  expect((await askAt(world.url, method, path, { token: world.token })).status).toBe(404);
});

test("the service's routes are those that it publishes", async () => {
  const file = new URL("../../src/api/description/service-routes.json", import.meta.url);
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual(extractServiceRoutes());
});

test("a form that only upstream has is upstream's for its own tokens, and never kept for others", async () => {
  const { id } = world.repositories.find((row) => !row.private) ?? {};
  const number = [...world.upstream.world.pulls.values()].find((one) => one.repository.id === id)?.number;
  const path = `/repos/${repo}/pulls/${number}`;
  const headers = { accept: "application/vnd.github.diff" };
  const theirs = await askAt(world.upstream.url, "GET", path, { token: TOKEN, headers });
  const ours = await ask(path, { headers });
  expect([ours.status, ours.text]).toEqual([200, theirs.text]);
  expect(ours.text).toContain("diff --git");
  expect(ours.headers.get("content-type")).toBe(theirs.headers.get("content-type"));
  expect(ours.headers.get("x-tain-passed-through")).toBe("upstream");
  for (const token of [null, world.token]) expect((await askAt(on, "GET", path, { token, headers })).status).toBe(406);
  // As JSON it is the mirror's own.
  expect((await ask(path)).headers.get("x-tain-passed-through")).toBeNull();
});

test("what upstream hides stays hidden, and is asked of upstream with the caller's own token", async () => {
  for (const path of [unserved(hidden), `/repos/${hidden}`, `/repos/${hidden}/issues`, "/repos/no/body/issues"]) {
    world.upstream.meter.reset();
    const answer = await ask(path);
    expect([path, answer.status, answer.headers.get("x-tain-passed-through")]).toEqual([path, 404, "upstream"]);
    expect(Object.keys(world.upstream.meter.read().callers), path).toEqual([TOKEN]);
  }
});

test("what is no part of the dialect is not forwarded: upstream's own pages may show what is its operator's", async () => {
  // The mirror's own operator sits at this machine, and is shown the mirror's own status.
  const fromElsewhere = { "x-forwarded-for": "203.0.113.9" };
  // The simulator lets every caller see and change everything below /-/; another Tain shows its status to its
  // neighbours.
  expect((await askAt(world.upstream.url, "GET", "/-/state", { token: TOKEN })).status).toBe(200);
  for (const path of ["/-/state", "/%2d/state", "/%2D%2Fstate", "/-/status", "/api/v3/-/state"])
    expect((await ask(path, { headers: fromElsewhere })).status, path).toBe(404);
  // The page is the mirror's own.
  const page = await ask("/-", { headers: fromElsewhere });
  expect([page.status, page.headers.get("location")]).toEqual([303, "/-/"]);
  const body = JSON.stringify({ repository: repo, by: "person", op: "createIssue", title: "not to be" });
  expect((await askAt(on, "POST", "/-/mutate", { token: TOKEN, body })).status).toBe(404);
});

test("forwarded requests never keep upstream from being asked who a caller is", async () => {
  let slow = 0;
  const hanging = createServer((request, response) => {
    if (request.url === "/user") response.end(JSON.stringify({ id: 5, login: "person", type: "User" }));
    else if (request.url === "/graphql") response.end(JSON.stringify({ data: { nodes: [] } }));
    else slow += 1;
  });
  await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
  try {
    await using behind = await openApiWorld({
      repositories: 1,
      issues: 10,
      upstreamUrl: `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`,
      env: { PASS_THROUGH: "on" },
    });
    await askAt(behind.url, "GET", "/user", { token: TOKEN });
    const waiting = Array.from({ length: 40 }, () => askAt(behind.url, "GET", "/slow", { token: TOKEN }));
    await expect.poll(() => slow).toBe(8);
    expect((await askAt(behind.url, "GET", "/user", { token: "ghp_of-another" })).status).toBe(200);
    expect(slow).toBe(8);
    hanging.close();
    hanging.closeAllConnections();
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(502);
  } finally {
    hanging.closeAllConnections();
    hanging.close();
  }
});

test("what leads out of the API, and an upstream that is away are refused", async () => {
  const seen: string[] = [];
  const odd = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.accept}`);
    if (request.url === "/user") response.end(JSON.stringify({ id: 5, login: "person", type: "User" }));
    else if (request.url === "/graphql") response.end(JSON.stringify({ data: { nodes: [null] } }));
    else if (request.url === "/broken") request.socket.destroy();
    else response.setHeader("content-type", "application/zip").end("PK\u0003\u0004");
  });
  await new Promise<void>((resolve) => odd.listen(0, "127.0.0.1", resolve));
  try {
    await using away = await openApiWorld({
      repositories: 1,
      issues: 10,
      upstreamUrl: `http://127.0.0.1:${(odd.address() as AddressInfo).port}`,
      env: { PASS_THROUGH: "on" },
    });
    const get = (path: string) => askAt(away.url, "GET", path, { token: TOKEN });
    expect(await get("/archive")).toMatchObject({ status: 200, text: "PK\u0003\u0004" });
    const broken = await get("/broken");
    expect([broken.status, broken.body.message]).toEqual([
      502,
      "This mirror does not hold what is asked for, and upstream, which may, gave no answer that can be read.",
    ]);
    const write = await askAt(away.url, "POST", "/broken", { token: TOKEN, body: "{}" });
    expect([write.status, write.body.message]).toEqual([
      502,
      "This mirror does not hold what is asked for, and upstream, which may, gave no answer that can be read. Whether it did what was asked is not known; it is not sent again.",
    ]);
    expect(seen.filter((one) => one.startsWith("POST /broken"))).toHaveLength(1);
    // Whether it is a media type of the route is for upstream to say.
    const headers = { accept: "application/octet-stream" };
    await askAt(away.url, "GET", "/asset", { token: TOKEN, headers });
    expect(seen).toContain("GET /asset application/octet-stream");
    seen.length = 0;
    for (const path of ["/../x", "/a/%2e%2E/x", "/a/%2e%2e%2fx", "/a/..%5cx", "/a/./x"])
      expect(await statusOf(away.url, path), path).toBe(404);
    expect(seen).toEqual([]);
    odd.close();
    odd.closeAllConnections();
    const gone = await askAt(away.url, "POST", "/anything", { token: TOKEN, body: "{}" });
    expect([gone.status, gone.body.message]).toEqual([
      502,
      "This mirror does not hold what is asked for, and upstream, which may, cannot be reached.",
    ]);
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

test.each([
  ["/notifications", "Notifications"],
  ["/users/person/received_events", "Received events"],
])(
  "%s: upstream's for a token of upstream's, otherwise an empty list that says that it means nothing",
  async (path, what) => {
    const theirs = await askAt(world.upstream.url, "GET", path, { token: TOKEN });
    const passed = await ask(path);
    expect([passed.status, passed.headers.get("x-tain-passed-through")]).toEqual([theirs.status, "upstream"]);
    for (const [base, token] of [
      [on, world.token],
      [world.url, world.token],
      [world.url, TOKEN],
    ] as const) {
      const empty = await askAt(base, "GET", path, { token });
      expect([empty.status, empty.text]).toEqual([200, "[]"]);
      expect(empty.headers.get("warning")).toBe(
        `199 tain "${what} are not mirrored: this list says nothing of upstream's"`,
      );
      expect(empty.headers.get("etag")).toBeNull();
    }
    const stranger = await askAt(world.url, "GET", path, { token: null });
    expect([stranger.status, stranger.body.message]).toEqual([401, "Requires authentication"]);
  },
);
