/** Reads of replicas, on real servers: they show all that was committed before, whatever the replicas do. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { isPostgresOutage } from "../../db/outage.ts";
import type { ReplicaState } from "../../db/replica.ts";
import { Replicas } from "../../db/replicas.ts";
import { sql } from "../../db/sql.ts";
import { createTarget } from "../../src/events/target.ts";
import { RepositoryVersionsReader } from "../../src/mirror/unchanged/unchanged.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { FeedReader } from "../events/feed-reader.ts";
import { openTargetServer } from "../events/target-server.ts";
import { type ToldRepository, tell } from "../events/tell.ts";
import { TitleWatch } from "../events/title-watch.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";
import { openReplicated, type Replicated } from "../support/replicas.ts";
import { openWorld } from "../support/world.ts";

/** No replica that replays takes this long. */
const LONG_MS = 20_000;
/** The wait where the replica does not replay. */
const SHORT_MS = 500;

let servers: Replicated;
beforeAll(async () => {
  servers = await openReplicated({ replicas: 1 });
  // It ends transactions of its own.
  await servers.primary.set("autovacuum", "off");
  await servers.primary.query("create table seen (id integer primary key, value integer not null)");
  await servers.primary.query("insert into seen values (1, 0)");
}, 60_000);
afterAll(() => servers?.[Symbol.asyncDispose]());

interface Process {
  writes: Database;
  reads: Database;
  /** How many statements each server has answered, by its name. */
  answers: Map<string, number>;
  repositoryVersion(): ReplicaState | undefined;
}

/** What a web process has open. */
function openProcess({
  urls = servers.replicas.map(({ url }) => url),
  waitMs = LONG_MS,
}: {
  urls?: string[];
  waitMs?: number;
} = {}): Process {
  const { url } = servers.primary;
  const writes = openDatabase(url);
  const repositoryVersions = new RepositoryVersionsReader({ databaseUrl: url, databaseDirectUrl: null });
  const answers = new Map<string, number>();
  const replicas = new Replicas(urls, {
    lanes: {
      reads: { maxConnections: 4, statementTimeoutMs: 5_000 },
      searches: { maxConnections: 2, statementTimeoutMs: 5_000 },
    },
    applicationName: "reads",
    waitMs,
    random: Math.random,
    position: () => repositoryVersions.position(),
    changed: () => {},
    answered: (by) => answers.set(by, (answers.get(by) ?? 0) + 1),
  });
  onTestFinished(async () => {
    await replicas.close();
    await repositoryVersions[Symbol.asyncDispose]();
    await writes.close();
  });
  return { writes, reads: writes.readingFrom(replicas), answers, repositoryVersion: () => replicas.states()[0] };
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
const isRead = (process: Process) => eventually(() => expect(process.repositoryVersion()?.leftOut).toBeNull());
const isLeftOut = (process: Process, why: RegExp) =>
  eventually(() => expect(process.repositoryVersion()?.leftOut).toMatch(why));
const byReplica = ({ answers, repositoryVersion }: Process) => answers.get(repositoryVersion()?.name ?? "") ?? 0;

test("a replica that keeps up answers, and each read shows what was committed before it was asked", async () => {
  const process = openProcess();
  await isRead(process);
  for (let time = 0; time < 50; time++) {
    if (time % 2 === 0) await write(process);
    expect(await shownBy(process.reads)).toBe(last);
  }
  expect(byReplica(process)).toBeGreaterThan(0);
});

test("what readers write to the primary's log is not waited for: only transactions are", async () => {
  const process = openProcess();
  await isRead(process);
  await process.writes.query(
    sql`create table wide as select n, repeat(md5(n::text), 20) as text from generate_series(1, 4000) n`,
  );
  await process.writes.query(sql`checkpoint`);
  const repositoryVersions = new RepositoryVersionsReader({
    databaseUrl: servers.primary.url,
    databaseDirectUrl: null,
  });
  const before = await repositoryVersions.position();
  // The first reader notes on each page which transactions are over, and with that writes whole pages to the log.
  await process.writes.query(sql`select count(*) from wide`);
  const [log] = await servers.primary.query<{ at: string }>("select (pg_current_wal_insert_lsn() - '0/0')::text as at");
  expect(BigInt(log?.at ?? 0) - before.lsn).toBeGreaterThan(100_000n);
  expect(await repositoryVersions.position()).toEqual(before);
  await write(process);
  expect((await repositoryVersions.position()).lsn).toBeGreaterThan(BigInt(log?.at ?? 0));
  await repositoryVersions[Symbol.asyncDispose]();
});

test("while a replica is five seconds behind, reads wait once and then not at all, and show every write", async () => {
  const [replica] = servers.replicas;
  const process = openProcess({ waitMs: SHORT_MS });
  await isRead(process);
  await replica?.set("recovery_min_apply_delay", "5s");
  try {
    for (let time = 0; time < 20; time++) {
      await write(process);
      expect(await shownBy(process.reads)).toBe(last);
    }
    expect(process.repositoryVersion()?.leftOut).toMatch(
      /did not catch up with the primary in 500 ms: \d+ bytes were missing/,
    );
    expect(byReplica(process)).toBeLessThan(20);
  } finally {
    await replica?.set("recovery_min_apply_delay", "0");
  }
  await isRead(process);
  expect(await shownBy(process.reads)).toBe(last);
});

test("a replica whose replay is paused is left out, and read again once it goes on", async () => {
  const [replica] = servers.replicas;
  const process = openProcess({ waitMs: SHORT_MS });
  await isRead(process);
  await replica?.query("select pg_wal_replay_pause()");
  const written = await write(process);
  expect(await Promise.all(Array.from({ length: 20 }, () => shownBy(process.reads)))).toEqual(Array(20).fill(written));
  await isLeftOut(process, /did not catch up/);
  await replica?.query("select pg_wal_replay_resume()");
  await isRead(process);
  const before = byReplica(process);
  await eventually(async () => {
    expect(await shownBy(process.reads)).toBe(written);
    expect(byReplica(process)).toBeGreaterThan(before);
  });
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
  const primary = openProcess({ urls: [servers.primary.url], waitMs: SHORT_MS });
  const absent = openProcess({ urls: ["postgres://u:hidden@127.0.0.1:1/tain"], waitMs: SHORT_MS });
  const mute = openProcess({ urls: [`postgres://u:hidden@127.0.0.1:${silent}/tain`], waitMs: SHORT_MS });
  await isLeftOut(primary, /takes writes itself/);
  await isLeftOut(absent, /ECONNREFUSED/);
  await isLeftOut(mute, /timeout/i);
  for (const process of [primary, absent, mute]) expect(await shownBy(process.reads)).toBe(last);
  expect(absent.repositoryVersion()?.name).toBe("127.0.0.1:1/tain");
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

test("a web process reads from the replicas that its settings name, and says how they stand", async () => {
  const [replica] = servers.replicas;
  const operator = "operator-token-of-this-test";
  const asked = { headers: { authorization: `Bearer ${operator}`, "user-agent": "test" } };
  const env = { DATABASE_URL: servers.primary.url, DATABASE_REPLICA_URLS: replica?.url, OPERATOR_TOKEN: operator };
  await using mirror = await openMirror({ env });
  const json = async (path: string) => await (await fetch(mirror.url + path, asked)).json();
  const name = replica && new URL(replica.url).host + new URL(replica.url).pathname;
  await eventually(async () =>
    expect(await json("/-/status")).toMatchObject({ replicas: [{ name, leftOut: null, bytesBehind: 0 }] }),
  );
  // Whatever is written, as by a look whether Postgres takes writes, leaves the replica out for a moment.
  await eventually(async () => {
    expect((await fetch(`${mirror.url}/users/nobody`, { headers: { "user-agent": "test" } })).status).toBe(404);
    const figures = await (await fetch(`${mirror.url}/-/metrics`, asked)).text();
    expect(figures).toMatch(new RegExp(`^tain_read_statements_total\\{by="${name}"\\} [1-9]`, "m"));
  });
  expect(await json("/-/ready")).toEqual({ ready: true });
  await replica?.query("select pg_wal_replay_pause()");
  await write(openProcess());
  await eventually(async () => {
    await fetch(`${mirror.url}/users/nobody`, { headers: { "user-agent": "test" } });
    expect(await json("/-/ready")).toEqual({
      ready: true,
      replicasLeftOut: [expect.stringMatching(/^127\.0\.0\.1:\d+\/postgres: it did not catch up/)],
    });
  });
  // To strangers no address is named.
  expect(await (await fetch(`${mirror.url}/-/ready`)).json()).toEqual({ ready: true });
  await replica?.query("select pg_wal_replay_resume()");
});

test("what a target or a reader of the feed is told of is shown by the next read of each process, though its replica is late", async () => {
  const EVENTS = 6;
  const [replica] = servers.replicas;
  if (!replica) throw new Error("There is no replica");
  const env = { DATABASE_URL: servers.primary.url, DATABASE_REPLICA_URLS: replica.url, TARGETS_ALLOWED: "127.0.0.1" };
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 2, pulls: 0 }),
    env,
  });
  await world.mirror(world.first);
  const webs = [world.url, await world.openSibling()];
  const titles = new TitleWatch({ fullName: world.first, token: world.token });
  await eventually(async () => {
    await titles.rest(world.url);
    const figures = await world.ctx.metrics.text();
    expect(figures).toMatch(
      new RegExp(`^tain_read_statements_total\\{by="${RegExp.escape(new URL(replica.url).host)}/`, "m"),
    );
  });
  const repository = (await world.get(`/repos/${world.first}`)).body as ToldRepository;
  const issue = (await world.get(`/repos/${world.first}/issues/1`)).body as { title: string };
  await using server = await openTargetServer();
  await createTarget(world.ctx, {
    ...{ scope: { kind: "everything", id: 0 }, madeBy: "operator", url: server.url, contentType: "json" },
    ...{ insecureSsl: false, secret: null, events: ["issues"], active: true, rewriteTo: null },
  });
  server.answer = ({ payload }, reply) => titles.look(webs, Number(payload.issue.title)).then(() => reply.end());
  const readers = await Promise.all(
    webs.map((url) => FeedReader.open({ url, token: world.token, query: "?event=issues" })),
  );
  const follow = async (reader: FeedReader) => {
    for (let told = 0; told < EVENTS; told++) {
      const { data } = (await reader.next()) as { data: { issue: { title: string } } };
      await titles.look(webs, Number(data.issue.title));
    }
    await reader[Symbol.asyncDispose]();
  };
  const following = Promise.all(readers.map(follow));
  await replica.set("recovery_min_apply_delay", "100ms");
  for (let number = 1, from = issue.title; number <= EVENTS; from = `${number}`, number++) {
    const updated_at = `${new Date(Date.now() + number * 1_000).toISOString().slice(0, 19)}Z`;
    const payload = { action: "edited", issue: { ...issue, title: `${number}`, updated_at }, repository };
    await tell(world, { event: "issues", payload: { ...payload, changes: { title: { from } } } });
  }
  await Promise.all([following, server.hears(EVENTS)]);
  await eventually(() => expect(titles.asked).toBe(3 * EVENTS * 4));
  await replica.set("recovery_min_apply_delay", "0");
  expect(titles.behind).toEqual([]);
});

test("once a replica was promoted, a revision of the same number is another one, and who follows the former primary is left out", async () => {
  const [heir] = servers.replicas;
  if (!heir) throw new Error("There is no replica");
  await servers.primary.query("insert into revisions values (7, 1)");
  const before = openProcess({ waitMs: SHORT_MS });
  await isRead(before);
  const revisionIn = async (url: string) => {
    await using repositoryVersions = new RepositoryVersionsReader({ databaseUrl: url, databaseDirectUrl: null });
    return { ...(await repositoryVersions.now([7])).get(7), ...(await repositoryVersions.position()) };
  };
  const former = await revisionIn(servers.primary.url);
  const refusal: unknown = await revisionIn(heir.url).catch((error: unknown) => error);
  expect(String(refusal)).toContain("recovery is in progress");
  // To callers it is as if Postgres were away.
  expect(isPostgresOutage(refusal)).toBe(true);
  await servers.promote(heir);
  // Several requests ask at once, and one of them names the new history.
  const [now, ...others] = await Promise.all(Array.from({ length: 4 }, () => revisionIn(heir.url)));
  for (const other of others) expect(other).toMatchObject({ revision: now?.revision, era: now?.era });
  expect(now?.revision?.split("/")[1]).toBe(former.revision?.split("/")[1]);
  expect(now?.era).not.toBe(former.era);
  expect(now?.revision).not.toBe(former.revision);
  await eventually(async () => {
    await shownBy(before.reads);
    expect(before.repositoryVersion()?.leftOut).toMatch(/takes writes itself/);
  });
});

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}
