/** The log of events: what is placed in it when, for how long it is kept, and whom it wakes. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { wakeDue } from "../../src/events/log.ts";
import { listSent } from "../../src/events/sent.ts";
import { changeTarget } from "../../src/events/target.ts";
import { pruneDeliveries } from "../../src/inbox/prune.ts";
import { until } from "../support/patience.ts";
import type { TestWorld } from "../support/world.ts";
import { SendingWorld } from "./sending-world.ts";

let sending: SendingWorld;
let world: TestWorld;
beforeAll(async () => {
  sending = await SendingWorld.open();
  ({ world } = sending);
});
afterAll(() => sending?.[Symbol.asyncDispose]());
afterEach(() => sending.clear());

test("an event wakes its target, though others wait that nobody sends", async () => {
  const server = await sending.openServer();
  await sending.register(server.url);
  await world.ctx.queues.targets.pause();
  await sending.starred(sending.at(0), 1);
  await until(
    "it waits",
    async () => (await world.ctx.db.query(sql`select from target_cursors where wanted_id > done_id`)).length === 1,
  );
  await world.ctx.queues.targets.obliterate({ force: true });
  await sending.starred(sending.at(0), 2);
  await server.hears(2);
  expect(server.heard.map(({ payload }) => payload.number)).toEqual([1, 2]);
});

test("an event that nothing holds up gets its place, though those of a thousand repositories are held up", async () => {
  const { db, clock } = world.ctx;
  const now = clock.now();
  try {
    await db.query(sql`insert into deliveries (hook_id, guid, event, repository_id, payload, received_at)
      select 77, 'pending ' || n, 'star', n, '{}', ${now} from generate_series(1, 1000) as n`);
    await db.query(sql`insert into events (repository_id, guid, delivery_id, event, received_at)
      select repository_id, 'held', uuidv7(), event, received_at + interval '1 s' from deliveries where hook_id = 77
      union all select ${sending.at(0).id}::bigint, 'free', uuidv7(), 'star', ${now}::timestamptz`);
    await wakeDue(world.ctx);
    const placed = sql`select guid from events where id is not null and guid in ('held', 'free')`;
    expect(await db.query(placed)).toEqual([{ guid: "free" }]);
    await db.query(sql`update deliveries set status = 'failed' where hook_id = 77`);
    // A process that stops places no more of them.
    expect(await wakeDue(world.ctx, AbortSignal.abort())).toBe(0);
    expect(await db.query(placed)).toHaveLength(1);
    await wakeDue(world.ctx);
    expect(await db.query(placed)).toHaveLength(1_001);
  } finally {
    await db.query(sql`delete from events where guid in ('held', 'free')`);
    await db.query(sql`delete from deliveries where hook_id = 77`);
  }
});

test("what a target still has to hear of is not pruned, and is once it has heard it", async () => {
  const server = await sending.openServer();
  server.answer = (_, reply) => reply.writeHead(500).end();
  const id = await sending.register(server.url, { repository: sending.at(0) });
  const guid = await sending.starred(sending.at(0), 1);
  await server.hears(1);
  await until("the failure is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 1);
  const kept = async () => (await world.ctx.db.query(sql`select from deliveries where guid = ${guid}`)).length;
  const week = { ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + 8 * 86_400_000) } };
  await pruneDeliveries(week);
  expect(await kept()).toBe(1);
  server.answer = null;
  world.advance(60_000);
  await wakeDue(world.ctx);
  await server.hears(2);
  await until("it is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 2);
  await pruneDeliveries(week);
  expect(await kept()).toBe(0);
  expect(await world.ctx.db.query(sql`select from events where guid = ${guid}`)).toEqual([]);
});

test("what is no longer kept for a target that was disabled for long is passed over", async () => {
  const server = await sending.openServer();
  const id = await sending.register(server.url, { repository: sending.at(0) });
  await world.ctx.db.query(
    sql`update targets set disabled_at = now() - interval '30 days', problem = 'it was away' where id = ${id}`,
  );
  await sending.starred(sending.at(0), 1);
  await world.settle();
  const month = { ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + 30 * 86_400_000) } };
  await pruneDeliveries(month);
  const waiting = () =>
    world.ctx.db.count(sql`select from target_cursors where target_id = ${id} and wanted_id > done_id`);
  expect(await waiting()).toBe(1);
  await changeTarget(world.ctx, id, { active: true });
  await wakeDue(world.ctx);
  await until("nothing waits", async () => (await waiting()) === 0);
  await sending.starred(sending.at(0), 2);
  await server.hears(1);
  expect(server.heard.map(({ payload }) => payload.number)).toEqual([2]);
});

test("without any target the log is written, and nothing waits for anybody", async () => {
  await world.settle();
  const count = async (table: "events" | "target_cursors") =>
    (await world.ctx.db.query<{ n: number }>(sql`select count(*)::int as n from ${sql.identifier(table)}`))[0]?.n ?? 0;
  const before = await count("events");
  await sending.starred(sending.at(0), 1);
  await world.settle();
  expect(await count("events")).toBe(before + 1);
  expect(await count("target_cursors")).toBe(0);
});
