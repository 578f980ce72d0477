import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import {
  type ListedAct,
  listActs,
  noteAct,
  pruneAuditLog,
  RefusalCounts,
  recordAct,
} from "../../src/work/audit-log.ts";
import { tainOn } from "../cli/tain-on.ts";
import { askAt } from "../support/asking.ts";
import { OPERATOR, type OperatorWorld, openOperatorWorld } from "./operator-world.ts";

let at: OperatorWorld;
beforeAll(async () => {
  at = await openOperatorWorld();
});
afterAll(() => at[Symbol.asyncDispose]());

const entries = async (action?: string): Promise<ListedAct[]> =>
  await listActs(at.world.ctx, { limit: 1_000, ...(action === undefined ? {} : { action }) });

test("hooks, tokens, commands, exports, sign-ins and refusals are entered with who, what and how it ended, and no secret", async () => {
  const { world } = at;
  const made = await tainOn(world, ["token", "create", "--permissions", "hooks:write", "--json"]);
  const { token, id } = made.json;
  const hooks = `/repos/${world.first}/hooks`;
  const secret = "a secret of the hook's";
  const config = { url: "https://ci.example.com/key-in-the-path", secret, content_type: "json" };
  const created = await askAt(world.url, "POST", hooks, { token, body: JSON.stringify({ config, events: ["push"] }) });
  expect(created.status).toBe(201);
  const hookId = String((created.body as { id: number }).id);
  await askAt(world.url, "PATCH", `${hooks}/${hookId}`, { token, body: '{"active":false}' });
  await askAt(world.url, "DELETE", `${hooks}/${hookId}`, { token });
  const exported = await tainOn(world, ["hooks", "secret", world.first]);
  const signed = await at.signedIn();
  await at.done(signed, { command: "token revoke", words: [token] });
  await at.done(signed, { command: "targets enable", words: ["999999"] });

  const own = { actorKind: "own", actor: id, object: hookId, outcome: "done" };
  expect((await entries("hook")).map(({ action }) => action)).toEqual(["hook.delete", "hook.change", "hook.create"]);
  for (const entry of await entries("hook")) expect(entry).toMatchObject(own);
  expect(await entries("token.create")).toMatchObject([{ actorKind: "terminal", object: id, outcome: "done" }]);
  expect(await entries("token.revoke")).toMatchObject([{ actorKind: "operator", object: id, outcome: "done" }]);
  expect(await entries("command.hooks.secret")).toMatchObject([
    { actorKind: "terminal", arguments: [world.first], outcome: "done" },
  ]);
  const [signIn] = await entries("session.sign_in");
  expect(signIn).toMatchObject({
    actorKind: "operator",
    address: expect.stringMatching(/^192\.0\.\d\./),
    outcome: "done",
  });
  expect(await entries("command.token.revoke")).toMatchObject([
    {
      actorKind: "operator",
      actor: signIn?.actor,
      address: "127.0.0.1",
      arguments: ["--", "[redacted]"],
      outcome: "done",
    },
  ]);
  expect(await entries("command.targets.enable")).toMatchObject([{ outcome: "failed", arguments: ["--", "999999"] }]);

  await askAt(world.url, "GET", "/user", { token: `${token.slice(0, -2)}xx` });
  await fetch(`${world.url}/-/session`, { method: "POST", body: new URLSearchParams({ token: "a wrong one" }) });
  await world.restart({});
  expect(await entries("refusal.token")).toMatchObject([{ actorKind: "stranger", address: "127.0.0.1", times: 1 }]);
  expect(await entries("refusal.sign_in")).toMatchObject([{ outcome: "refused", times: 1 }]);

  const listed = await tainOn(world, ["audit-log", "--action", "hook", "--actor", id, "--since", "1h"]);
  expect(listed.stdout).toMatch(new RegExp(`own mirror-owner +hook\\.create +${hookId} +done`));
  const all = JSON.stringify(await at.world.ctx.db.query(sql`select * from audit_log`));
  for (const text of [token, secret, "key-in-the-path", exported.stdout.trim(), OPERATOR, "a wrong one"])
    expect(all).not.toContain(text);
});

test("what cannot be entered is not done; a failure is entered as one", async () => {
  const { ctx } = at.world;
  const act = { actor: { kind: "stranger" }, action: "hook.create" } as const;
  let done = 0;
  const odd = { ...act, action: "Not An Action" };
  await expect(recordAct(ctx, odd, async () => (done += 1))).rejects.toThrow(/audit_log_action_check/);
  expect(done).toBe(0);
  const failing = async () => {
    throw new Error("it broke");
  };
  await expect(recordAct(ctx, { ...act, action: "hook.break" }, failing)).rejects.toThrow("it broke");
  expect(await entries("hook.break")).toMatchObject([{ outcome: "failed" }]);
});

test("a storm of refusals makes a bounded number of rows, none is uncounted, and rows of other kinds stay", async () => {
  const { ctx } = at.world;
  const others = (await entries()).filter(({ action }) => !action.startsWith("refusal.")).length;
  const refusals = new RefusalCounts(ctx);
  for (let n = 0; n < 5_000; n += 1) refusals.count("refusal.storm", `10.0.${n % 250}.${n % 7}`);
  await refusals.flush();
  const rows = await entries("refusal.storm");
  expect(rows).toHaveLength(21);
  expect(rows.reduce((sum, { times }) => sum + times, 0)).toBe(5_000);
  expect(await pruneAuditLog(ctx, undefined, 20)).toBeGreaterThan(0);
  expect(await entries("refusal")).toHaveLength(20);
  expect((await entries()).filter(({ action }) => !action.startsWith("refusal."))).toHaveLength(others);
  at.world.advance(ctx.config.auditLogRetentionMs + 1_000);
  await noteAct(ctx, { actor: { kind: "stranger" }, action: "session.sign_in" }, "done");
  await pruneAuditLog(ctx);
  expect(await entries()).toHaveLength(1);
});

test("refusals that cannot be entered are counted on, and entered once they can be", async () => {
  const { ctx } = at.world;
  let isAway = true;
  const get = () => {
    if (isAway) throw new Error("Postgres is away");
    return ctx.db.insert;
  };
  const refusals = new RefusalCounts({ ...ctx, db: Object.create(ctx.db, { insert: { get } }) });
  refusals.count("refusal.later", "10.0.0.1");
  await refusals.flush();
  refusals.count("refusal.later", "10.0.0.1");
  isAway = false;
  await refusals.flush();
  expect(await entries("refusal.later")).toMatchObject([{ times: 2, address: "10.0.0.1" }]);
});
