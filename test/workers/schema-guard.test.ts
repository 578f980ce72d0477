import { sign } from "@octokit/webhooks-methods";
import { describe, expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import {
  InboxUnavailableError,
  openDispatch,
  storeWaitingDelivery,
  UnstorableDeliveryError,
} from "../../src/inbox/inbox.ts";
import { VERSION } from "../../src/version.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { opened, openReceiverWorld, SECRET } from "../receiver/receiver-world.ts";
import { NOWHERE, testEnvironment } from "../support/config.ts";
import { connectTo, openTestDatabase, testRedis } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { type Program, startProgram } from "../support/program.ts";

const NEWER = "99.0.0";
const SENTENCE = `This is Tain ${VERSION}; the database has been migrated for ${NEWER} and later: start ${NEWER} or later, or restore a backup from before that migration`;
const STOPPING = "Stopping: finishing what has begun";

const PROCESSES = [
  ["src/web.ts", "Listening"],
  ["workers/main.ts", "Working"],
  ["workers/scheduler.ts", "Scheduling"],
] as const;

interface Stores extends AsyncDisposable {
  /** The environment for processes on these stores. */
  env: NodeJS.ProcessEnv;
  /** Runs a statement on the database. */
  run(text: string): Promise<Record<string, unknown>[]>;
  /** Migrates as another Tain would, with a migration beside which versions from `oldest` on may work. */
  migratedFor(oldest: string): Promise<unknown>;
}

async function openStores({ through = (url: string) => url } = {}): Promise<Stores> {
  const { url } = await openTestDatabase();
  const db = openDatabase(url, { maxConnections: 1, applicationName: "test" });
  const places = { database: through(url), redis: testRedis(), upstream: NOWHERE.upstream };
  let version = 9_000;
  return {
    env: testEnvironment(places, { LOG_LEVEL: "info" }),
    run: (text) => db.query(sql.script(text)),
    migratedFor: (oldest) => {
      version += 1;
      return db.query(
        sql`insert into schema_migrations (version, name, oldest_tain) values (${version}, 'newer', ${oldest})`,
      );
    },
    [Symbol.asyncDispose]: () => db.close(),
  };
}

const problems = (program: Program) => program.lines.filter(({ level }) => level >= 40);

/** Expects that the program stopped in good order, said why once, and logged no other problem than the earlier ones. */
async function refusedWhileRunning(program: Program, before: object[] = []): Promise<void> {
  expect(await program.exited).toBe(78);
  expect(problems(program)).toMatchObject([...before, { level: 50, msg: STOPPING, reason: SENTENCE }]);
}

describe.each(PROCESSES)("%s", (entry, begun) => {
  test("does not start beside a schema that shuts it out", async () => {
    await using stores = await openStores();
    await stores.migratedFor(NEWER);
    const program = startProgram(entry, stores.env);
    expect(await program.exited).toBe(78);
    expect(program.lines).toEqual([{ level: 60, msg: SENTENCE }]);
  });

  test("says that migrations are missing, goes on once they have run and beside newer ones that do not shut it out, and stops in good order when one does", async () => {
    await using stores = await openStores();
    await stores.run("create table applied as select * from schema_migrations");
    await stores.run("delete from schema_migrations where version > 46");
    const program = startProgram(entry, stores.env);
    await program.said(begun);
    const missing = { level: 40, msg: "Migrations are missing: run `node db/migrate.ts`" };
    expect(problems(program)).toMatchObject([missing]);
    await stores.run("insert into schema_migrations select * from applied where version > 46");
    for (const oldest of ["0.1.0", VERSION]) await stores.migratedFor(oldest);
    const [row] = await stores.run("select clock_timestamp()::text as now");
    await until(`${entry} has asked again`, async () => {
      const asked = await stores.run(
        `select from pg_stat_activity where datname = current_database() and application_name <> 'test'
          and query like '%schema_migrations%' and query_start > '${row?.now}' and state = 'idle'`,
      );
      return asked.length > 0;
    });
    expect(problems(program)).toMatchObject([missing]);
    await stores.migratedFor(NEWER);
    await refusedWhileRunning(program, [missing]);
  });
});

test("a Postgres that cannot be asked is an outage, told once; when it is back it is asked again", async () => {
  await using stores = await openStores();
  await stores.migratedFor(VERSION);
  await using link = await openLink(stores.env.DATABASE_URL ?? "");
  await link.cut();
  const program = startProgram("workers/scheduler.ts", { ...stores.env, DATABASE_URL: link.url });
  await program.said("Postgres cannot be asked whether this version may work with its schema");
  await program.said("Scheduling");
  await link.mend();
  await program.said("Postgres says again whether this version may work with its schema");
  await link.cut();
  await until(
    "the second outage is told",
    () => program.lines.filter(({ msg }) => msg.startsWith("Postgres cannot be asked")).length === 2,
  );
  await stores.migratedFor(NEWER);
  await link.mend();
  expect(await program.exited).toBe(78);
  expect(problems(program).at(-1)).toMatchObject({ msg: STOPPING, reason: SENTENCE });
});

test("a Postgres that hangs does not hold up a start", async () => {
  await using stores = await openStores();
  await using link = await openLink(stores.env.DATABASE_URL ?? "");
  link.freeze();
  const program = startProgram("src/web.ts", { ...stores.env, DATABASE_URL: link.url });
  await program.said("Listening");
  expect(program.lines.filter(({ msg }) => msg.startsWith("Postgres says again"))).toEqual([]);
  await stores.migratedFor(NEWER);
  await link.mend();
  expect(await program.exited).toBe(78);
});

test("web beside a newer schema is ready, and takes a delivery that is under way before one that shuts it out stops it", async () => {
  await using stores = await openStores();
  await stores.migratedFor(VERSION);
  const program = startProgram("src/web.ts", { ...stores.env, WEBHOOK_SECRET: SECRET });
  const { address } = await program.said("Listening");
  const answer = await fetch(`${address}/-/ready`);
  expect({ status: answer.status, body: await answer.json() }).toEqual({ status: 200, body: { ready: true } });
  const body = JSON.stringify(opened);
  const { id } = opened.repository;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const delivering = fetch(`${address}/webhooks`, {
    method: "POST",
    duplex: "half",
    headers: {
      "content-type": "application/json",
      "x-github-event": "issues",
      "x-github-delivery": "under-way",
      "x-github-hook-id": "42",
      "x-github-hook-installation-target-type": "repository",
      "x-github-hook-installation-target-id": String(id),
      "x-hub-signature-256": await sign(hookSecret(SECRET, { type: "repository", id }), body),
    },
    body: new ReadableStream({
      start: (stream) => stream.enqueue(new TextEncoder().encode(body.slice(0, 10))),
      pull: async (stream) => {
        await held;
        stream.enqueue(new TextEncoder().encode(body.slice(10)));
        stream.close();
      },
    }),
  });
  await fetch(`${address}/-/live`); // By then the other request has arrived.
  await stores.migratedFor(NEWER);
  await program.said(STOPPING);
  release();
  expect((await delivering).status).toBe(202);
  await refusedWhileRunning(program);
  expect(await stores.run("select guid, status from deliveries")).toEqual([{ guid: "under-way", status: "pending" }]);
});

test("a worker applies deliveries beside a newer schema, and ends what it applies before one that shuts it out stops it", async () => {
  await using stores = await openStores();
  const env = { ...stores.env, WEBHOOK_SECRET: SECRET };
  await using world = await openReceiverWorld({ ...env, LOG_LEVEL: "silent" });
  const deliver = async (guid: string) => expect((await world.deliver({ guid })).status).toBe(202);
  const statuses = async () => Object.fromEntries((await world.inbox()).map(({ guid, status }) => [guid, status]));
  await stores.migratedFor(VERSION);
  await deliver("under-way");
  const holder = await connectTo(stores.env.DATABASE_URL ?? "");
  try {
    await holder.query("begin; select from deliveries for update");
    const program = startProgram("workers/main.ts", env);
    await until("the worker waits for the delivery's row", async () => {
      const waiting = await stores.run(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return waiting.length > 0;
    });
    await deliver("beside-it");
    await until("the other is settled", async () => (await statuses())["beside-it"] === "ignored");
    await stores.migratedFor(NEWER);
    await program.said(STOPPING);
    await deliver("later-still");
    await holder.query("rollback");
    await refusedWhileRunning(program);
  } finally {
    await holder.end();
  }
  expect(await statuses()).toEqual({ "under-way": "ignored", "beside-it": "ignored", "later-still": "pending" });
});

test("what a schema refuses waits in Redis where it shuts this version out, and is given up where it does not", async () => {
  await using world = await openReceiverWorld();
  await world.ctx.db.query(sql.script("alter table deliveries add column of_later integer not null"));
  const job = { hookId: 1, guid: "a-guid", event: "star", payload: "e30=", receivedAt: new Date().toISOString() };
  await expect(storeWaitingDelivery(world.ctx, openDispatch(world.ctx), job)).rejects.toThrow(UnstorableDeliveryError);
  await world.ctx.db.query(
    sql`insert into schema_migrations (version, name, oldest_tain) values (9999, 'newer', ${NEWER})`,
  );
  await expect(storeWaitingDelivery(world.ctx, openDispatch(world.ctx), job)).rejects.toThrow(InboxUnavailableError);
});
