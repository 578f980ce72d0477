import { afterAll, beforeAll, expect, test } from "vitest";
import type { Transaction } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { askForRedelivery, askForSending } from "../../src/events/asks.ts";
import { postpone, pruneCursors } from "../../src/events/cursors.ts";
import { recordEvents } from "../../src/events/log.ts";
import { TargetClient } from "../../src/events/post.ts";
import { listSent } from "../../src/events/sent.ts";
import { changeTarget, createTarget, findTarget, removeTarget } from "../../src/events/target.ts";
import { sendTo } from "../../src/events/turn.ts";
import { keepMade } from "../../src/inbox/made.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { openTargetServer } from "./target-server.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({ env: { TARGETS_ALLOWED: "127.0.0.1" } });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const addTarget = async (url: string, active = true) => {
  const given = { url, contentType: "json", insecureSsl: false, secret: null, events: ["*"] } as const;
  const scope = { kind: "everything", id: 0 } as const;
  return (await createTarget(world.ctx, { ...given, active, rewriteTo: null, scope, madeBy: "operator" })).id;
};

/** Whether a statement waits for a lock of this kind. */
const isLocked = (kind: string) => async () =>
  (await world.ctx.db.count(sql`select from pg_stat_activity where datname = current_database()
    and wait_event_type = 'Lock' and wait_event = ${kind}`)) > 0;

/** Writes an event of each of these repositories into the log, as the worker does when it applies deliveries. */
async function write(tx: Transaction, repositoryIds: readonly number[]): Promise<void> {
  const foundAt = world.ctx.clock.now();
  const made = repositoryIds.map((repositoryId) => ({ event: "star", action: "created", repositoryId, foundAt }));
  const payload = Buffer.from("{}");
  const ids = await keepMade(
    tx,
    made.map((one) => ({ ...one, payload })),
    foundAt,
  );
  const told = ids.map((deliveryId, at) => ({ deliveryId, repositoryId: repositoryIds[at] ?? 0 }));
  await recordEvents(
    tx,
    told.map((one) => ({ ...one, ownerId: null, isPrivate: false, about: null })),
  );
}

test.each([
  ["is switched on", false, (id: number) => changeTarget(world.ctx, id, { active: true })],
  ["is removed", true, (id: number) => removeTarget(world.ctx, id)],
  ["is put off", true, (id: number) => postpone(world.ctx, id, new Date())],
])(
  "a target %s while events of several repositories are written for it, and nobody waits in a circle",
  async (_, active, change) => {
    const { db } = world.ctx;
    const id = await addTarget("http://127.0.0.1:9/", active);
    // In this order they lie in the table.
    for (const repositoryId of [3, 2, 1])
      await db.query(sql`insert into target_cursors (target_id, repository_id, done_id, wanted_id)
      values (${id}, ${repositoryId}, 0, 1)`);
    const lock = (repositoryId: number) =>
      sql`select from target_cursors where target_id = ${id} and repository_id = ${repositoryId} for update`;
    const changing = await db.transaction(async (tx) => {
      await tx.query(lock(1));
      let isOver = false;
      const changing = change(id)
        .catch((error: unknown) => error)
        .finally(() => {
          isOver = true;
        });
      await until("it waits, or is over", async () => isOver || (await isLocked("transactionid")()));
      for (const repositoryId of [2, 3]) await tx.query(lock(repositoryId));
      return { changing };
    });
    expect(await changing.changing).not.toBeInstanceOf(Error);
    await removeTarget(world.ctx, id);
  },
);

test("an event is written while a target that should hear of it is removed", async () => {
  const { db } = world.ctx;
  const id = await addTarget("http://127.0.0.1:9/");
  await db.query(sql`create function wait_for_removal() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(42); return null; end $$`);
  // The writer has found the target, and waits here.
  await db.query(sql`create trigger wait_for_removal before insert on target_cursors
    for each statement execute function wait_for_removal()`);
  const { writing } = await db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(42)`);
    const writing = db.transaction((other) => write(other, [7])).catch((error: unknown) => error);
    await until("an event is being written", isLocked("advisory"));
    expect(await removeTarget(world.ctx, id)).toBe(true);
    return { writing };
  });
  expect(await writing).not.toBeInstanceOf(Error);
  await db.query(sql`drop trigger wait_for_removal on target_cursors`);
  expect(await db.count(sql`select from events where repository_id = 7 and id is not null`)).toBe(1);
  await pruneCursors(world.ctx);
  expect(await db.count(sql`select from target_cursors`)).toBe(0);
});

test("a target is removed while it is being asked, and the turn ends well", async () => {
  const { db } = world.ctx;
  await using server = await openTargetServer();
  const id = await addTarget(server.url);
  await askForSending(world.ctx, id, {
    event: "star",
    payload: Buffer.from("{}"),
    deliveryId: null,
    repositoryId: null,
  });
  // It is removed as soon as the request has arrived.
  server.answer = (_heard, reply) => removeTarget(world.ctx, id).then(() => reply.end());
  const client = new TargetClient(world.ctx);
  await sendTo(world.ctx, client, id, AbortSignal.timeout(60_000));
  expect(server.heard).toHaveLength(1);
  expect(await db.count(sql`select from target_deliveries where target_id = ${id}`)).toBe(0);
  await client.close();
});

test("what is asked of a target that is removed at that moment is not asked, and whoever asks is told", async () => {
  const { db } = world.ctx;
  await using server = await openTargetServer();
  const id = await addTarget(server.url);
  const ask = { event: "star", payload: Buffer.from("{}"), deliveryId: null, repositoryId: null };
  expect(await askForSending(world.ctx, id, ask)).toBe(true);
  const client = new TargetClient(world.ctx);
  await sendTo(world.ctx, client, id, AbortSignal.timeout(60_000));
  await client.close();
  const [sent] = await listSent(world.ctx, id, { limit: 1 });
  const { asking } = await db.transaction(async (tx) => {
    await tx.query(sql`delete from targets where id = ${id}`);
    const asking = [askForSending(world.ctx, id, ask), askForRedelivery(world.ctx, id, sent?.id ?? 0)];
    // Not to be left alone until they are awaited below.
    for (const one of asking) one.catch(() => {});
    await until(
      "both wait for the removal",
      async () =>
        (await db.count(sql`select from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and query like 'insert into target_asks%'`)) === 2,
    );
    return { asking };
  });
  expect(await Promise.all(asking)).toEqual([false, false]);
  // A later ask is refused, too.
  expect(await askForSending(world.ctx, id, ask)).toBe(false);
  expect(await db.count(sql`select from target_asks where target_id = ${id}`)).toBe(0);
});

test("a target is removed while a ping to it is being noted", async () => {
  const { db } = world.ctx;
  await using server = await openTargetServer();
  const given = { url: server.url, contentType: "json", insecureSsl: false, secret: null, events: ["*"] } as const;
  const scope = { kind: "everything", id: 0 } as const;
  const { id } = await createTarget(world.ctx, { ...given, active: true, rewriteTo: null, scope, madeBy: "operator" });
  const ping = { event: "ping", payload: Buffer.from("{}"), deliveryId: null, repositoryId: null };
  await askForSending(world.ctx, id, ping);
  // The worker that notes a request waits here: it has dropped the ask, and has not locked the target.
  await db.query(sql`create function wait_in_test() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(41); return null; end $$`);
  await db.query(sql`create trigger wait_in_test before update of accepted_at on targets
    for each statement execute function wait_in_test()`);
  const locked = (kind: string) => async () =>
    (await db.count(sql`select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and wait_event = ${kind}`)) > 0;

  const client = new TargetClient(world.ctx);
  const { sending, removing } = await db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(41)`);
    const sending = sendTo(world.ctx, client, id, AbortSignal.timeout(60_000)).catch((error: unknown) => error);
    await until("the ping is being noted", locked("advisory"));
    const removing = removeTarget(world.ctx, id).catch((error: unknown) => error);
    await until("the removal waits for it", locked("transactionid"));
    return { sending, removing };
  });

  expect(await sending).not.toBeInstanceOf(Error);
  expect(await removing).toBe(true);
  expect(await findTarget(world.ctx, id)).toBeNull();
  expect(server.pings).toHaveLength(1);
  await client.close();
});
