/** Reads of replicas, on real servers: they show all that was committed before, whatever the replicas do. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import type { ReplicaStanding } from "../../db/replica.ts";
import { Replicas } from "../../db/replicas.ts";
import { sql } from "../../db/sql.ts";
import { StandingsReader } from "../../src/mirror/unchanged/standings.ts";
import { eventually } from "../support/patience.ts";
import { openReplicated, type Replicated } from "../support/replicas.ts";

/** Long enough for a replica of a busy machine that replays, and far from the delay of one that does not. */
const WAIT_MS = 500;

let servers: Replicated;
beforeAll(async () => {
  servers = await openReplicated({ replicas: 1 });
  await servers.primary.query("create table seen (id integer primary key, value integer not null)");
  await servers.primary.query("insert into seen values (1, 0)");
}, 60_000);
afterAll(() => servers?.[Symbol.asyncDispose]());

interface Process {
  writes: Database;
  reads: Database;
  /** How many statements each server has answered, by its name. */
  answers: Map<string, number>;
  standing(): ReplicaStanding | undefined;
}

/** What a web process has open. */
function openProcess(urls = servers.replicas.map(({ url }) => url)): Process {
  const { url } = servers.primary;
  const writes = openDatabase(url);
  const standings = new StandingsReader({ databaseUrl: url, databaseDirectUrl: null });
  const answers = new Map<string, number>();
  const replicas = new Replicas(urls, {
    maxConnections: 4,
    applicationName: "reads",
    statementTimeoutMs: 5_000,
    waitMs: WAIT_MS,
    position: () => standings.position(),
    changed: () => {},
    answered: (by) => answers.set(by, (answers.get(by) ?? 0) + 1),
  });
  onTestFinished(async () => {
    await replicas.close();
    await standings[Symbol.asyncDispose]();
    await writes.close();
  });
  return { writes, reads: writes.readingFrom(replicas), answers, standing: () => replicas.standings()[0] };
}

const READ = sql`select value from seen where id = 1`;
const shownBy = async (db: Database) => (await db.prepared<{ value: number }>(READ))[0]?.value;
/** The latest value that was committed. */
let last = 0;
async function write({ writes }: Process): Promise<number> {
  const value = last + 1;
  await writes.query(sql`update seen set value = ${value} where id = 1`);
  last = value;
  return value;
}
const isRead = (process: Process) => eventually(() => expect(process.standing()?.leftOut).toBeNull());
const isLeftOut = (process: Process, why: RegExp) => eventually(() => expect(process.standing()?.leftOut).toMatch(why));
const byReplica = ({ answers, standing }: Process) => answers.get(standing()?.name ?? "") ?? 0;

test("a replica that keeps up answers, and each read shows what was committed before it was asked", async () => {
  const process = openProcess();
  await isRead(process);
  for (let time = 0; time < 50; time++) {
    if (time % 2 === 0) await write(process);
    expect(await shownBy(process.reads)).toBe(last);
  }
  expect(byReplica(process)).toBeGreaterThan(40);
});

test("while a replica is five seconds behind, reads wait once and then not at all, and show every write", async () => {
  const [replica] = servers.replicas;
  const process = openProcess();
  await isRead(process);
  await replica?.set("recovery_min_apply_delay", "5s");
  try {
    for (let time = 0; time < 20; time++) {
      await write(process);
      expect(await shownBy(process.reads)).toBe(last);
    }
    expect(process.standing()?.leftOut).toMatch(/did not catch up with the primary in 500 ms: \d+ bytes were missing/);
    expect(byReplica(process)).toBeLessThan(20);
  } finally {
    await replica?.set("recovery_min_apply_delay", "0");
  }
  await isRead(process);
  expect(await shownBy(process.reads)).toBe(last);
});

test("a replica whose replay is paused is left out, and read again once it goes on", async () => {
  const [replica] = servers.replicas;
  const process = openProcess();
  await isRead(process);
  await replica?.query("select pg_wal_replay_pause()");
  const written = await write(process);
  expect(await Promise.all(Array.from({ length: 20 }, () => shownBy(process.reads)))).toEqual(Array(20).fill(written));
  await isLeftOut(process, /did not catch up/);
  await replica?.query("select pg_wal_replay_resume()");
  await isRead(process);
  const before = byReplica(process);
  expect(await shownBy(process.reads)).toBe(written);
  expect(byReplica(process)).toBe(before + 1);
});

test("a replica that is killed amid reads fails none of them, and is read again when it has come back", async () => {
  const [replica] = servers.replicas;
  const process = openProcess();
  await isRead(process);
  let isOver = false;
  const wrong: unknown[] = [];
  const reader = async () => {
    while (!isOver) {
      const least = last;
      const value = await shownBy(process.reads).catch((error: unknown) => error);
      if (!(typeof value === "number" && value >= least)) wrong.push(value);
    }
  };
  const readers = Array.from({ length: 4 }, reader);
  for (let time = 0; time < 10; time++) await write(process);
  await replica?.kill();
  for (let time = 0; time < 10; time++) await write(process);
  await isLeftOut(process, /ECONNREFUSED|Connection terminated|shutting down|administrator/);
  await replica?.start();
  await isRead(process);
  for (let time = 0; time < 10; time++) await write(process);
  isOver = true;
  await Promise.all(readers);
  expect(wrong).toEqual([]);
});

test("what is no replica, cannot be reached or says nothing is left out with its reason, and no read fails", async () => {
  const silent = await listening(createServer());
  const primary = openProcess([servers.primary.url]);
  const absent = openProcess(["postgres://u:hidden@127.0.0.1:1/tain"]);
  const mute = openProcess([`postgres://u:hidden@127.0.0.1:${silent}/tain`]);
  await isLeftOut(primary, /takes writes itself/);
  await isLeftOut(absent, /ECONNREFUSED/);
  await isLeftOut(mute, /timeout/i);
  for (const process of [primary, absent, mute]) expect(await shownBy(process.reads)).toBe(last);
  expect(absent.standing()?.name).toBe("127.0.0.1:1/tain");
});

test("a statement that the replica cancels at its limit is not repeated by the primary", async () => {
  const process = openProcess();
  await isRead(process);
  const gone = new AbortController();
  const asked = process.reads.until(gone.signal).query(sql`select pg_sleep(20)`);
  gone.abort();
  await expect(asked).rejects.toThrow();
  expect(process.answers.get("primary") ?? 0).toBe(0);
  await expect(process.reads.query(sql`select 1 / 0`)).rejects.toMatchObject({ code: "22012" });
});

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}
