/** What a login that reads one repository can hold in Postgres, and what goes on beside it. */
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../../db/announcement.ts";
import { migrate } from "../../db/migrate.ts";
import { sql } from "../../db/sql.ts";
import { LogEnd } from "../../src/events/log-end.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { tainOn } from "../cli/tain-on.ts";
import { blocksOf, readPage } from "../docs/markdown.ts";
import { connectTo } from "../support/database.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const NAME = "mallory_of_one";
const refused = { code: "42501" };

let world: TestWorld;
let address: string;
let login: pg.Client;
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 10, pulls: 2 }),
  });
  await world.mirror(world.first);
  await world.listen(world.first);
  // Rights on a database are not among what the template hands on.
  await migrate(world.ctx.config.databaseUrl);
  const made = await tainOn(world, ["readers", "create", NAME, "--repos", world.first]);
  expect(made.code, made.stderr).toBe(0);
  address = made.stdout.trim();
  login = await connectTo(address);
});
afterAll(async () => {
  await login?.end();
  await tainOn(world, ["readers", "drop", NAME]);
  await world?.[Symbol.asyncDispose]();
});

async function connected(): Promise<AsyncDisposable & { client: pg.Client }> {
  const client = await connectTo(address);
  return { client, [Symbol.asyncDispose]: () => client.end() };
}

test("it names no table, which would lock it, makes none, and has five connections", async () => {
  await using tried = await connected();
  await tried.client.query("set default_transaction_read_only = off");
  for (const statement of [
    "prepare all_events as delete from public.events",
    "create trigger t before insert on public.events execute function suppress_redundant_updates_trigger()",
    "select from public.listeners",
    "select from public.turns for update",
    "create temporary table mine (id integer)",
  ])
    await expect(tried.client.query(statement), statement).rejects.toMatchObject(refused);
  await using more = new AsyncDisposableStack();
  for (const _ of [3, 4, 5]) more.use(await connected());
  await expect(connected()).rejects.toMatchObject({ code: "53300" });
});

test("it holds each advisory lock that was ever asked for, and all others' tables, and nothing waits for it", async () => {
  const { ctx } = world;
  await login.query("begin");
  // Postgres locks what is named by its number, before it asks for the right, and until the transaction's end.
  const { rows } = await login.query<{ id: number }>(
    "select oid::integer as id from pg_class where relkind in ('r', 'S') and relnamespace = 2200",
  );
  expect(rows.length).toBeGreaterThan(50);
  for (const { id } of rows) {
    await login.query("savepoint before");
    await expect(login.query(`select nextval(${id}::regclass)`)).rejects.toThrow();
    await login.query("rollback to before");
  }
  for (const key of [7_241_946, 7_241_947, 7_241_948, 7_241_949])
    await login.query("select pg_advisory_lock_shared($1), pg_advisory_lock($1)", [key]);
  await login.query(`select pg_advisory_lock(hashtextextended(purpose || ' ' || repository_id, 0))
    from tain_v1.repositories, unnest(array['tain events', 'tain write', 'tain events made']) as purpose`);
  const held = await ctx.db.count(sql`
    select from pg_locks l join pg_stat_activity a using (pid) where a.usename = ${NAME} and l.mode = 'RowExclusiveLock'
      and l.relation in ('event_place'::regclass, 'events'::regclass, 'turns'::regclass, 'listeners'::regclass)`);
  expect(held).toBe(4);

  const heard: string[] = [];
  const listening = await listen(ctx.config.databaseUrl, { onText: (one) => heard.push(one), onLost: () => {} });
  const live = world.simulator.startLive({ ratePerSecond: 0, seed: 3 });
  for (let step = 0; step < 10; step++) live.step();
  await world.settle();
  expect(await ctx.db.count(sql`select from deliveries where status not in ('applied', 'ignored')`)).toBe(0);
  expect(await ctx.db.count(sql`select from events where id is not null`)).toBeGreaterThan(0);
  expect(await ctx.db.count(sql`select from events where id is null`)).toBe(0);
  expect(await new LogEnd(ctx.db, Math.random).now()).toMatchObject({ isCertain: true });
  expect(heard.length).toBeGreaterThan(0);
  await listening[Symbol.asyncDispose]();
  expect(await migrate(ctx.config.databaseUrl)).toBeNull();
  await login.query("rollback");
});

test("a superuser takes advisory locks and large objects from it, and Tain needs neither", async () => {
  const { ctx } = world;
  const [block] = blocksOf(readPage("docs/security.md")).filter(({ language }) => language === "sql superuser");
  await login.query("select pg_advisory_unlock_all()");
  const superuser = await connectTo(ctx.config.databaseUrl);
  await superuser.query(block?.text ?? "");
  await superuser.end();
  for (const call of ["pg_advisory_lock(1)", "pg_try_advisory_xact_lock_shared(1, 2)", "lo_create(0)"])
    await expect(login.query(`select ${call}`), call).rejects.toMatchObject(refused);
  const before = await ctx.db.count(sql`select from events where id is not null`);
  const live = world.simulator.startLive({ ratePerSecond: 0, seed: 4 });
  for (let step = 0; step < 10; step++) live.step();
  await world.settle();
  expect(await ctx.db.count(sql`select from events where id is not null`)).toBeGreaterThan(before);
});

test("a transaction waits for no lock without end", async () => {
  const limit = await world.ctx.db.transaction((tx) => tx.query<{ limit: string }>(sql`show lock_timeout`));
  expect(limit).toEqual([{ lock_timeout: "1min" }]);
});
