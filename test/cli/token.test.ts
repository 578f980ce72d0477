import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { callerNames } from "../../src/api/callers/spenders.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { observe } from "../../src/mirror/store/observation.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { askAt } from "../support/asking.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

/** For tests that neither count the tokens that there are nor revoke others' ones. */
let shared: TestWorld;
beforeAll(async () => {
  shared = await openWorld({ workers: false });
});
afterAll(() => shared?.[Symbol.asyncDispose]());

async function asked({ url }: TestWorld, token: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`${url}/user`, { ...init, headers: { authorization: `token ${token}`, "user-agent": "test" } });
}

test("a token answers as the user it was made for, is printed alone, and is kept as a hash only", async () => {
  await using world = await openWorld({ workers: false });
  const made = await tainProcessOn(world, ["token", "create", "--login", "Mirror-Owner"]);
  expect(made.code).toBe(0);
  expect(made.stdout).toMatch(/^tain_[0-9A-Za-z]{40}\n$/);
  expect(made.stderr).toMatch(/^tain: answers as mirror-owner, reads only; its id is [0-9a-f]{12}\./);
  const token = made.stdout.trim();
  expect(await (await asked(world, token)).json()).toMatchObject({ login: "mirror-owner" });

  const writing = await tainOn(world, ["token", "create", "--write", "--json"]);
  expect(writing.json).toMatchObject({ login: "mirror-owner", canWrite: true });
  const listed = await tainProcessOn(world, ["token", "list", "--json"]);
  expect(listed.json.tokens).toMatchObject([
    { id: writing.json.id, canWrite: true, lastUsedAt: null, revokedAt: null },
    { canWrite: false, login: "mirror-owner", revokedAt: null },
    { canWrite: true },
  ]);
  for (const secret of [token, writing.json.token]) expect(listed.stdout).not.toContain(secret);
});

test("a login is whose upstream showed it, also after a webhook has claimed it for another account", async () => {
  const { ctx } = shared;
  const first = await tainOn(shared, ["token", "create", "--login", "mirror-owner", "--json"]);
  const at = { api: ctx.config.upstreamUrl, seenAt: new Date(ctx.clock.now().getTime() + 60_000), read: false };
  const claimed = { id: 987_654_321, node_id: "U_claimed", login: "mirror-owner", type: "User" };
  await ctx.db.transaction((tx) => mergeObserved(tx, observe("user", claimed, at)));
  const again = await tainOn(shared, ["token", "create", "--login", "mirror-owner", "--json"]);
  expect(again.json).toMatchObject({ userId: first.json.userId, login: "mirror-owner" });
  const token = String(again.json.token);
  expect(await (await asked(shared, token)).json()).toMatchObject({ id: first.json.userId });
  await ctx.db.query(sql`delete from users where id = ${claimed.id}`);
});

test("a user who is not mirrored can have no token, and it is said who can", async () => {
  await using world = await openWorld({ workers: false });
  expect(await tainOn(world, ["token", "create", "--login", "nobody-known"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr:
      "tain: nobody-known is not a user that is mirrored: name one who takes part in a mirrored repository, or mirror-owner, whose UPSTREAM_TOKEN is\n",
  });
  const away = await tainOn(world, ["token", "create"], { UPSTREAM_URL: "http://127.0.0.1:1" });
  expect(away).toMatchObject({ code: 1, stdout: "" });
  expect(away.stderr).toMatch(/^tain: Upstream does not answer/);
  // An account that is known already is not looked up at upstream.
  const known = await tainOn(world, ["token", "create", "--login", "mirror-owner"], {
    UPSTREAM_URL: "http://127.0.0.1:1",
  });
  expect(known.code).toBe(0);
  expect((await tainOn(world, ["token", "list", "--json"])).json.tokens).toHaveLength(2);
});

test("a revoked token is refused, by its id or by itself; one unknown id among several revokes none", async () => {
  await using world = await openWorld({ workers: false });
  const [first, second] = [
    (await tainOn(world, ["token", "create", "--json"])).json,
    (await tainOn(world, ["token", "create", "--json"])).json,
  ];
  const refused = await tainOn(world, ["token", "revoke", first.id, "0123456789ab"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^tain: There is no token 0123456789ab: .* None was revoked$/m);
  // The listing shows that the first token still holds. A request would not: a process remembers for ten seconds that
  // a token was valid.
  const { tokens } = (await tainOn(world, ["token", "list", "--json"])).json;
  expect(tokens.find(({ id }: { id: string }) => id === first.id)).toMatchObject({ revokedAt: null });

  const revoked = await tainOn(world, ["token", "revoke", first.id, second.token, "--json"]);
  expect(revoked.json.revoked.map(({ id }: { id: string }) => id).sort()).toEqual([first.id, second.id].sort());
  for (const { token } of [first, second]) expect((await asked(world, token)).status).toBe(401);
  expect((await asked(world, world.token)).status).toBe(200);

  // A second time changes nothing, not even the moment.
  const again = await tainOn(world, ["token", "revoke", first.id, "--json"]);
  expect(again.json.revoked[0].revokedAt).toBe(
    revoked.json.revoked.find(({ id }: { id: string }) => id === first.id).revokedAt,
  );
  const rest = await tainOn(world, ["token", "revoke", "--all"]);
  expect(rest.stdout).toMatch(/^1 token revoked; /m);
  expect((await tainOn(world, ["token", "revoke", "--all"])).stdout).toBe(
    "0 tokens revoked; every process refuses them within ten seconds\n",
  );
});

test("a token can be for a while: then it is refused, and the list says so", async () => {
  const world = shared;
  const create = async (...more: string[]) => (await tainOn(world, ["token", "create", "--json", ...more])).json;
  const made = await create("--expires", "30d");
  const ofDate = await create("--expires", "2100-01-31");
  const lasting = await create();
  expect(Date.parse(made.expiresAt) - Date.now()).toBeGreaterThan(29 * 86_400_000);
  expect(Date.parse(made.expiresAt) - Date.now()).toBeLessThanOrEqual(30 * 86_400_000);
  expect([ofDate.expiresAt, lasting.expiresAt]).toEqual(["2100-01-31T00:00:00.000Z", null]);

  await world.ctx.db.query(sql`
    update api_tokens set expires_at = ${new Date()} where left(hash, 12) = ${made.id}`);
  const refused = await asked(world, made.token);
  expect([refused.status, await refused.json()]).toMatchObject([401, { message: "Bad credentials" }]);
  for (const { token } of [ofDate, lasting]) expect((await asked(world, token)).status).toBe(200);
  const { stdout } = await tainOn(world, ["token", "list"]);
  expect(stdout).toMatch(new RegExp(`^${made.id} .* expired \\S+ ago`, "m"));
  expect(stdout).toMatch(new RegExp(`^${ofDate.id} .* valid for `, "m"));
  expect(stdout).toMatch(new RegExp(`^${lasting.id} .* valid *$`, "m"));
});

test("a time that is none, or is over, makes no token", async () => {
  const world = shared;
  const before = (await tainOn(world, ["token", "list", "--json"])).json.tokens.length;
  for (const [when, reason] of [
    ["soon", /^tain: --expires takes a date/],
    ["30", /^tain: --expires takes a date/],
    ["2100-02-31x", /^tain: --expires takes a date/],
    ["99999999999d", /^tain: --expires takes a date/],
    ["0d", /^tain: --expires names a time that is over/],
    ["2020-01-31", /^tain: --expires names a time that is over/],
  ] as const) {
    const refused = await tainOn(world, ["token", "create", "--expires", when]);
    expect(refused, when).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(reason) });
  }
  expect((await tainOn(world, ["token", "list", "--json"])).json.tokens).toHaveLength(before);
});

test("a token can be for some repositories, and have a quota of its own", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 1, issues: 3, pulls: 1 }),
  });
  await world.mirror(world.first);
  const name = world.first;
  const made = await tainOn(world, ["token", "create", "--repos", name, "--limit", "7", "--json"]);
  expect(made.json).toMatchObject({ repositories: [name.toLowerCase()], hourlyLimit: 7 });
  const answer = await asked(world, made.json.token);
  expect(answer.headers.get("x-ratelimit-limit")).toBe("7");
  const [owner] = name.split("/");
  const wide = await tainOn(world, ["token", "create", "--repos", `${owner}/*`, "--limit", "off", "--json"]);
  expect((await asked(world, wide.json.token)).headers.get("x-ratelimit-limit")).toBeNull();
  const listed = await tainOn(world, ["token", "list", "--json"]);
  expect(listed.json.tokens).toMatchObject([
    { repositories: [`${owner}/*`], hourlyLimit: 0 },
    { repositories: [name], hourlyLimit: 7 },
    { repositories: null, hourlyLimit: null },
  ]);
  expect((await tainOn(world, ["token", "list"])).stdout).toMatch(new RegExp(`${owner}/\\*\\s+none`));
});

test.each([
  [
    ["--repos", "nobody/nothing"],
    1,
    /^tain: nobody\/nothing is not mirrored, so no token can be for it: `tain add nobody\/nothing` first\. None was made\n$/,
  ],
  [["--repos", "nothing"], 2, /nothing is neither owner\/name nor owner\/\*/],
  [["--limit", "many"], 2, /--limit takes a number of requests an hour, or off, and not many/],
])("%j is refused, and no token is made", async (words, code, says) => {
  const refused = await tainOn(shared, ["token", "create", ...words]);
  expect(refused).toMatchObject({ code, stdout: "" });
  expect(refused.stderr).toMatch(says);
});

test("a token can be given kinds, which the list shows along with its end and its last use", async () => {
  const world = shared;
  const create = (kinds: string) =>
    tainOn(world, ["token", "create", "--permissions", kinds, "--expires", "30d", "--json"]);
  const { json: some } = await create("pull_requests:read,issues:write,metadata:read");
  expect(some).toMatchObject({ canWrite: true, permissions: ["issues:write", "pull_requests:read"] });
  const { json: none } = await create("metadata:read");
  expect(none).toMatchObject({ canWrite: false, permissions: [] });
  expect((await asked(world, some.token)).status).toBe(200);
  const listed = async () => (await tainOn(world, ["token", "list", "--json"])).json.tokens;
  await until("its use is noted", async () => (await listed())[1].lastUsedAt !== null);
  const text = (await tainOn(world, ["token", "list"])).stdout;
  expect(text).toMatch(/issues:write, pull_requests:read +all +its user's +\S+ ago +\S+ ago +valid for (29|30)d/);
  expect(text).toMatch(/metadata:read +all +its user's +\S+ ago +never/);
  // The use of a token is noted once a minute.
  const before = (await listed())[1].lastUsedAt;
  for (let turn = 0; turn < 3; turn++) await asked(world, some.token);
  expect((await listed())[1].lastUsedAt).toBe(before);
});

test("of two tokens that are made at once with one name, one is; a revoked token's name is free again", async () => {
  const create = async () => await tainOn(shared, ["token", "create", "--name", "ci-bot", "--json"]);
  const both = await Promise.all([create(), create()]);
  const [refused] = both.filter(({ code }) => code !== 0);
  expect(both.map(({ code }) => code).sort()).toEqual([0, 1]);
  expect(refused).toMatchObject({
    stdout: "",
    stderr:
      "tain: A token is called ci-bot already: choose another name, or `tain token revoke ci-bot` first. None was made\n",
  });
  const first = both.find(({ code }) => code === 0)?.json;
  expect(first).toMatchObject({ name: "ci-bot" });

  expect((await tainOn(shared, ["token", "revoke", "ci-bot"])).stdout).toMatch(/^1 token revoked; /m);
  const second = (await create()).json;
  const named = async () =>
    (await tainOn(shared, ["token", "list", "--json"])).json.tokens.filter(
      ({ name }: { name: string | null }) => name === "ci-bot",
    );
  expect(await named()).toMatchObject([
    { id: second.id, revokedAt: null },
    { id: first.id, revokedAt: expect.any(String) },
  ]);
  expect((await tainOn(shared, ["token", "list"])).stdout).toMatch(
    new RegExp(`^${second.id} +ci-bot +mirror-owner`, "m"),
  );
});

test("a database that lets nobody in by its address is named as such", async () => {
  const url = new URL(shared.ctx.config.databaseUrl);
  url.pathname = "/nowhere";
  expect(await tainOn(shared, ["token", "list"], { DATABASE_URL: url.href })).toMatchObject({
    code: 1,
    stderr:
      'tain: Postgres cannot be used (database "nowhere" does not exist): see that DATABASE_URL is right and the server runs\n',
  });
});

test("one unknown name among several revokes none; a name is that of the token which is not revoked", async () => {
  const create = async () => (await tainOn(shared, ["token", "create", "--name", "dashboards", "--json"])).json;
  const before = await create();
  await tainOn(shared, ["token", "revoke", before.id]);
  const after = await create();
  const refused = await tainOn(shared, ["token", "revoke", "dashboards", "nobody"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^tain: There is no token nobody: .* None was revoked$/m);
  expect((await asked(shared, after.token)).status).toBe(200);

  const revoked = async () => (await tainOn(shared, ["token", "revoke", "dashboards", "--json"])).json.revoked;
  const [token] = await revoked();
  expect(token).toMatchObject({ id: after.id, revokedAt: expect.any(String) });
  // A second time changes nothing, not even the moment.
  expect(await revoked()).toEqual([token]);
});

test("the name stands where its token is named: audit log, writes, targets, quotas", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 1, issues: 1, pulls: 1 }),
  });
  await world.mirror(world.first);
  const of = ["--permissions", "issues:write,hooks:write", "--limit", "500"];
  const made = (await tainOn(world, ["token", "create", "--name", "renovate", ...of, "--json"])).json;
  const hook = { config: { url: "https://ci.example.com/" }, events: ["push"] };
  const post = async (path: string, body: object) =>
    (await askAt(world.url, "POST", path, { token: made.token, body: JSON.stringify(body) })).status;
  expect(await post(`/repos/${world.first}/hooks`, hook)).toBe(201);
  expect(await post(`/repos/${world.first}/issues`, { title: "An update" })).toBe(201);

  for (const actor of ["renovate", made.id]) {
    const { entries } = (await tainOn(world, ["audit-log", "--actor", actor, "--json"])).json;
    expect(entries).toMatchObject([{ action: "hook.create", actor: made.id, actorName: "renovate" }]);
  }
  const log = (await tainOn(world, ["audit-log"])).stdout;
  expect(log).toMatch(/own \S+ \(renovate\) .*hook\.create/);
  expect(log).toMatch(new RegExp(`token\\.create +${made.id} \\(renovate\\)`));
  expect((await tainOn(world, ["audit-log", "--actor", "renovate2"])).stdout).toMatch(/^No entry/);

  const { writes } = (await tainOn(world, ["writes", "list", "--token", "renovate", "--json"])).json;
  const own = { token: made.id, tokenName: "renovate" };
  expect(writes).toMatchObject([{ ...own, route: "/repos/{owner}/{repo}/issues" }, own]);
  expect((await tainOn(world, ["writes", "list"])).stdout).toMatch(/ own renovate +POST /);
  expect((await tainOn(world, ["targets", "list"])).stdout).toMatch(/mirror-owner \(renovate\)/);
  expect(await callerNames(world.ctx, [`t${made.id}`])).toContainEqual([
    `t${made.id}`,
    "token renovate of mirror-owner",
  ]);
});
