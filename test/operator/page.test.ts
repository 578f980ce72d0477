import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { noteQuota, quotaHistory } from "../../src/upstream/quota/history.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";

import { NASTY, OPERATOR, type OperatorWorld, openOperatorWorld, type Signed, WRONG_LOGINS } from "./operator-world.ts";

let at: OperatorWorld;
beforeAll(async () => {
  at = await openOperatorWorld();
});
afterAll(() => at[Symbol.asyncDispose]());

describe("signing in", () => {
  test("the cookie is not the token, is kept from scripts and other sites, and ends", async () => {
    const answer = await at.signIn(OPERATOR);
    const cookie = answer.headers.get("set-cookie") ?? "";
    expect(cookie).not.toContain(OPERATOR);
    expect(cookie.split("; ").slice(1)).toEqual(["Path=/-/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]);
    const behindTls = await at.signIn(OPERATOR, { ...at.asSomebody(), "x-forwarded-proto": "https" });
    expect(behindTls.headers.get("set-cookie")).toMatch(/; Secure$/);
  });

  test("a session is over after its time, after signing out in every process, and with another token", async () => {
    const [first, second] = [await at.signedIn(), await at.signedIn()];
    const sibling = await at.world.openSibling({ OPERATOR_TOKEN: OPERATOR });
    const other = await at.world.openSibling({ OPERATOR_TOKEN: "another-token-of-the-operator" });
    const statusAt = async (url: string, { cookie }: Signed) =>
      (await at.ask("/-/operator/tokens", { headers: { cookie } }, url)).status;
    expect(await statusAt(sibling, first)).toBe(200);
    expect(await statusAt(other, first)).toBe(401);

    const form = { cookie: first.cookie, "content-type": "application/x-www-form-urlencoded", origin: at.world.url };
    const out = (word: string) => at.ask("/-/session/end", { method: "POST", headers: form, body: `word=${word}` });
    expect((await out("wrong")).status).toBe(403);
    expect(await statusAt(at.world.url, first)).toBe(200);
    const ended = await out(first.word);
    expect(ended.headers.get("set-cookie")).toMatch(/^tain_operator=; Path=\/-\/; Max-Age=0;/);
    expect([
      await statusAt(at.world.url, first),
      await statusAt(sibling, first),
      await statusAt(at.world.url, second),
    ]).toEqual([401, 401, 200]);

    at.world.advance(12 * 3_600_000);
    onTestFinished(() => at.world.advance(-12 * 3_600_000));
    expect(await statusAt(at.world.url, second)).toBe(401);
    expect(await (await at.ask("/-/", { headers: { cookie: second.cookie } })).text()).toContain(
      "Operator&#39;s token".replace("&#39;", "'"),
    );
  });

  test("a cookie that was changed in any part is none", async () => {
    const { cookie } = await at.signedIn();
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
      expect((await at.view({ cookie: `tain_operator=${value}` }, "tokens")).status).toBe(401);
  });

  test("wrong tokens are counted apart from those of the API, and an address that showed too many is told so", async () => {
    const somebody = at.asSomebody();
    const statuses: number[] = [];
    for (let n = 0; n < WRONG_LOGINS; n++) statuses.push((await at.signIn("wrong", somebody)).status);
    expect(statuses).toEqual(Array.from({ length: WRONG_LOGINS }, () => 401));
    const locked = await at.signIn(OPERATOR, somebody);
    expect(locked.status).toBe(403);
    expect(Number(locked.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await locked.text()).toMatch(/Too many wrong tokens came from your address\. Try again in \d+ seconds\./);
    const api = await at.ask("/user", { headers: { authorization: `token tain_${"0".repeat(40)}`, ...somebody } });
    // Callers' tokens are counted apart, so that neither door closes the other.
    expect(api.status).toBe(401);
    expect((await at.signIn(OPERATOR)).status).toBe(303);
  });

  test("another site's form signs nobody in", async () => {
    for (const headers of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const answer = await at.signIn(OPERATOR, { ...at.asSomebody(), ...headers });
      expect([answer.status, answer.headers.get("set-cookie")]).toEqual([403, null]);
    }
    expect((await at.signIn(OPERATOR, { ...at.asSomebody(), origin: at.world.url })).status).toBe(303);
  });

  test("a body that is no form, and one that is too large, are refused", async () => {
    const send = (type: string, body: string) =>
      at.ask("/-/session", { method: "POST", headers: { "content-type": type, ...at.asSomebody() }, body });
    expect((await send("application/json", "{}")).status).toBe(415);
    expect((await send("application/x-www-form-urlencoded", `token=${"x".repeat(5_000)}`)).status).toBe(413);
  });

  test("without OPERATOR_TOKEN the page says in words what to set, and nothing opens it", async () => {
    await using mirror = await openMirror();
    const page = await at.ask("/-/", {}, mirror.url);
    expect(page.status).toBe(403);
    expect(await page.text()).toMatch(/<code>OPERATOR_TOKEN<\/code> is not set/);
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const tried = await at.ask("/-/session", { method: "POST", headers: form, body: "token=" }, mirror.url);
    expect([tried.status, tried.headers.get("set-cookie")]).toEqual([403, null]);
    expect((await at.ask("/-/operator/fleet", {}, mirror.url)).status).toBe(401);
  });
});

describe("what guards the page", () => {
  test("the policy allows no script or style in the page, nothing of others, and no frame", async () => {
    const { cookie } = await at.signedIn();
    for (const [path, headers] of [
      ["/-/", { cookie }],
      ["/-/", {}],
      ["/-/browse", {}],
      ["/-/files/page.js", {}],
    ] as const) {
      const answer = await at.ask(path, { headers });
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
      if (path === "/-/files/page.js") continue;
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
      const answer = await at.ask(`/-/files/${name}`);
      expect([name, answer.status]).toEqual([name, 200]);
      expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
      const again = await at.ask(`/-/files/${name}`, {
        headers: { "if-none-match": answer.headers.get("etag") ?? "" },
      });
      expect([again.status, await again.text()]).toEqual([304, ""]);
      for (const [, next = ""] of (await answer.text()).matchAll(/from "\.\/([\w.-]+)"/g)) await walk(next);
    };
    await walk("page.js");
    await walk("browse.js");
    expect(seen.size).toBeGreaterThan(20);
    expect((await at.ask("/-/files/page.css")).headers.get("content-type")).toBe("text/css; charset=utf-8");
    for (const name of ["tsconfig.json", "..%2froutes.ts", "nothing.js"])
      expect((await at.ask(`/-/files/${name}`)).status).toBe(404);
  });

  test("nothing is told or done without a session, and the API's tokens open nothing", async () => {
    const strangers = [{}, { authorization: `token ${at.world.token}` }, { authorization: `Bearer ${OPERATOR}` }];
    for (const headers of strangers) {
      for (const path of [
        "home",
        "fleet",
        "quota",
        "deliveries",
        "delivery",
        "queues",
        "hooks",
        "targets",
        "sent",
        "audits",
        "tokens",
        "commands/x",
        "x",
      ])
        expect([path, (await at.ask(`/-/operator/${path}`, { headers })).status]).toEqual([path, 401]);
      const asked = await at.ask("/-/operator/commands", {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: '{"command":"token create"}',
      });
      expect(asked.status).toBe(401);
    }
  });

  test("a changing request needs the session's word, our own origin, and JSON", async () => {
    const signed = await at.signedIn();
    const other = await at.signedIn();
    const body = { command: "remove", words: [at.world.first] };
    for (const headers of [
      { "x-tain-session-word": "" },
      { "x-tain-session-word": other.word },
      { "x-tain-session-word": `${signed.word}x` },
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ])
      expect([headers, (await at.command(signed, body, headers)).status]).toEqual([headers, 403]);
    expect((await at.command(signed, body, { "content-type": "text/plain" })).status).toBe(415);
    expect(await at.world.ctx.queues.commands.getJobCounts("waiting", "active", "delayed")).toEqual({
      waiting: 0,
      active: 0,
      delayed: 0,
    });
    expect((await at.view(signed, "fleet")).body.repositories).toMatchObject([{ state: "live" }]);
  });
});

describe("what it shows", () => {
  test("an unchanged view is a 304, and a changed one is not", async () => {
    const signed = await at.signedIn();
    const before = await at.view(signed, "tokens");
    expect(before.headers.get("cache-control")).toBe("private, no-cache");
    const tag = { "if-none-match": before.headers.get("etag") ?? "" };
    expect((await at.view(signed, "tokens", tag)).status).toBe(304);
    await at.world.ctx.db.query(
      sql`update api_tokens set last_used_at = last_used_at - interval '1 hour', user_id = user_id + 1`,
    );
    const after = await at.view(signed, "tokens", tag);
    expect(after.status).toBe(200);
    await at.world.ctx.db.query(sql`update api_tokens set user_id = user_id - 1`);
  });

  test("what others wrote is told as it is, as JSON that no browser takes for markup", async () => {
    const signed = await at.signedIn();
    const { guid } = await at.made({ title: NASTY }, { reason: NASTY });
    const found = await at.view(signed, `deliveries?${new URLSearchParams({ search: guid })}`);
    expect(found.body.deliveries).toMatchObject([{ guid, reason: NASTY }]);
    expect(found.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(found.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("no module makes markup of a text", async () => {
    const page = await (await at.ask("/-/files/page.js")).text();
    const names = [...page.matchAll(/from "\.\/([\w.]+)"/g)].map(([, name = ""]) => name);
    for (const name of [...names, "page.js", "chart.js", "plot.js", "table.js"])
      expect(await (await at.ask(`/-/files/${name}`)).text()).not.toMatch(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write\(|DOMParser|\beval\b/,
      );
  });

  test("deliveries are found by their status and by parts of their GUID, event and reason; wildcards are letters", async () => {
    const signed = await at.signedIn();
    const first = await at.made({}, { reason: "the moon was 100 % full" });
    await at.made({}, { reason: "the moon was new", status: "ignored" });
    const guids = async (asked: Record<string, string>) =>
      (await at.view(signed, `deliveries?${new URLSearchParams(asked)}`)).body.deliveries.map(
        ({ guid }: { guid: string }) => guid,
      );
    expect(await guids({ search: "MOON was", status: "failed" })).toEqual([first.guid]);
    expect(await guids({ search: "100 % full" })).toEqual([first.guid]);
    expect(await guids({ search: "moon%full" })).toEqual([]);
    expect(await guids({ search: first.guid.slice(0, 13) })).toEqual([first.guid]);
    expect(await guids({ search: "star.created", limit: "2" })).toHaveLength(2);
    expect((await at.view(signed, "deliveries?status=odd")).status).toBe(400);
  });

  test("the hour of the quota is noted once for all processes, forgets what is older, and says who spent it", async () => {
    const signed = await at.signedIn();
    const { ctx } = at.world;
    const ctxAt = (ago: number) => ({ ...ctx, clock: { now: () => new Date(Date.now() - ago) } });
    // Noting waits half a second for Redis, and a busy machine may take longer. A sample that is then noted twice does
    // no harm, because the history keeps only so many.
    const noted = (ago: number) => eventually(() => noteQuota(ctxAt(ago)));
    await noted(2 * 3_600_000);
    for (let n = 0; n < 245; n++) await noted((245 - n) * 10_000);
    await eventually(async () => expect(await quotaHistory(ctx)).toHaveLength(241));
    await ctx.upstream.get(`/repos/${at.world.first}/labels`, { priority: "audit", caller: "u77" });
    await eventually(async () => {
      const { spent, history, quota } = (await at.view(signed, "quota")).body;
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
    const signed = await at.signedIn();
    expect((await at.view(signed, "hooks")).body.hooks).toMatchObject([
      { repository: at.world.first, hookId: null, missed: 0 },
    ]);
    expect((await at.view(signed, "audits")).body).toMatchObject({ audits: [], health: { state: "problem" } });
    expect((await at.view(signed, "targets")).body).toMatchObject({ targets: [] });
    expect((await at.view(signed, "fleet")).body).toMatchObject({
      problems: [],
      repositories: [{ state: "live" }],
      queues: { commands: { failed: 0 } },
    });
    expect((await at.view(signed, "sent?target=x")).status).toBe(400);
    expect((await at.view(signed, "nothing")).status).toBe(404);
  });
});
