import { createHash, generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { openUpstream } from "../../src/upstream/client/client.ts";
import { findValidators } from "../../src/upstream/conditional/validators.ts";
import { CredentialRejectedError, QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { type AppWorld, appPublicKey, openAppWorld } from "./app-world.ts";
import { json, keepValidator, quotaHeaders } from "./world.ts";

const caller = { priority: "caller" } as const;
const conditional = { priority: "audit", conditional: true } as const;
const hourMs = 3_600_000;

test("a repository is asked for with the token of the installation that covers it, which is made once", async () => {
  await using world = await openAppWorld();
  for (const path of ["/repositories/10/issues", "/repos/octo/one", "/repositories/20", "/orgs/hexa/repos"])
    expect(await world.upstream.get(path, caller)).toMatchObject({ kind: "ok", body: { url: path } });
  expect(world.asApp()).toEqual([
    "0 /app/installations/1/access_tokens",
    "1 /repositories/10/issues",
    "1 /repos/octo/one",
    "0 /app/installations/2/access_tokens",
    "2 /repositories/20",
    "2 /orgs/hexa/repos",
  ]);
});

test("two processes that need a token at once make one, and what lies in Redis shows none of it", async () => {
  await using world = await openAppWorld();
  const other = await world.another();
  const answers = await Promise.all(
    [world.upstream, other, world.upstream, other].map((upstream) => upstream.get("/repositories/10", caller)),
  );
  expect(answers.map(({ kind }) => kind)).toEqual(["ok", "ok", "ok", "ok"]);
  expect(world.service.made).toBe(1);
  const { redis, config } = world.ctx;
  const stored = await Promise.all(
    (await redis.keys(`${config.redisPrefix}:app:*`)).map(async (key) => `${key} ${await redis.get(key)}`),
  );
  expect(stored).toHaveLength(1);
  expect(stored.join()).not.toMatch(/ghs_/);
  expect(await redis.pttl((stored[0] ?? "").split(" ")[0] ?? "")).toBeGreaterThan(0);
});

test("a request that is told to stop waits no longer for the token that another process makes, and others go on", async () => {
  await using world = await openAppWorld();
  const { redis, config } = world.ctx;
  const lock = `${config.redisPrefix}:app:4711:installation:1:making`;
  await redis.set(lock, "another process");
  const stopping = new AbortController();
  const stopped = world.upstream.get("/repositories/10", { ...caller, signal: stopping.signal });
  const other = world.upstream.get("/repositories/10", caller);
  setTimeout(() => stopping.abort(new Error("told to stop")), 200);
  await expect(stopped).rejects.toThrow("told to stop");
  await redis.del(lock);
  expect(await other).toMatchObject({ kind: "ok" });
  expect(world.service.made).toBe(1);
});

test("for a command with Redis away, and when it has lost its memory, tokens are made nevertheless", async () => {
  await using away = await openAppWorld({ redis: "down", isCommand: true });
  expect(await away.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  await using world = await openAppWorld();
  await world.upstream.get("/repositories/10", caller);
  await world.ctx.redis.del(...(await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:*`)));
  // A process that has a token goes on with it.
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.service.made).toBe(1);
  expect(await (await world.another()).get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.service.made).toBe(2);
});

test("a token is renewed ten minutes before it ends, also by a process that did not make it", async () => {
  await using world = await openAppWorld();
  const other = await world.another();
  await world.upstream.get("/repositories/10", caller);
  world.wait(hourMs - 11 * 60_000);
  await other.get("/repositories/10", caller);
  expect(world.service.made).toBe(1);
  world.wait(2 * 60_000);
  await (await world.another()).get("/repositories/10", caller);
  expect(world.service.made).toBe(2);
  // A process that still holds the old token changes to the new one before the old one ends.
  await world.upstream.get("/repositories/10", caller);
  world.wait(10 * 60_000);
  await Promise.all([world.upstream, other].map((upstream) => upstream.get("/repositories/10", caller)));
  expect(world.service.made).toBe(2);
  expect(world.asApp().filter((line) => line.startsWith("?"))).toEqual([]);
});

test("a renewal that fails is tried once a minute while the old token serves, and is told when it is over", async () => {
  await using world = await openAppWorld();
  await world.upstream.get("/repositories/10", caller);
  world.service.publicKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey;
  world.wait(hourMs - 5 * 60_000);
  for (let times = 0; times < 5; times++) {
    expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
    await expect.poll(() => world.asApp().filter((line) => line.startsWith("0 ")).length).toBe(2);
  }
  world.wait(5 * 60_000);
  await expect(world.upstream.get("/repositories/10", caller)).rejects.toThrow(CredentialRejectedError);
});

test.each([-300_000, 300_000])(
  "a clock that is %i ms off upstream's works, after one refusal at most",
  async (aheadMs) => {
    await using world = await openAppWorld();
    world.service.aheadMs = aheadMs;
    expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
    world.wait(30 * 60_000);
    expect(await world.upstream.get("/repositories/20", caller)).toMatchObject({ kind: "ok" });
    const signed = world.asked.filter(({ url }) => url.startsWith("/app"));
    expect(signed.length).toBeLessThanOrEqual(3);
    expect(world.service.made).toBe(2);
  },
);

test("a token that upstream takes no more is replaced by a new one, once", async () => {
  await using world = await openAppWorld();
  await world.upstream.get("/repositories/10", caller);
  world.service.tokens.clear();
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.service.made).toBe(2);
  // Upstream refused the write and did not do it, so it may be sent again.
  world.service.tokens.clear();
  const written = await world.upstream.write({ method: "POST", path: "/repositories/10/issues", body: "{}" });
  expect(written.status).toBe(200);
  expect(world.service.made).toBe(3);
  // A new token that is refused as well is not replaced again and again.
  world.play = ((original) => (asked, response, count) => {
    if (asked.url.startsWith("/app")) return original(asked, response, count);
    return json(response, 401, { message: "Bad credentials" });
  })(world.play);
  const before = world.asked.length;
  await expect(world.upstream.get("/repositories/10", caller)).rejects.toThrow(CredentialRejectedError);
  expect(world.asked.length - before).toBe(3);
  await expect(world.upstream.get("/repositories/10", caller)).rejects.toThrow(CredentialRejectedError);
  expect(world.asked.length - before).toBe(3);
});

test("a wrong key is told in words, asked for once, and other credentials take over", async () => {
  await using world = await openAppWorld({ tokens: ["token-one"] });
  world.service.publicKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey;
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.asked.map(({ url }) => url)).toEqual([
    "/app/installations/1/access_tokens",
    "/repositories/10",
    "/repositories/10",
  ]);
  const report = (await quotaReport(world.ctx)).find(({ credential }) => credential === "installation-1");
  expect(report).toMatchObject({ name: "installation on octo" });
  expect(report?.problem).toMatch(/signature \(A JSON web token could not be decoded\).*APP_ID and APP_PRIVATE_KEY/);
  // Five minutes later the client tries again. Upstream knows the right key by then.
  world.service.publicKey = appPublicKey;
  world.wait(301_000);
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.asApp().at(-1)).toBe("1 /repositories/10");
});

test("an installation that is suspended in the middle is told of in words, and the work moves to a token", async () => {
  await using world = await openAppWorld({ tokens: ["token-one"] });
  await world.upstream.get("/repositories/10", caller);
  world.service.suspended.add(1);
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.tokens().at(-1)).toBe("token-one");
  const report = (await quotaReport(world.ctx)).find(({ credential }) => credential === "installation-1");
  expect(report?.problem).toMatch(/suspended.*unsuspend/);
  // The other installation is not affected.
  expect(await world.upstream.get("/repositories/20", caller)).toMatchObject({ kind: "ok" });
  expect(world.asApp().at(-1)).toBe("2 /repositories/20");
});

test("a suspended installation without any token: nothing is sent, and the reason is told", async () => {
  await using world = await openAppWorld();
  await world.ctx.db.query(sql`update installations set suspended_at = now() where id = 1`);
  await expect(world.upstream.get("/repositories/10", caller)).rejects.toThrow(/on octo is suspended.*unsuspend/);
  expect(world.asked).toHaveLength(0);
});

test("an App that is installed nowhere says so", async () => {
  await using world = await openAppWorld();
  await world.ctx.db.query(sql`truncate installations, installation_repositories`);
  await expect(world.upstream.get("/repos/any/where", caller)).rejects.toThrow(/installed nowhere.*install it/);
});

test("each installation spends its own quota: one that has spent it keeps no other waiting", async () => {
  await using world = await openAppWorld();
  world.service.answer = (installation, { url }, response) =>
    json(response, 200, { url }, quotaHeaders(installation === 1 ? 0 : 4_000));
  await world.upstream.get("/repositories/10", caller);
  await expect(world.upstream.get("/repositories/10", caller)).rejects.toThrow(QuotaSpentError);
  expect(await world.upstream.get("/repositories/20", caller)).toMatchObject({ kind: "ok" });
});

test("what no installation covers is asked of tokens and of one installation, since all see alike", async () => {
  await using world = await openAppWorld();
  world.service.answer = (_installation, _asked, response) =>
    json(response, 404, { message: "Not Found" }, quotaHeaders(4_000));
  expect(await world.upstream.get("/repos/else/where", caller)).toMatchObject({ kind: "missing" });
  expect(world.asked.filter(({ url }) => url === "/repos/else/where")).toHaveLength(1);
});

test("GraphQL about a repository goes to its installation; repositories are grouped by who sees them", async () => {
  await using world = await openAppWorld({ tokens: ["token-one"] });
  world.service.answer = (_installation, _asked, response) =>
    json(response, 200, { data: { node: null } }, quotaHeaders(4_000, { resource: "graphql" }));
  const groups = await world.upstream.groups([10, 30, 20, 31]);
  expect(groups).toEqual([[10], [30, 31], [20]]);
  for (const [repository] of groups)
    await world.upstream.graphql("{ node }", {}, { ...caller, repository: repository as number });
  const asked = world.asked.filter(({ url }) => url === "/graphql");
  expect(asked.map(({ token }) => world.service.tokens.get(token)?.installation ?? token)).toEqual([1, "token-one", 2]);
});

test("a write goes to a token where the account has not granted it to the App", async () => {
  await using world = await openAppWorld({ tokens: ["token-one"] });
  await world.upstream.write({ method: "POST", path: "/repositories/10/issues", body: "{}" });
  expect(world.tokens()).toEqual(["token-one"]);
  await world.ctx.db.query(sql`update installations set permissions = '{"issues":"write"}' where id = 1`);
  world.upstream.credentialsChanged();
  await world.upstream.write({ method: "POST", path: "/repositories/10/issues", body: "{}" });
  expect(world.asApp().at(-1)).toBe("1 /repositories/10/issues");
});

/** Answers with ETags that are made as the service makes them, so they change with the token. */
function tagged(world: AppWorld, dates: Record<string, string> = {}): void {
  world.service.answer = (_installation, { url, headers }, response) => {
    const text = JSON.stringify([{ id: 1, url }]);
    const etag = createHash("sha256").update(`${headers.accept}:${headers.authorization}:${text}`).digest("hex");
    const isKnown =
      headers["if-none-match"] === `"${etag}"` ||
      (dates["last-modified"] !== undefined && headers["if-modified-since"] === dates["last-modified"]);
    const answered = { ...quotaHeaders(4_000), ...dates, etag: `"${etag}"`, vary: "Accept, Authorization" };
    response.writeHead(isKnown ? 304 : 200, { ...answered, "content-type": "application/json" });
    response.end(isKnown ? undefined : text);
  };
}

test("validators outlive the hourly change of the token, and leave one row for each page", async () => {
  await using world = await openAppWorld();
  tagged(world);
  const path = "/repositories/10/labels?per_page=100";
  const first = await world.upstream.get(path, conditional);
  if (first.kind !== "ok" || !first.validator) throw new Error("The first answer has no validator");
  await keepValidator(world.ctx.db, first.validator);
  for (let hours = 0; hours < 5; hours++) {
    world.wait(hourMs);
    expect(await world.upstream.get(path, conditional)).toMatchObject({ kind: "unchanged" });
    expect(await world.upstream.get(path, conditional)).toMatchObject({ kind: "unchanged" });
  }
  expect(world.service.made).toBe(6);
  const [known = new Map()] = await findValidators(world.ctx.db, [path]);
  expect([...known.keys()]).toEqual(["installation-1"]);
});

test("without stored pages, a renewed token asks by the date", async () => {
  await using world = await openAppWorld({ env: { ETAG_PAGES_SIZE: "0" } });
  tagged(world, { "last-modified": "Sat, 31 Oct 2026 10:00:00 GMT" });
  const path = "/repositories/10";
  const first = await world.upstream.get(path, conditional);
  if (first.kind !== "ok" || !first.validator) throw new Error("The first answer has no validator");
  await keepValidator(world.ctx.db, first.validator);
  world.wait(hourMs);
  expect(await world.upstream.get(path, conditional)).toMatchObject({ kind: "unchanged" });
});

test("a token that may not be read any more in Redis is made anew", async () => {
  await using world = await openAppWorld();
  await world.upstream.get("/repositories/10", caller);
  const [key = ""] = await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:app:*`);
  await world.ctx.redis.set(key, Buffer.from("what another key has sealed, or nobody").toString("base64"));
  expect(await (await world.another()).get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
  expect(world.service.made).toBe(2);
});

test("what is known of installations is believed for a while, and nothing stands for what Postgres refuses to tell", async () => {
  await using world = await openAppWorld();
  await world.upstream.get("/repositories/10", caller);
  world.wait(6_000);
  // A newer schema could rename the table. That is no outage, so the client must not go on with a guess.
  await world.ctx.db.query(sql`alter table installations rename to elsewhere`);
  await expect(world.upstream.get("/repositories/10", caller)).rejects.toThrow(/installations/);
  await world.ctx.db.query(sql`alter table elsewhere rename to installations`);
  expect(await world.upstream.get("/repositories/10", caller)).toMatchObject({ kind: "ok" });
});

test("what was read before the installations changed is not remembered as what they are now", async () => {
  await using world = await openAppWorld();
  const arrived = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let isHeld = true;
  const { db } = world.ctx;
  // Postgres' first answer is right, but comes late.
  const late = db.until(new AbortController().signal);
  const run = late.run.bind(late);
  late.run = async <Row>(...asked: Parameters<typeof run>) => {
    const answer = await run<Row>(...asked);
    if (isHeld && JSON.stringify(answer.rows).includes("octo")) {
      isHeld = false;
      arrived.resolve();
      await released.promise;
    }
    return answer;
  };
  const upstream = openUpstream({ ...world.ctx, db: late }, {});
  try {
    const first = upstream.get("/repositories/10", caller);
    first.catch(() => {}); // The promise is awaited below.
    await arrived.promise;
    await db.query(sql`update installations set suspended_at = ${world.ctx.clock.now()} where account = 'octo'`);
    upstream.credentialsChanged();
    released.resolve();
    await expect(first).rejects.toThrow("suspended");
  } finally {
    await upstream.close();
  }
});
