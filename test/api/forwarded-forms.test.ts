import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// What the mirror serves, asked for in a form or by a filter that only upstream has.

const TOKEN = "ghp_of-a-person";
let world: ApiWorld;
let open: { id: number; fullName: string };
let hidden: { id: number; fullName: string };
let diffs: { open: string; hidden: string };
beforeAll(async () => {
  world = await openApiWorld({ repositories: 6, issues: 30, env: { PASS_THROUGH: "all" } });
  const found = (isPrivate: boolean) => {
    for (const { repository, number } of world.upstream.world.pulls.values()) {
      const { id, fullName, private: is } = world.repositories.find((row) => row.id === repository.id) ?? {};
      if (id !== undefined && fullName && is === isPrivate) return { id, fullName, number };
    }
    throw new Error("The world has no such pull request");
  };
  const [shown, secret] = [found(false), found(true)];
  [open, hidden] = [shown, secret];
  diffs = {
    open: `/repos/${open.fullName}/pulls/${shown.number}`,
    hidden: `/repos/${hidden.fullName}/pulls/${secret.number}`,
  };
  world.upstream.tokens.create({ token: TOKEN, login: "person", repositories: [open.fullName] });
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(() => world.upstream.meter.reset());

const ask = (path: string, token: string | null, accept = "application/vnd.github.diff") =>
  askAt(world.url, "GET", path, { token, headers: { accept } });

test.each([
  "application/vnd.github.diff",
  "application/vnd.github.v3.patch",
  "application/vnd.github.patch+json",
  "application/json, application/vnd.github.diff;q=0.5",
])("a pull request as %s is upstream's for each who may see it", async (accept) => {
  const theirs = await world.getUpstream(diffs.open, { headers: { accept } });
  expect(theirs.text).toContain("diff --git");
  for (const token of [null, world.token, world.readToken, TOKEN]) {
    const ours = await ask(diffs.open, token, accept);
    expect([ours.status, ours.text]).toEqual([200, theirs.text]);
    expect(ours.headers.get("content-type")).toBe(theirs.headers.get("content-type"));
    expect(ours.headers.get("x-tain-passed-through")).toBe("upstream");
    expect(ours.headers.get("x-oauth-scopes")).toBe(token === TOKEN ? theirs.headers.get("x-oauth-scopes") : null);
  }
  expect((await ask(diffs.hidden, world.token, accept)).status).toBe(200);
});

test("a pull request that a caller may not see is as absent as its JSON, and upstream is not asked", async () => {
  const { userId } = world;
  const only = (permission: "issues:read" | "pull_requests:read") =>
    createApiToken(world.ctx, { userId, canWrite: false, permissions: [permission] });
  const [issues, pulls] = [await only("issues:read"), await only("pull_requests:read")];
  for (const [token, status] of [
    [null, 404],
    [issues, 403],
  ] as const) {
    const [json, diff] = [await ask(diffs.hidden, token, "application/json"), await ask(diffs.hidden, token)];
    expect([diff.status, diff.body]).toEqual([status, json.body]);
  }
  expect(world.upstream.meter.read().requests).toBe(0);
  expect((await ask(diffs.hidden, pulls)).status).toBe(200);
  // With a token of upstream's it is upstream that refuses.
  expect((await ask(diffs.hidden, TOKEN)).status).toBe(404);
});

test("without a share left, and where nobody is read for, it says why", async () => {
  const poor = await world.openSibling({ UPSTREAM_READS_PER_CALLER: "1", REDIS_PREFIX: testRedis().prefix });
  const diff = { headers: { accept: "application/vnd.github.diff" }, token: world.readToken };
  expect((await askAt(poor, "GET", diffs.open, diff)).status).toBe(200);
  const spent = await askAt(poor, "GET", diffs.open, diff);
  expect([spent.status, spent.body.message]).toEqual([403, expect.stringContaining("(1 an hour) are spent")]);
  const on = await world.openSibling({ PASS_THROUGH: "on" });
  expect((await askAt(on, "GET", diffs.open, diff)).status).toBe(406);
});

test.each([
  "/issues?filter=subscribed",
  "/orgs/ORG/repos?type=member",
  "/repos/REPO/issues?issue_field_values=a:b",
  "/search/issues?q=linked:pr",
  "/search/issues?q=repo:REPO+status:success",
])("%s, which the mirror cannot tell, is upstream's answer to a token of upstream's", async (form) => {
  const [org = ""] = open.fullName.split("/");
  const path = form.replace("REPO", open.fullName).replace("ORG", org);
  // The mirror asks once who the caller is.
  await ask("/user", TOKEN, "application/json");
  world.upstream.meter.reset();
  const ours = await ask(path, TOKEN, "application/json");
  const theirs = await askAt(world.upstream.url, "GET", path, {
    token: TOKEN,
    headers: { accept: "application/json" },
  });
  expect(ours.headers.get("x-tain-passed-through")).toBe("upstream");
  expect([ours.status, ours.text]).toEqual([theirs.status, theirs.text.replaceAll(world.upstream.url, world.url)]);
  // The mirror's credential is shown more than the caller: it is not asked.
  world.upstream.meter.reset();
  for (const token of [world.token, world.readToken]) {
    const refused = await ask(path, token, "application/json");
    expect([refused.status, refused.text]).toEqual([
      path.startsWith("/orgs") && refused.status === 404 ? 404 : 422,
      expect.any(String),
    ]);
  }
  expect(world.upstream.meter.read().requests).toBe(0);
});
