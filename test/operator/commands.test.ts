/** Commands that the operator's page asks for: what can be done with them, and what cannot. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { askCommand } from "../../src/queues/commands.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";

import { NASTY, OPERATOR, type OperatorWorld, openOperatorWorld } from "./operator-world.ts";

let at: OperatorWorld;
beforeAll(async () => {
  at = await openOperatorWorld();
});
afterAll(() => at[Symbol.asyncDispose]());

describe("what can be done", () => {
  test("a failed delivery is read with its payload and replayed; one that there is not is said in words", async () => {
    const signed = await at.signedIn();
    const { id, guid } = await at.made({ title: NASTY });
    const shown = await at.done(signed, { command: "deliveries show", words: [id], flags: ["payload"] });
    expect(shown.document.deliveries).toMatchObject([{ guid, payload: { title: NASTY } }]);
    const replayed = await at.done(signed, { command: "deliveries replay", words: [id] });
    expect(replayed).toMatchObject({ code: 0, error: null, document: { replayed: 1, ignored: 1 } });
    expect(await at.done(signed, { command: "deliveries replay", words: ["nothing"] })).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^The inbox has no delivery nothing: /),
    });
  });

  test("a repository is added, copied again, compared and removed", async () => {
    const signed = await at.signedIn();
    const [, second] = [...at.world.simulator.world.repositories.values()].map((each) =>
      at.world.simulator.world.fullName(each),
    );
    const added = await at.done(signed, { command: "add", words: [second] });
    expect(added.document.added).toMatchObject([{ repository: second, webhook: "none" }]);
    await eventually(async () =>
      expect((await at.view(signed, "fleet")).body.repositories.map(({ state }: { state: string }) => state)).toEqual([
        "live",
        "live",
      ]),
    );
    expect(await at.done(signed, { command: "backfill", words: [second], flags: ["again", "no-wait"] })).toMatchObject({
      code: 0,
      document: { event: "queued", repositories: [second] },
    });
    await eventually(async () =>
      expect((await at.view(signed, "fleet")).body.repositories.map(({ state }: { state: string }) => state)).toEqual([
        "live",
        "live",
      ]),
    );
    const compared = await at.done(signed, { command: "audit", words: [second], flags: ["repair"] });
    expect(compared.lines.join("\n")).toMatch(/equal to upstream/);
    expect((await at.view(signed, "audits")).body.audits).toMatchObject([{ repository: second, found: 0 }]);
    expect((await at.done(signed, { command: "remove", words: [second] })).document.removed).toMatchObject([
      { repositories: [second], rows: "kept" },
    ]);
    expect(await at.done(signed, { command: "add", words: ["no-slash"] })).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^no-slash is neither owner\/name/),
    });
  });

  test("a hook without an address says what to set", async () => {
    const signed = await at.signedIn();
    expect(await at.done(signed, { command: "hooks check" })).toMatchObject({
      code: 1,
      error: expect.stringMatching(/set PUBLIC_URL/),
    });
  });

  test("a token is made, shown once, works, and is revoked for good; Redis holds it in the open nowhere", async () => {
    const signed = await at.signedIn();
    const { document } = await at.done(signed, {
      command: "token create",
      values: { name: "page-bot", expires: "1h", limit: "50" },
    });
    expect(document.token).toMatch(/^tain_/);
    expect((await at.ask("/user", { headers: { authorization: `token ${document.token}` } })).status).toBe(200);
    const { redis, config } = at.world.ctx;
    for (const key of await redis.keys(`${config.redisPrefix}:command:*`))
      expect(await redis.get(key)).not.toContain(document.token);
    expect((await at.done(signed, { command: "token revoke", words: ["page-bot"] })).document.revoked).toMatchObject([
      { id: document.id },
    ]);
    const { tokens } = (await at.view(signed, "tokens")).body;
    expect(tokens[0]).toMatchObject({
      id: document.id,
      name: "page-bot",
      hourlyLimit: 50,
      revokedAt: expect.any(String),
    });
    expect(JSON.stringify(tokens)).not.toContain(document.token);
  });

  test("a target is added, sent to once more, and removed", async () => {
    const signed = await at.signedIn();
    const refused = await at.done(signed, { command: "targets add", words: ["http://127.0.0.1:9/hook"] });
    expect(refused.error).toMatch(/is not on the public Internet/);
    const { document } = await at.done(signed, {
      command: "targets add",
      words: ["https://ci.example/hook"],
      values: { for: at.world.first, events: "issues" },
    });
    expect(document.secret).toMatch(/^[0-9a-f]{48}$/);
    expect((await at.view(signed, "targets")).body.targets).toMatchObject([
      { url: "https://ci.example/hook", for: at.world.first, state: "on", problem: null },
    ]);
    expect((await at.view(signed, `sent?target=${document.id}`)).body).toMatchObject({ sent: [] });
    expect((await at.done(signed, { command: "targets resend", words: [String(document.id), "7"] })).error).toMatch(
      /was sent no delivery 7/,
    );
    expect((await at.done(signed, { command: "targets remove", words: [String(document.id)] })).code).toBe(0);
  });

  test("the record of writes is told", async () => {
    const signed = await at.signedIn();
    const wrote = await at.ask(`/repos/${at.world.first}/issues`, {
      method: "POST",
      headers: { authorization: `token ${at.world.token}`, "user-agent": "test" },
      body: JSON.stringify({ title: NASTY }),
    });
    expect(wrote.status).toBe(201);
    await eventually(async () => {
      const told = await at.done(signed, { command: "writes list", values: { limit: "5" } });
      expect(told.document.writes).toMatchObject([
        { method: "POST", repository: at.world.first, path: expect.stringMatching(/\/issues$/), status: 201 },
      ]);
    });
  });

  test("everything is examined, and what is wrong is said with what to do", async () => {
    const signed = await at.signedIn();
    const { code, error, document } = await at.done(signed, { command: "doctor" });
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
    const signed = await at.signedIn();
    for (const body of [
      { command: "up" },
      { command: "migrate" },
      { command: "constructor" },
      { command: "targets add", words: ["https://ci.example/"], values: { "secret-file": "/etc/passwd" } },
      { command: "remove", words: [at.world.first], flags: ["json"] },
      { command: "remove", words: at.world.first },
      { command: "remove", words: [7] },
      { command: "remove", words: ["x".repeat(3_000)] },
      { command: "token create", values: { login: ["x"] } },
      [],
      null,
    ])
      expect([body, (await at.command(signed, body as object)).status]).toEqual([body, 422]);
    // A word that looks like an option is still read as a word.
    const told = await at.done(signed, { command: "remove", words: ["--purge"] });
    expect(told.error).toMatch(/^--purge is neither owner\/name nor/);
  });

  test("a command that none of our processes asked for is not done", async () => {
    const { queues } = at.world.ctx;
    const forged = randomUUID();
    const real = await askCommand(at.world.ctx, { name: "writes list", args: [] });
    const job = await queues.commands.getJob(real);
    for (const sealed of [
      "",
      "AAAA",
      Buffer.from('{"name":"token create","args":[],"askedAt":0}').toString("base64"),
      job?.data.sealed ?? "",
    ])
      await queues.commands.add("command", { id: forged, sealed });
    const signed = await at.signedIn();
    await eventually(async () =>
      expect(await queues.commands.getJobCounts("waiting", "active")).toEqual({ waiting: 0, active: 0 }),
    );
    expect((await at.view(signed, `commands/${forged}`)).status).toBe(410);
    const tokens = await at.world.ctx.db.query(sql`select 1 from api_tokens where revoked_at is null`);
    expect(tokens).toHaveLength(1);
  });
});

test("without a worker a command waits, and says for what; without Redis nothing is asked for", async () => {
  await using mirror = await openMirror({ env: { OPERATOR_TOKEN: OPERATOR } });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signed = await at.ask("/-/session", { method: "POST", headers: form, body: `token=${OPERATOR}` }, mirror.url);
  const cookie = (signed.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const word =
    /name="word" content="([\w-]+)"/.exec(
      await (await at.ask("/-/", { headers: { cookie } }, mirror.url)).text(),
    )?.[1] ?? "";
  const headers = { cookie, "x-tain-session-word": word, "content-type": "application/json" };
  const asked = await at.ask(
    "/-/operator/commands",
    { method: "POST", headers, body: '{"command":"hooks check"}' },
    mirror.url,
  );
  const { id } = (await asked.json()) as { id: string };
  const waiting = await at.ask(`/-/operator/commands/${id}`, { headers }, mirror.url);
  expect(await waiting.json()).toMatchObject({
    state: "waiting",
    waitsFor: "No worker is running: it waits until one does",
  });

  const storeless = await mirror.openSibling({ REDIS_URL: "redis://127.0.0.1:1" });
  const refused = await at.ask(
    "/-/operator/commands",
    { method: "POST", headers, body: '{"command":"hooks check"}' },
    storeless,
  );
  expect(refused.status).toBe(503);
  expect(await refused.json()).toEqual({
    message: expect.stringMatching(/^Redis cannot be reached.*Nothing was done$/),
  });
  // The page can be read all the same.
  expect((await at.ask("/-/operator/fleet", { headers }, storeless)).status).toBe(200);
  // An hour whose figures are unknown is not shown as an empty one.
  const quota = await at.ask("/-/operator/quota", { headers }, storeless);
  expect(await quota.json()).toMatchObject({ history: null, spent: null });
});
