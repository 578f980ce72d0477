import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Permission } from "../../src/api/callers/permissions.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { rightsOf } from "../../src/api/forward/mirror-reads.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const READ_PERMISSIONS = [
  ...([
    "contents:read",
    "issues:read",
    "pull_requests:read",
    "checks:read",
    "statuses:read",
    "deployments:read",
    "actions:read",
  ] as const),
] satisfies Permission[];

// With PASS_THROUGH=all the mirror's own credential reads for those who have none of upstream's.

let answer: (response: ServerResponse, url: string) => void;
const asked: string[] = [];
const upstream = createServer((request, response) => {
  asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
  answer(response, request.url ?? "");
});
let world: ApiWorld;
let all: string;
let seen: { id: number; fullName: string };
let hidden: { id: number; fullName: string };
beforeAll(async () => {
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  world = await openApiWorld({ repositories: 6, issues: 30, upstreamUrl, env: { PASS_THROUGH: "off" } });
  seen = world.repositories.find((row) => !row.private) ?? { id: 0, fullName: "" };
  hidden = world.repositories.find((row) => row.private) ?? { id: 0, fullName: "" };
  all = await world.openSibling({ PASS_THROUGH: "all", UPSTREAM_READS_PER_CALLER: "1000" });
});
afterAll(async () => {
  upstream.closeAllConnections();
  upstream.close();
  await world?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  asked.length = 0;
  answer = (response, url) =>
    response
      .writeHead(200, {
        ...{ "content-type": "application/json", "cache-control": "public, max-age=60", "x-oauth-scopes": "repo" },
        ...{ "x-accepted-oauth-scopes": "repo", "x-github-sso": "required" },
      })
      .end(JSON.stringify({ url: `${world.ctx.config.upstreamUrl}${url}` }));
});

const get = (name: string, rest: string, token: string | null, more: Record<string, string> = {}) =>
  askAt(all, "GET", `/repos/${name}${rest}`, { token, headers: more });

test("what is below a repository is read for who sees it, and kept for nobody", async () => {
  const read = await get(hidden.fullName, "/contents/a/b.json?ref=main", world.token);
  expect([read.status, read.body]).toEqual([
    ...[200, { url: `${all}/repositories/${hidden.id}/contents/a/b.json?ref=main` }],
  ]);
  expect(asked).toEqual([
    `GET /repositories/${hidden.id}/contents/a/b.json?ref=main ${UPSTREAM_TOKEN && `Bearer ${UPSTREAM_TOKEN}`}`,
  ]);
  expect(read.headers.get("x-tain-passed-through")).toBe("upstream");
  expect(read.headers.get("cache-control")).toBe("private, no-cache");
  // What the mirror's own credential may, and has left, is nobody's business.
  for (const name of ["x-oauth-scopes", "x-accepted-oauth-scopes", "x-github-sso"])
    expect(read.headers.get(name), name).toBeNull();
  expect(read.headers.get("x-ratelimit-limit")).toBe("5000");

  asked.length = 0;
  for (const name of [hidden.fullName, "no/body"]) {
    const refused = await get(name, "/contents/a/b.json?ref=main", null);
    expect([refused.status, refused.body.message]).toEqual([
      ...[403, "Forbidden: this mirror shows you no such repository, and so asks nothing."],
    ]);
  }
  expect(asked).toEqual([]);
  expect((await get(seen.fullName, "/commits/main/status", null)).status).toBe(200);
});

test("a token for some kinds alone reads code where everybody does, and nowhere else", async () => {
  const { userId } = world;
  const token = await createApiToken(world.ctx, {
    userId,
    canWrite: true,
    permissions: ["issues:read", "pull_requests:write"],
  });
  asked.length = 0;
  expect((await get(hidden.fullName, "/contents/a", token)).status).toBe(403);
  expect((await askAt(all, "GET", `/repositories/${hidden.id}/contents/a`, { token })).status).toBe(403);
  expect(asked).toEqual([]);
  expect((await get(seen.fullName, "/contents/a", token)).status).toBe(200);
});

/** Paths below a repository, with the permissions that each takes. One of them may be an encoded form of another. */
const TAKEN: Readonly<Record<string, readonly Permission[]>> = {
  "/contents/a": ["contents:read"],
  "/readme": ["contents:read"],
  "/commits": ["contents:read"],
  "/commits/main": ["contents:read"],
  "/commits/main/comments": ["contents:read"],
  "/branches/main": ["contents:read"],
  "/git/trees/main": ["contents:read"],
  "/compare/a...b": ["contents:read"],
  "/releases/latest": ["contents:read"],
  "/comments/1": ["contents:read"],
  "/comments/1/reactions": ["contents:read"],
  "/languages": [],
  "/contributors": [],
  "/stats/participation": [],
  "/pulls/1/commits": ["pull_requests:read"],
  "/pulls/1/files": ["pull_requests:read"],
  "/pulls%2F1/files": ["pull_requests:read"],
  "/pulls/comments/1/reactions": ["pull_requests:read"],
  "/issues/1/reactions": ["issues:read", "pull_requests:read"],
  "/issues/comments/1/reactions": ["issues:read", "pull_requests:read"],
  "/commits/main/pulls": ["contents:read", "pull_requests:read"],
  "/commits/feature/x/pulls": ["contents:read", "pull_requests:read"],
  "/commits/main%2Fpulls": ["contents:read", "pull_requests:read"],
  "/commits/main/pulls/": READ_PERMISSIONS,
  "/commits/main/pulls.json": READ_PERMISSIONS,
  "/commits/main/check-runs": ["checks:read"],
  "/commits/main/check-suites": ["checks:read"],
  "/check-runs/1/annotations": ["checks:read"],
  "/commits/main/status": ["statuses:read"],
  "/commits/feature/x/statuses": ["statuses:read"],
  "/statuses/main": ["statuses:read"],
};

test.each(READ_PERMISSIONS)(
  "a token without %s is shown nothing of a private repository that takes it",
  async (one) => {
    const { ctx, userId } = world;
    const others = READ_PERMISSIONS.filter((permission) => permission !== one);
    const token = await createApiToken(ctx, { userId, canWrite: false, permissions: others });
    for (const [rest, taken] of Object.entries(TAKEN)) {
      asked.length = 0;
      const read = await get(hidden.fullName, rest, token);
      expect([read.status, asked.length], rest).toEqual(taken.includes(one) ? [403, 0] : [200, 1]);
      if (!taken.includes(one)) continue;
      expect(read.body.message).toBe("Resource not accessible by personal access token");
      expect(read.headers.get("x-accepted-github-permissions")?.split(", ").sort(), rest).toEqual(
        taken.map((permission) => permission.replace(":", "=")).sort(),
      );
      // The same is public elsewhere, where it takes no right.
      expect((await get(seen.fullName, rest, token)).status, rest).toBe(200);
    }
  },
);

test("bytes, redirects and what is not there are as upstream has them", async () => {
  const bytes = Buffer.from([0, 255, 254, 10, 13, 128]);
  answer = (response) => response.setHeader("content-type", "application/octet-stream").end(bytes);
  const raw = await fetch(`${all}/repos/${seen.fullName}/contents/x.bin`, {
    headers: { "user-agent": "test", authorization: `Bearer ${world.token}`, accept: "application/vnd.github.raw" },
  });
  expect(Buffer.from(await raw.arrayBuffer()).equals(bytes)).toBe(true);
  const signed = "https://codeload.example/a?token=b%2Fc";
  answer = (response) => response.writeHead(302, { location: signed }).end();
  const archive = await get(seen.fullName, "/zipball/main", world.token);
  expect([archive.status, archive.headers.get("location")]).toEqual([302, signed]);
  answer = (response) => response.writeHead(404, { "content-type": "application/json" }).end('{"message":"Not Found"}');
  expect((await get(seen.fullName, "/contents/none", world.token)).body).toEqual({ message: "Not Found" });
  answer = (response) => response.writeHead(403, { "content-type": "application/json" }).end('{"message":"No"}');
  expect((await get(seen.fullName, "/contents/none", world.token)).status).toBe(502);
});

test("what is a setting, a secret, a person's or a write is never asked with the mirror's credential", async () => {
  for (const [method, rest] of [
    ...["hooks", "keys", "actions/secrets", "collaborators/a/permission", "branches/main/protection", "releases"].map(
      (one) => ["GET", `/${one}`],
    ),
    ...["traffic/views", "issues/1/timeline", "compare/main...other:main", "dependabot/alerts", "forks"].map((one) => [
      ...["GET", `/${one}`],
    ]),
    ["GET", "/branches/main%2Fprotection"],
    ["GET", "/compare/main...other%3Amain"],
    ["PUT", "/contents/a"],
    ["POST", "/statuses/abc"],
  ]) {
    const refused = await askAt(all, method ?? "", `/repos/${seen.fullName}${rest}`, { token: world.token });
    expect(refused.status, rest).toBe(403);
  }
  for (const path of ["/user/keys", "/orgs/a/invitations", "/app"])
    expect((await askAt(all, "GET", path, { token: world.token })).status, path).toBe(403);
  expect(asked).toEqual([]);
});

test("what is still encoded once it is decoded is not read", () => {
  expect(rightsOf("/contents/a%20b")).toEqual(["contents"]);
  expect(rightsOf("/contents/a%252Fb")).toBeNull();
  expect(rightsOf("/contents%2F%ff")).toBeNull();
});

test("a share that is spent is said in words, and bounds all the reads of a caller", async () => {
  const url = await world.openSibling({
    ...{ PASS_THROUGH: "all", UPSTREAM_READS_PER_CALLER: "3", REDIS_PREFIX: testRedis().prefix },
  });
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      askAt(url, "GET", `/repos/${seen.fullName}/contents/${at}`, { token: world.readToken }),
    ),
  );
  const refused = answers.filter(({ status }) => status === 403);
  expect([refused.length, asked.length]).toEqual([5, 3]);
  expect(refused[0]?.body.message).toContain("your reads of upstream (3 an hour) are spent");
  expect(refused[0]?.headers.get("retry-after")).not.toBeNull();
});

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
const repositoryBody = ({ id, fullName }: { id: number; fullName: string }, isPrivate: boolean): any => ({
  id,
  full_name: fullName,
  private: isPrivate,
  owner: { login: "a" },
  permissions: { admin: true, maintain: true, push: true, triage: true, pull: true },
});

test("what upstream says of the mirror's own account, and what others may not see, stays with those who may", async () => {
  const mirrors = {
    role_name: "admin",
    viewer_made_up: "admin",
    temp_clone_token: "secret",
  };
  const app = { slug: "linter", permissions: { checks: "write" } };
  const shownIn = { ...repositoryBody(seen, false), ...mirrors };
  const rows = [
    { app, repository: shownIn, author_association: "MEMBER", head: { repo: repositoryBody(hidden, true) } },
    { title: 'a "permissions": {} in words' },
  ];
  answer = (response) =>
    response.writeHead(200, { "content-type": "application/json", etag: '"one"' }).end(JSON.stringify(rows));
  const one = await createApiToken(world.ctx, {
    userId: world.userId,
    canWrite: false,
    scope: { repositoryIds: [seen.id], ownerIds: [] },
  });
  const { permissions, ...rest } = repositoryBody(seen, false);
  const [first, second] = rows;
  const stranger = { ...first, repository: rest, author_association: "NONE", head: { repo: null } };
  const reads = { admin: false, maintain: false, push: false, triage: false, pull: true };
  for (const rest_ of ["/commits/main/status", "/commits/abc/pulls"]) {
    for (const _ of ["miss", "kept"]) {
      expect((await get(seen.fullName, rest_, null)).body).toEqual([stranger, second]);
      const reader = { ...stranger, repository: { ...rest, permissions: reads }, author_association: "MEMBER" };
      expect((await get(seen.fullName, rest_, one)).body).toEqual([reader, second]);
      const own = { ...first, repository: { ...shownIn, temp_clone_token: "" } };
      expect((await get(seen.fullName, rest_, world.token)).body).toEqual([own, second]);
    }
  }
  expect(permissions.admin).toBe(true);
});

test("no more is read than can be looked through, and what Git holds is forwarded at any length", async () => {
  const long = JSON.stringify({ text: "x".repeat(5 * 1024 * 1024) });
  answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end(long);
  const refused = await get(seen.fullName, "/commits/abc/pulls", null);
  expect([refused.status, refused.body.message]).toEqual([
    ...[502, "Upstream's answer is longer than this mirror looks through: ask for fewer with per_page."],
  ]);
  expect((await get(seen.fullName, "/contents/long.json", null)).text).toBe(long);
});
