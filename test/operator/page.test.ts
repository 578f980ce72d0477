/** The operator's page as its server sees it: who gets in, what guards it, what can be done by it and what cannot. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { askCommand } from "../../src/queues/commands.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { noteQuota, quotaHistory } from "../../src/upstream/quota/history.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const OPERATOR = "the-operators-token";
const NASTY = `<img src=x onerror="alert('1')">`;
const WRONG_LOGINS = 3;

let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({
    env: { OPERATOR_TOKEN: OPERATOR, FAILED_LOGINS_PER_ADDRESS: String(WRONG_LOGINS), TRUSTED_PROXIES: "loopback" },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 2, issues: 4, pulls: 1 }),
  });
  await world.mirror(world.first);
});
afterAll(() => world[Symbol.asyncDispose]());

const ask = (path: string, init: RequestInit = {}, at = world.url) => fetch(at + path, { redirect: "manual", ...init });

/** Addresses are counted by themselves, so that no test is in another's way. */
let addresses = 0;
const asSomebody = () => ({ "x-forwarded-for": `192.0.2.${++addresses}` });

function signIn(token: string, headers: Record<string, string> = asSomebody()): Promise<Response> {
  const form = { "content-type": "application/x-www-form-urlencoded", ...headers };
  return ask("/-/session", { method: "POST", headers: form, body: new URLSearchParams({ token }).toString() });
}

interface Signed {
  cookie: string;
  word: string;
}

async function signedIn(): Promise<Signed> {
  const answer = await signIn(OPERATOR);
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/-/"]);
  const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const page = await (await ask("/-/", { headers: { cookie } })).text();
  return { cookie, word: /<meta name="word" content="([\w-]+)">/.exec(page)?.[1] ?? "" };
}

/** The page's own request for a command. `headers` add to it or override it. */
function command({ cookie, word }: Signed, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const own = { cookie, "content-type": "application/json", "x-tain-session-word": word, origin: world.url };
  return ask("/-/operator/commands", { method: "POST", headers: { ...own, ...headers }, body: JSON.stringify(body) });
}

// biome-ignore lint/suspicious/noExplicitAny: what is told is JSON, and tests look into it as the page does.
type Told = any;

/** Asks for a command, and waits for what comes of it. */
async function done(signed: Signed, body: object): Promise<Told> {
  const asked = await command(signed, body);
  const { id, message } = (await asked.json()) as { id: string; message?: string };
  expect({ status: asked.status, message }).toEqual({ status: 202, message: undefined });
  return await eventually(async () => {
    const told = (await view(signed, `commands/${id}`)).body;
    expect(told.state).toBe("done");
    return told;
  });
}

async function view({ cookie }: Pick<Signed, "cookie">, path: string, headers: Record<string, string> = {}) {
  const answer = await ask(`/-/operator/${path}`, { headers: { cookie, ...headers } });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: (text === "" ? null : JSON.parse(text)) as Told };
}

async function made(payload: object, { status = "failed", reason = null as string | null } = {}) {
  const guid = randomUUID();
  const [row] = await world.ctx.db.query<{ id: string }>(sql`
    insert into deliveries (hook_id, guid, event, action, payload, status, attempts, reason, received_at, settled_at)
      values (1, ${guid}, 'star', 'created', ${Buffer.from(JSON.stringify(payload))}, ${status}, 8, ${reason}, now(), now())
      returning id`);
  return { guid, id: row?.id ?? "" };
}

describe("signing in", () => {
  test("the cookie is not the token, is kept from scripts and other sites, and ends", async () => {
    const answer = await signIn(OPERATOR);
    const cookie = answer.headers.get("set-cookie") ?? "";
    expect(cookie).not.toContain(OPERATOR);
    expect(cookie.split("; ").slice(1)).toEqual(["Path=/-/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]);
    const behindTls = await signIn(OPERATOR, { ...asSomebody(), "x-forwarded-proto": "https" });
    expect(behindTls.headers.get("set-cookie")).toMatch(/; Secure$/);
  });

  test("a session is over after its time, after signing out in every process, and with another token", async () => {
    const [first, second] = [await signedIn(), await signedIn()];
    const sibling = await world.openSibling({ OPERATOR_TOKEN: OPERATOR });
    const other = await world.openSibling({ OPERATOR_TOKEN: "another-token-of-the-operator" });
    const at = async (url: string, { cookie }: Signed) =>
      (await ask("/-/operator/tokens", { headers: { cookie } }, url)).status;
    expect(await at(sibling, first)).toBe(200);
    expect(await at(other, first)).toBe(401);

    const form = { cookie: first.cookie, "content-type": "application/x-www-form-urlencoded", origin: world.url };
    const out = (word: string) => ask("/-/session/end", { method: "POST", headers: form, body: `word=${word}` });
    expect((await out("wrong")).status).toBe(403);
    expect(await at(world.url, first)).toBe(200);
    const ended = await out(first.word);
    expect(ended.headers.get("set-cookie")).toMatch(/^tain_operator=; Path=\/-\/; Max-Age=0;/);
    expect([await at(world.url, first), await at(sibling, first), await at(world.url, second)]).toEqual([
      401, 401, 200,
    ]);

    world.advance(12 * 3_600_000);
    onTestFinished(() => world.advance(-12 * 3_600_000));
    expect(await at(world.url, second)).toBe(401);
    expect(await (await ask("/-/", { headers: { cookie: second.cookie } })).text()).toContain(
      "Operator&#39;s token".replace("&#39;", "'"),
    );
  });

  test("a cookie that was changed in any part is none", async () => {
    const { cookie } = await signedIn();
    const [moment = "", nonce = "", signature = ""] = cookie.slice("tain_operator=".length).split(".");
    const changed = (text: string) => (text.startsWith("A") ? "B" : "A") + text.slice(1);
    for (const value of [
      `${Number(moment) + 1}.${nonce}.${signature}`,
      `${moment}.${changed(nonce)}.${signature}`,
      `${moment}.${nonce}.${changed(signature)}`,
      `${moment}.${nonce}.`,
      OPERATOR,
      "",
    ])
      expect((await view({ cookie: `tain_operator=${value}` }, "tokens")).status).toBe(401);
  });

  test("wrong tokens are counted as those of the API are, and an address that showed too many is told so", async () => {
    const somebody = asSomebody();
    const statuses: number[] = [];
    for (let n = 0; n < WRONG_LOGINS; n++) statuses.push((await signIn("wrong", somebody)).status);
    expect(statuses).toEqual(Array.from({ length: WRONG_LOGINS }, () => 401));
    const locked = await signIn(OPERATOR, somebody);
    expect(locked.status).toBe(403);
    expect(Number(locked.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await locked.text()).toMatch(/Too many wrong tokens came from your address\. Try again in \d+ seconds\./);
    const api = await ask("/user", { headers: { authorization: `token tain_${"0".repeat(40)}`, ...somebody } });
    expect(api.status).toBe(403);
    expect((await signIn(OPERATOR)).status).toBe(303);
  });

  test("another site's form signs nobody in", async () => {
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const answer = await signIn(OPERATOR, { ...asSomebody(), ...headers });
      expect([answer.status, answer.headers.get("set-cookie")]).toEqual([403, null]);
    }
    expect((await signIn(OPERATOR, { ...asSomebody(), origin: world.url })).status).toBe(303);
  });

  test("a body that is no form, and one that is too large, are refused", async () => {
    const send = (type: string, body: string) =>
      ask("/-/session", { method: "POST", headers: { "content-type": type, ...asSomebody() }, body });
    expect((await send("application/json", "{}")).status).toBe(415);
    expect((await send("application/x-www-form-urlencoded", `token=${"x".repeat(5_000)}`)).status).toBe(413);
  });

  test("without OPERATOR_TOKEN the page says in words what to set, and nothing opens it", async () => {
    await using mirror = await openMirror();
    const page = await ask("/-/", {}, mirror.url);
    expect(page.status).toBe(403);
    expect(await page.text()).toMatch(/<code>OPERATOR_TOKEN<\/code> is not set/);
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const tried = await ask("/-/session", { method: "POST", headers: form, body: "token=" }, mirror.url);
    expect([tried.status, tried.headers.get("set-cookie")]).toEqual([403, null]);
    expect((await ask("/-/operator/fleet", {}, mirror.url)).status).toBe(401);
  });
});

describe("what guards the page", () => {
  test("the policy allows no script or style in the page, nothing of others, and no frame", async () => {
    const { cookie } = await signedIn();
    for (const [path, headers] of [
      ["/-/", { cookie }],
      ["/-/", {}],
      ["/-/files/page.js", {}],
    ] as const) {
      const answer = await ask(path, { headers });
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy.split("; ")).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "frame-ancestors 'none'",
          "base-uri 'none'",
          "form-action 'self'",
        ]),
      );
      expect(policy).not.toContain("unsafe");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      if (path !== "/-/") continue;
      expect(answer.headers.get("cache-control")).toBe("no-store");
      const text = await answer.text();
      expect(text).not.toMatch(
        /<style|<script(?! type="module" src="\/-\/files\/)|\bon\w+=|style=|https?:\/\/(?!127\.0\.0\.1)/,
      );
    }
  });

  test("each file that the page asks for is there, by its type, and a known one costs no body", async () => {
    const seen = new Set<string>();
    const walk = async (name: string): Promise<void> => {
      if (seen.has(name)) return;
      seen.add(name);
      const answer = await ask(`/-/files/${name}`);
      expect([name, answer.status]).toEqual([name, 200]);
      expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
      const again = await ask(`/-/files/${name}`, { headers: { "if-none-match": answer.headers.get("etag") ?? "" } });
      expect([again.status, await again.text()]).toEqual([304, ""]);
      for (const [, next = ""] of (await answer.text()).matchAll(/from "\.\/([\w.]+)"/g)) await walk(next);
    };
    await walk("page.js");
    expect(seen.size).toBeGreaterThan(10);
    expect((await ask("/-/files/page.css")).headers.get("content-type")).toBe("text/css; charset=utf-8");
    for (const name of ["tsconfig.json", "..%2froutes.ts", "nothing.js"])
      expect((await ask(`/-/files/${name}`)).status).toBe(404);
  });

  test("nothing is told or done without a session, and the API's tokens open nothing", async () => {
    const strangers = [{}, { authorization: `token ${world.token}` }, { authorization: `Bearer ${OPERATOR}` }];
    for (const headers of strangers) {
      for (const path of [
        "fleet",
        "quota",
        "deliveries",
        "hooks",
        "targets",
        "sent",
        "audits",
        "tokens",
        "commands/x",
        "x",
      ])
        expect([path, (await ask(`/-/operator/${path}`, { headers })).status]).toEqual([path, 401]);
      const asked = await ask("/-/operator/commands", {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: '{"command":"token create"}',
      });
      expect(asked.status).toBe(401);
    }
  });

  test("a changing request needs the session's word, our own origin, and JSON", async () => {
    const signed = await signedIn();
    const other = await signedIn();
    const body = { command: "remove", words: [world.first] };
    for (const headers of [
      { "x-tain-session-word": "" },
      { "x-tain-session-word": other.word },
      { "x-tain-session-word": `${signed.word}x` },
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ])
      expect([headers, (await command(signed, body, headers)).status]).toEqual([headers, 403]);
    expect((await command(signed, body, { "content-type": "text/plain" })).status).toBe(415);
    expect(await world.ctx.queues.commands.getJobCounts("waiting", "active", "delayed")).toEqual({
      waiting: 0,
      active: 0,
      delayed: 0,
    });
    expect((await view(signed, "fleet")).body.repositories).toMatchObject([{ state: "live" }]);
  });
});

describe("what it shows", () => {
  test("an unchanged view is a 304, and a changed one is not", async () => {
    const signed = await signedIn();
    const before = await view(signed, "tokens");
    expect(before.headers.get("cache-control")).toBe("private, no-cache");
    const tag = { "if-none-match": before.headers.get("etag") ?? "" };
    expect((await view(signed, "tokens", tag)).status).toBe(304);
    await world.ctx.db.query(
      sql`update api_tokens set last_used_at = last_used_at - interval '1 hour', user_id = user_id + 1`,
    );
    const after = await view(signed, "tokens", tag);
    expect(after.status).toBe(200);
    await world.ctx.db.query(sql`update api_tokens set user_id = user_id - 1`);
  });

  test("what others wrote is told as it is, as JSON that no browser takes for markup", async () => {
    const signed = await signedIn();
    const { guid } = await made({ title: NASTY }, { reason: NASTY });
    const found = await view(signed, `deliveries?${new URLSearchParams({ search: guid })}`);
    expect(found.body.deliveries).toMatchObject([{ guid, reason: NASTY }]);
    expect(found.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(found.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("no module makes markup of a text", async () => {
    const page = await (await ask("/-/files/page.js")).text();
    const names = [...page.matchAll(/from "\.\/([\w.]+)"/g)].map(([, name = ""]) => name);
    for (const name of [...names, "page.js", "plot.js", "table.js"])
      expect(await (await ask(`/-/files/${name}`)).text()).not.toMatch(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write\(|DOMParser|\beval\b/,
      );
  });

  test("deliveries are found by their status and by parts of their GUID, event and reason; wildcards are letters", async () => {
    const signed = await signedIn();
    const first = await made({}, { reason: "the moon was 100 % full" });
    await made({}, { reason: "the moon was new", status: "ignored" });
    const guids = async (asked: Record<string, string>) =>
      (await view(signed, `deliveries?${new URLSearchParams(asked)}`)).body.deliveries.map(
        ({ guid }: { guid: string }) => guid,
      );
    expect(await guids({ search: "MOON was", status: "failed" })).toEqual([first.guid]);
    expect(await guids({ search: "100 % full" })).toEqual([first.guid]);
    expect(await guids({ search: "moon%full" })).toEqual([]);
    expect(await guids({ search: first.guid.slice(0, 13) })).toEqual([first.guid]);
    expect(await guids({ search: "star.created", limit: "2" })).toHaveLength(2);
    expect((await view(signed, "deliveries?status=odd")).status).toBe(400);
  });

  test("the hour of the quota is noted once for all processes, forgets what is older, and says who spent it", async () => {
    const signed = await signedIn();
    const { ctx } = world;
    const at = (ago: number) => ({ ...ctx, clock: { now: () => new Date(Date.now() - ago) } });
    // Redis is waited for half a second, and a busy machine may take longer. What is noted twice then is one of as many.
    const noted = (ago: number) => eventually(() => noteQuota(at(ago)));
    await noted(2 * 3_600_000);
    for (let n = 0; n < 245; n++) await noted((245 - n) * 10_000);
    await eventually(async () => expect(await quotaHistory(ctx)).toHaveLength(241));
    await ctx.upstream.get(`/repos/${world.first}/labels`, { priority: "audit", caller: "u77" });
    await eventually(async () => {
      const { spent, history, quota } = (await view(signed, "quota")).body;
      expect(spent).toContainEqual({
        class: "audit",
        bucket: "core",
        route: "/repos/*/*/labels",
        caller: "u77",
        cost: 1,
        who: "user 77",
      });
      expect(history.at(-1).figures).toContainEqual(expect.objectContaining({ bucket: "core", limit: 5_000 }));
      expect(quota).toContainEqual(expect.objectContaining({ bucket: "core", limit: 5_000 }));
    });
  });

  test("hooks, audits, targets and the fleet are told as the commands tell them", async () => {
    const signed = await signedIn();
    expect((await view(signed, "hooks")).body.hooks).toMatchObject([
      { repository: world.first, hookId: null, missed: 0 },
    ]);
    expect((await view(signed, "audits")).body).toEqual({ audits: [] });
    expect((await view(signed, "targets")).body).toEqual({ targets: [] });
    expect((await view(signed, "fleet")).body).toMatchObject({
      problems: [],
      repositories: [{ state: "live" }],
      queues: { commands: { failed: 0 } },
    });
    expect((await view(signed, "sent?target=x")).status).toBe(400);
    expect((await view(signed, "nothing")).status).toBe(404);
  });
});

describe("what can be done", () => {
  test("a failed delivery is read with its payload and replayed; one that there is not is said in words", async () => {
    const signed = await signedIn();
    const { id, guid } = await made({ title: NASTY });
    const shown = await done(signed, { command: "deliveries show", words: [id], flags: ["payload"] });
    expect(shown.document.deliveries).toMatchObject([{ guid, payload: { title: NASTY } }]);
    const replayed = await done(signed, { command: "deliveries replay", words: [id] });
    expect(replayed).toMatchObject({ code: 0, error: null, document: { replayed: 1, ignored: 1 } });
    expect(await done(signed, { command: "deliveries replay", words: ["nothing"] })).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^The inbox has no delivery nothing: /),
    });
  });

  test("a repository is added, copied again, compared and removed", async () => {
    const signed = await signedIn();
    const [, second] = [...world.simulator.world.repositories.values()].map((each) =>
      world.simulator.world.fullName(each),
    );
    const added = await done(signed, { command: "add", words: [second] });
    expect(added.document.added).toMatchObject([{ repository: second, webhook: "none" }]);
    await eventually(async () =>
      expect((await view(signed, "fleet")).body.repositories.map(({ state }: { state: string }) => state)).toEqual([
        "live",
        "live",
      ]),
    );
    expect(await done(signed, { command: "backfill", words: [second], flags: ["again", "no-wait"] })).toMatchObject({
      code: 0,
      document: { event: "queued", repositories: [second] },
    });
    await eventually(async () =>
      expect((await view(signed, "fleet")).body.repositories.map(({ state }: { state: string }) => state)).toEqual([
        "live",
        "live",
      ]),
    );
    const compared = await done(signed, { command: "audit", words: [second], flags: ["repair"] });
    expect(compared.lines.join("\n")).toMatch(/equal to upstream/);
    expect((await view(signed, "audits")).body.audits).toMatchObject([{ repository: second, found: 0 }]);
    expect((await done(signed, { command: "remove", words: [second] })).document.removed).toMatchObject([
      { repositories: [second], rows: "kept" },
    ]);
    expect(await done(signed, { command: "add", words: ["no-slash"] })).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^no-slash is neither owner\/name/),
    });
  });

  test("a hook without an address says what to set", async () => {
    const signed = await signedIn();
    expect(await done(signed, { command: "hooks check" })).toMatchObject({
      code: 1,
      error: expect.stringMatching(/set PUBLIC_URL/),
    });
  });

  test("a token is made, shown once, works, and is revoked for good; Redis holds it in the open nowhere", async () => {
    const signed = await signedIn();
    const { document } = await done(signed, { command: "token create", values: { expires: "1h", limit: "50" } });
    expect(document.token).toMatch(/^tain_/);
    expect((await ask("/user", { headers: { authorization: `token ${document.token}` } })).status).toBe(200);
    const { redis, config } = world.ctx;
    for (const key of await redis.keys(`${config.redisPrefix}:command:*`))
      expect(await redis.get(key)).not.toContain(document.token);
    expect((await done(signed, { command: "token revoke", words: [document.id] })).document.revoked).toMatchObject([
      { id: document.id },
    ]);
    const { tokens } = (await view(signed, "tokens")).body;
    expect(tokens[0]).toMatchObject({ id: document.id, hourlyLimit: 50, revokedAt: expect.any(String) });
    expect(JSON.stringify(tokens)).not.toContain(document.token);
  });

  test("a target is added, sent to once more, and removed", async () => {
    const signed = await signedIn();
    const refused = await done(signed, { command: "targets add", words: ["http://127.0.0.1:9/hook"] });
    expect(refused.error).toMatch(/is not on the public Internet/);
    const { document } = await done(signed, {
      command: "targets add",
      words: ["https://ci.example/hook"],
      values: { for: world.first, events: "issues" },
    });
    expect(document.secret).toMatch(/^[0-9a-f]{48}$/);
    expect((await view(signed, "targets")).body.targets).toMatchObject([
      { url: "https://ci.example/hook", for: world.first, state: "on", problem: null },
    ]);
    expect((await view(signed, `sent?target=${document.id}`)).body).toEqual({ sent: [] });
    expect((await done(signed, { command: "targets resend", words: [String(document.id), "7"] })).error).toMatch(
      /was sent no delivery 7/,
    );
    expect((await done(signed, { command: "targets remove", words: [String(document.id)] })).code).toBe(0);
  });

  test("the record of writes is told", async () => {
    const signed = await signedIn();
    const wrote = await ask(`/repos/${world.first}/issues`, {
      method: "POST",
      headers: { authorization: `token ${world.token}`, "user-agent": "test" },
      body: JSON.stringify({ title: NASTY }),
    });
    expect(wrote.status).toBe(201);
    await eventually(async () => {
      const told = await done(signed, { command: "writes list", values: { limit: "5" } });
      expect(told.document.writes).toMatchObject([
        { method: "POST", path: `/repos/${world.first}/issues`, status: 201 },
      ]);
    });
  });

  test("everything is examined, and what is wrong is said with what to do", async () => {
    const signed = await signedIn();
    const { code, error, document } = await done(signed, { command: "doctor" });
    expect({ code, error }).toEqual({ code: 0, error: null });
    expect(document.findings).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ part: "postgres", level: "ok", says: "The schema is this version's", todo: null }),
        expect.objectContaining({ part: "processes", level: "ok", says: expect.stringContaining("running") }),
        expect.objectContaining({ part: "hooks", level: "warning", todo: expect.stringContaining("PUBLIC_URL") }),
      ]),
    );
  });

  test("what tain cannot do, what reads the worker's files, and what is no command is refused before it is asked", async () => {
    const signed = await signedIn();
    for (const body of [
      { command: "up" },
      { command: "migrate" },
      { command: "constructor" },
      { command: "targets add", words: ["https://ci.example/"], values: { "secret-file": "/etc/passwd" } },
      { command: "remove", words: [world.first], flags: ["json"] },
      { command: "remove", words: world.first },
      { command: "remove", words: [7] },
      { command: "remove", words: ["x".repeat(3_000)] },
      { command: "token create", values: { login: ["x"] } },
      [],
      null,
    ])
      expect([body, (await command(signed, body as object)).status]).toEqual([body, 422]);
    // A word that looks like an option stays a word.
    const told = await done(signed, { command: "remove", words: ["--purge"] });
    expect(told.error).toMatch(/^--purge is neither owner\/name nor/);
  });

  test("a command that none of our processes asked for is not done", async () => {
    const { queues } = world.ctx;
    const forged = randomUUID();
    const real = await askCommand(world.ctx, { name: "writes list", args: [] });
    const job = await queues.commands.getJob(real);
    for (const sealed of [
      "",
      "AAAA",
      Buffer.from('{"name":"token create","args":[],"askedAt":0}').toString("base64"),
      job?.data.sealed ?? "",
    ])
      await queues.commands.add("command", { id: forged, sealed });
    const signed = await signedIn();
    await eventually(async () =>
      expect(await queues.commands.getJobCounts("waiting", "active")).toEqual({ waiting: 0, active: 0 }),
    );
    expect((await view(signed, `commands/${forged}`)).status).toBe(410);
    const tokens = await world.ctx.db.query(sql`select 1 from api_tokens where revoked_at is null`);
    expect(tokens).toHaveLength(1);
  });
});

test("without a worker a command waits, and says for what; without Redis nothing is asked for", async () => {
  await using mirror = await openMirror({ env: { OPERATOR_TOKEN: OPERATOR } });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signed = await ask("/-/session", { method: "POST", headers: form, body: `token=${OPERATOR}` }, mirror.url);
  const cookie = (signed.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const word =
    /name="word" content="([\w-]+)"/.exec(await (await ask("/-/", { headers: { cookie } }, mirror.url)).text())?.[1] ??
    "";
  const headers = { cookie, "x-tain-session-word": word, "content-type": "application/json" };
  const asked = await ask(
    "/-/operator/commands",
    { method: "POST", headers, body: '{"command":"hooks check"}' },
    mirror.url,
  );
  const { id } = (await asked.json()) as { id: string };
  const waiting = await ask(`/-/operator/commands/${id}`, { headers }, mirror.url);
  expect(await waiting.json()).toMatchObject({
    state: "waiting",
    waitsFor: "No worker is running: it waits until one does",
  });

  const storeless = await mirror.openSibling({ REDIS_URL: "redis://127.0.0.1:1" });
  const refused = await ask(
    "/-/operator/commands",
    { method: "POST", headers, body: '{"command":"hooks check"}' },
    storeless,
  );
  expect(refused.status).toBe(503);
  expect(await refused.json()).toEqual({
    message: expect.stringMatching(/^Redis cannot be reached.*Nothing was done$/),
  });
  // The page is readable all the same.
  expect((await ask("/-/operator/fleet", { headers }, storeless)).status).toBe(200);
  // An hour that is not known is no empty hour.
  const quota = await ask("/-/operator/quota", { headers }, storeless);
  expect(await quota.json()).toMatchObject({ history: null, spent: null });
});
