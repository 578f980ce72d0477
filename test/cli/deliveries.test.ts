import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

interface Made {
  guid?: string;
  event?: string;
  status?: string;
  reason?: string | null;
  payload?: object;
  hookId?: number;
  agoMs?: number;
}

/** A delivery in the inbox, as if it had come and been settled. Answers its GUID and id. */
async function made({ ctx }: TestWorld, given: Made = {}): Promise<{ guid: string; id: string }> {
  const {
    guid = randomUUID(),
    event = "star",
    status = "failed",
    reason = null,
    payload = {},
    hookId = 1,
    agoMs = 0,
  } = given;
  const rows = await ctx.db.query<{ id: string }>(sql`
    insert into deliveries (hook_id, guid, event, action, payload, status, attempts, reason, received_at, settled_at)
      values (${hookId}, ${guid}, ${event}, 'created', ${Buffer.from(JSON.stringify(payload))}, ${status}, 8, ${reason}, ${new Date(Date.now() - agoMs)}, now())
      returning id`);
  return { guid, id: rows[0]?.id ?? "" };
}

const HOUR_MS = 3_600_000;

test("the list is filtered by status, event and age, the newest first, and holds no payload", async () => {
  await using world = await openWorld({ workers: false });
  const old = await made(world, { agoMs: 2 * HOUR_MS, reason: "the moon was full" });
  const ignored = await made(world, { status: "ignored", agoMs: 60_000 });
  const young = await made(world, { event: "issues", payload: { secret: "a private word" } });

  const guids = async (...args: string[]) =>
    (await tainOn(world, ["deliveries", "list", "--json", ...args])).json.deliveries.map(
      ({ guid }: { guid: string }) => guid,
    );
  expect(await guids()).toEqual([young.guid, ignored.guid, old.guid]);
  expect(await guids("--status", "failed")).toEqual([young.guid, old.guid]);
  expect(await guids("--since", "1h", "--event=star")).toEqual([ignored.guid]);
  expect(await guids("--limit", "1")).toEqual([young.guid]);
  expect(await guids("--event", "push")).toEqual([]);

  const shown = await tainProcessOn(world, ["deliveries", "list"]);
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  expect(shown.stdout).toMatch(new RegExp(`^2h ago +star.created +- +failed +${old.guid} +the moon was full$`, "m"));
  expect(shown.stdout).not.toContain("private word");
});

test("a delivery is shown by GUID, at every hook that had it, or by id; its payload only when it is asked for", async () => {
  await using world = await openWorld({ workers: false });
  const guid = randomUUID();
  const payload = { zen: "Keep it\u001b[2Jlogically awesome\u009b" };
  const first = await made(world, { guid, hookId: 1, payload, reason: "odd \u001b[31mwords" });
  const second = await made(world, { guid, hookId: 2 });

  const byGuid = await tainOn(world, ["deliveries", "show", guid, "--json"]);
  expect(byGuid.json.deliveries).toMatchObject([
    { id: first.id, hookId: 1, attempts: 8, status: "failed" },
    { id: second.id, hookId: 2 },
  ]);
  expect(byGuid.stdout).not.toContain("zen");
  const byId = await tainOn(world, ["deliveries", "show", first.id, "--payload", "--json"]);
  expect(byId.json.deliveries).toMatchObject([{ guid, payload }]);

  // Control characters in other people's texts do not reach the terminal.
  const text = await tainOn(world, ["deliveries", "show", "--payload", first.id]);
  expect(text.stdout).toContain("logically awesome");
  for (const control of ["\u001b", "\u009b"]) expect(text.stdout).not.toContain(control);

  const nobody = await tainOn(world, ["deliveries", "show", "no-such-guid"]);
  expect(nobody).toEqual({
    code: 1,
    stdout: "",
    json: null,
    stderr:
      "tain: The inbox has no delivery no-such-guid: `tain deliveries list` shows what it has; settled ones are kept for 7d\n",
  });
});

test("a replay says what became of each: what can be applied is, what cannot be fails again and the exit code says so", async () => {
  await using world = await openWorld();
  // "ignored" is a success: nothing of it is followed. The other can never be what its event says.
  const fine = await made(world, { event: "star" });
  const mirrored = 4_711;
  await world.ctx.db.query(sql`
    insert into repositories (id, name, full_name, private, document, seen_at, seen_by_read)
      values (${mirrored}, 'a', 'o/a', false, '{}', now(), true)`);
  await world.ctx.db.query(sql`
    insert into repository_syncs (repository_id, state, added_at) values (${mirrored}, 'live', now())`);
  const repository = { id: mirrored, full_name: "o/a" };
  const broken = await made(world, { event: "issues", payload: { action: "opened", repository, issue: { id: "x" } } });

  const replayed = await tainOn(world, ["deliveries", "replay", fine.guid, broken.id, "--json"]);
  expect(replayed.json).toMatchObject({ replayed: 2, pending: 0, applied: 0, ignored: 1, failed: 1 });
  const outcome = Object.fromEntries(
    replayed.json.deliveries.map((each: { id: string; status: string; reason: string }) => [each.id, each]),
  );
  expect(outcome[fine.id]).toMatchObject({ status: "ignored", reason: "the mirror does not follow star events" });
  expect(outcome[broken.id]).toMatchObject({ status: "failed", reason: expect.stringMatching(/cannot be applied/) });
  expect(replayed.code).toBe(1);

  const again = await tainOn(world, ["deliveries", "replay", "--failed"]);
  expect(again.code).toBe(1);
  expect(again.stdout).toMatch(/^1 delivery replayed: 1 failed$/m);

  await world.ctx.db.query(sql`delete from deliveries where status = 'failed'`);
  expect(await tainOn(world, ["deliveries", "replay", "--failed"])).toMatchObject({
    code: 0,
    stdout: "No delivery has failed: there is nothing to replay\n",
  });
});

test("more deliveries than fit a screen are replayed in batches, and only what did not come through is listed", async () => {
  await using world = await openWorld();
  await world.ctx.db.query(sql`insert into deliveries (hook_id, guid, event, payload, status, received_at, settled_at)
      select 1, 'guid-' || n, 'star', '{}', 'failed', now(), now() from generate_series(1, 1100) n`);
  const { code, json } = await tainOn(world, ["deliveries", "replay", "--failed", "--json"]);
  expect(json).toEqual({ replayed: 1_100, pending: 0, applied: 0, ignored: 1_100, failed: 0, deliveries: [] });
  expect(code).toBe(0);
});

test("one unknown name among several: nothing is replayed", async () => {
  await using world = await openWorld({ workers: false });
  const { guid } = await made(world);
  const { code, stderr } = await tainOn(world, ["deliveries", "replay", guid, "no-such-guid"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^tain: The inbox has no delivery no-such-guid: /);
  const rows = await world.ctx.db.query(sql`select status from deliveries`);
  expect(rows).toEqual([{ status: "failed" }]);
});

test("without workers and without Redis the deliveries are pending, and it is said what they wait for", async () => {
  await using world = await openWorld({ workers: false });
  const { guid } = await made(world);
  const unattended = await tainOn(world, ["deliveries", "replay", guid]);
  expect(unattended.code).toBe(1);
  expect(unattended.stderr).toBe("tain: no worker is running: what is queued waits until `npm start` brings one\n");
  expect(unattended.stdout).toMatch(/^1 delivery replayed: 1 pending$/m);
  expect(await world.ctx.queues.deliveries.getWaitingCount()).toBe(1);

  await world.ctx.db.query(sql`update deliveries set status = 'failed'`);
  const storeless = await tainOn(world, ["deliveries", "replay", guid], { REDIS_URL: "redis://127.0.0.1:1" });
  expect(storeless.code).toBe(1);
  expect(storeless.stderr).toMatch(/^tain: Redis cannot be reached.*: the deliveries are pending, and queued by the/);
  expect(storeless.stdout).toMatch(/^1 delivery replayed: 1 pending$/m);

  const hasty = await tainOn(world, ["deliveries", "replay", "--no-wait", guid]);
  expect(hasty).toMatchObject({ code: 0, stderr: "" });
});
