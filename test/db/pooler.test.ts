/**
 * Through a pooler that lends a connection for a transaction alone, nothing that belongs to a session is left to
 * others.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../../db/announcement.ts";
import { type Database, openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { temporaryDirectories } from "../../scripts/temporary.mjs";
import { openTestDatabase, type TestDatabase } from "../support/database.ts";
import { hasPooler, openPooler } from "../support/pooler.ts";

const isThere = await hasPooler();
const reason = isThere ? "" : "(skipped: there is no pgbouncer, and it could not be installed)";

let resources: AsyncDisposableStack;
let database: TestDatabase;
let pooled: string;
beforeAll(async () => {
  if (!isThere) return;
  resources = new AsyncDisposableStack();
  const [place = "/tmp"] = await temporaryDirectories();
  const directory = await mkdtemp(`${place}/tain-pooler-`);
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  database = await openTestDatabase();
  const { through } = resources.use(await openPooler(database.url, { directory }));
  pooled = through(database.url);
});
afterAll(async () => {
  await resources?.disposeAsync();
  await database?.drop();
});

async function using<T>(options: Parameters<typeof openDatabase>[1], run: (db: Database) => Promise<T>): Promise<T> {
  const db = openDatabase(pooled, { isPooled: true, ...options });
  try {
    return await run(db);
  } finally {
    await db.close();
  }
}

test.skipIf(!isThere)(`statements that are planned once elsewhere run for many at once ${reason}`, async () => {
  await using({ maxConnections: 30 }, async (db) => {
    const one = (n: number) => db.prepared<{ n: number }>(sql`select ${n}::integer as n`);
    const rows = await Promise.all(Array.from({ length: 300 }, (_, n) => one(n)));
    expect(rows.map(([row]) => row?.n)).toEqual(Array.from({ length: 300 }, (_, n) => n));
  });
});

test.skipIf(!isThere)(
  `a read ends at its limit, and leaves no limit to who gets the session next ${reason}`,
  async () => {
    await using({ maxConnections: 1, statementTimeoutMs: 50 }, async (reads) => {
      await expect(reads.query(sql`select pg_sleep(20)`)).rejects.toMatchObject({ code: "57014" });
      await expect(reads.query(sql`select 1 / 0`)).rejects.toMatchObject({ code: "22012" });
      expect(await reads.query(sql`select current_setting('statement_timeout') as ms`)).toEqual([{ ms: "50ms" }]);
      await using({ maxConnections: 20 }, async (db) => {
        const asked = Array.from({ length: 40 }, () =>
          db.query<{ ms: string }>(sql`select current_setting('statement_timeout') as ms`),
        );
        expect(new Set((await Promise.all(asked)).map(([row]) => row?.ms))).toEqual(new Set(["0"]));
      });
    });
  },
);

test.skipIf(!isThere)(`a read whose caller has gone fails, and the next has its answer ${reason}`, async () => {
  await using({ maxConnections: 1, statementTimeoutMs: 2_000 }, async (reads) => {
    const gone = new AbortController();
    const asked = reads.until(gone.signal).query(sql`select pg_sleep(0.2), 1 as one`);
    gone.abort();
    await expect(asked).rejects.toThrow();
    expect(await reads.query(sql`select 2 as two`)).toEqual([{ two: 2 }]);
  });
});

test.skipIf(!isThere)(`a listener past the pooler hears what is told through it ${reason}`, async () => {
  await using({}, async (db) => {
    const { promise: heard, resolve } = Promise.withResolvers<string>();
    const listener = await listen(database.url, { onText: resolve, onLost: (error) => resolve(String(error)) });
    try {
      await db.transaction((tx) => tx.announce(["a change"]));
      expect(await Promise.race([heard, delay(20_000, "nothing", { ref: false })])).toBe("a change");
    } finally {
      await listener[Symbol.asyncDispose]();
    }
  });
});
