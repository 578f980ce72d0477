import { expect, test } from "vitest";
import { type Database, openDatabase, type Queries, together } from "../../db/database.ts";
import { formerNames as formerNamesTable } from "../../db/schema/following.ts";
import { Pieces, sql } from "../../db/sql.ts";
import { openTestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";

async function opened(maxConnections = 2): Promise<{ db: Database } & AsyncDisposable> {
  const resources = new AsyncDisposableStack();
  const { url } = resources.use(await openTestDatabase());
  const db = openDatabase(url, { maxConnections });
  resources.defer(() => db.close());
  return { db, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

const former = (name: string, id: number) =>
  sql`insert into former_names (full_name, repository_id) values (${name}, ${id})`;
const formerNames = async (db: Queries) =>
  (await db.query<{ name: string }>(sql`select full_name as name from former_names order by 1`)).map(
    ({ name }) => name,
  );

test("statements answer rows, or how many they answer or change", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  expect(await db.count(former("octo/a", 1))).toBe(1);
  expect(await db.count(sql`update former_names set repository_id = 2`)).toBe(1);
  expect(await db.query(sql`select full_name from former_names where repository_id = ${2}`)).toEqual([
    { full_name: "octo/a" },
  ]);
  expect(await db.count(sql`select from former_names where repository_id = ${1}`)).toBe(0);
});

test("an int8 is a number however it is read, and one that no number holds exactly fails its statement", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  const [most, beyond] = [Number.MAX_SAFE_INTEGER, 2n ** 53n];
  const read = sql`select ${most}::bigint as one, array[1, null, ${-most}]::bigint[] as many, count(*) as count`;
  const row = { one: most, many: [1, null, -most], count: 1 };
  expect(await db.query(read)).toEqual([row]);
  expect(await db.prepared(read)).toEqual([row]);
  expect(await db.until(new AbortController().signal).query(read)).toEqual([row]);
  expect(await db.transaction((tx) => tx.query(read))).toEqual([row]);
  await db.count(former("octo/a", most));
  const built = () => db.select({ id: formerNamesTable.repositoryId, said: sql`repository_id` }).from(formerNamesTable);
  expect(await built()).toEqual([{ id: most, said: most }]);
  await db.count(sql`update former_names set repository_id = ${beyond}`);
  for (const failing of [
    () => db.query(sql`select ${beyond}::bigint`),
    () => db.query(sql`select array[${beyond}]::bigint[]`),
    built,
  ])
    await expect(failing()).rejects.toThrow("9007199254740992, which no number holds exactly");
  expect(await db.query(sql`select 1 as next`)).toEqual([{ next: 1 }]);
});

test("a statement that drizzle builds fails with Postgres' own words, as all others do", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  const twice = [1, 1].map((repositoryId) => ({ fullName: "octo/a", repositoryId }));
  await expect(db.insert(formerNamesTable).values(twice)).rejects.toMatchObject({
    code: "23505",
    message: expect.stringMatching(/^duplicate key value/),
  });
});

test("a prepared statement is planned once per connection, another one not at all", async () => {
  await using mirror = await opened(1);
  const { db } = mirror;
  for (let time = 0; time < 3; time++) {
    await db.prepared(sql`select 1 as prepared where ${time}::integer >= 0`);
    await db.query(sql`select 1 as anew where ${time}::integer >= 0`);
  }
  expect(await db.query(sql`select statement from pg_prepared_statements`)).toEqual([
    { statement: "select 1 as prepared where $1::integer >= 0" },
  ]);
});

test("a connection whose statements cannot be limited is closed, and lent to nobody", async () => {
  await using resources = new AsyncDisposableStack();
  const { url } = resources.use(await openTestDatabase());
  const cancelBy = openDatabase(url, { maxConnections: 1 });
  resources.defer(() => cancelBy.close());
  const applicationName = "without limits";
  const limited = openDatabase(url, { applicationName, statementTimeoutMs: -5, cancelBy });
  resources.defer(() => limited.close());
  // As if a server or a pooler refused the setting.
  const refused = { code: "22023", message: expect.stringContaining("statement_timeout") };
  await expect(limited.query(sql`select 1`)).rejects.toMatchObject(refused);
  await expect(limited.until(new AbortController().signal).query(sql`select 1`)).rejects.toMatchObject(refused);
  await until("its connections are closed", async () => {
    const left = sql`select from pg_stat_activity where application_name = ${applicationName}`;
    return (await cancelBy.count(left)) === 0;
  });
});

test("what a transaction does takes effect together or not at all", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  const undone = db.transaction(async (tx) => {
    await tx.query(former("octo/undone", 1));
    throw new Error("changed my mind");
  });
  await expect(undone).rejects.toThrow("changed my mind");
  expect(await db.transaction(async (tx) => tx.count(former("octo/done", 1)))).toBe(1);
  expect(await formerNames(db)).toEqual(["octo/done"]);
});

test("a transaction in which a statement failed is not taken for done, though nobody looked at the failure", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  const lost = db.transaction(async (tx) => {
    await tx.query(former("octo/lost", 1));
    await tx.query(sql`select 1 / 0`).catch(() => {});
  });
  await expect(lost).rejects.toThrow("rolled back");
  expect(await formerNames(db)).toEqual([]);
});

test("statements sent together run in order, and the first failure is the one that is told", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  const failed = db.transaction((tx) =>
    together([tx.query(former("octo/a", 1)), tx.query(sql`select 1 / ${0}::integer`), tx.query(former("octo/b", 1))]),
  );
  await expect(failed).rejects.toThrow("division by zero");
  const [rows, count] = await db.transaction((tx) =>
    together([tx.query(sql`select 1 as one`), tx.count(former("octo/a", 1))]),
  );
  expect([rows, count]).toEqual([[{ one: 1 }], 1]);
});

test("a statement that drizzle builds runs once among others", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  await db.transaction((tx) =>
    together([
      tx.insert(formerNamesTable).values({ fullName: "octo/a", repositoryId: 1 }),
      tx.query(former("octo/b", 1)),
    ]),
  );
  expect(await formerNames(db)).toEqual(["octo/a", "octo/b"]);
});

test("a connection that breaks in a transaction does not come back, and the pool goes on", async () => {
  await using mirror = await opened(1);
  const { db } = mirror;
  const broken = db.transaction(async (tx) => {
    await tx.query(former("octo/broken", 1));
    await tx.query(sql`select pg_terminate_backend(pg_backend_pid())`);
  });
  await expect(broken).rejects.toThrow();
  expect(await formerNames(db)).toEqual([]);
});

test("a statement that takes longer than it may is given up", async () => {
  await using mirror = await opened();
  const { db } = mirror;
  await expect(db.query(sql`select pg_sleep(1)`, { timeoutMs: 50 })).rejects.toThrow("timeout");
  expect(await db.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
});

test("bytes in pieces arrive as one value, beside values of other types, and fail as any value does", async () => {
  await using mirror = await opened(1);
  const { db } = mirror;
  const pieces = [Buffer.from("one"), Buffer.alloc(300_000, "x"), Buffer.alloc(0), Buffer.from([0, 255])];
  const send = (bytes: readonly Buffer[]) =>
    db.prepared(sql`select ${"ä"}::text as text, ${null}::text as missing, ${new Pieces(bytes)}::bytea as bytes,
      ${[1, 2]}::integer[] as numbers, ${Buffer.from("whole")}::bytea as whole`);
  const others = { text: "ä", missing: null, numbers: [1, 2], whole: Buffer.from("whole") };
  expect(await send(pieces)).toEqual([{ ...others, bytes: Buffer.concat(pieces) }]);
  expect(await send([])).toEqual([{ ...others, bytes: Buffer.alloc(0) }]);
  await expect(db.query(sql`select ${new Pieces(pieces)}::bytea, 1 / 0`)).rejects.toThrow("division by zero");
  const slow = sql`select ${new Pieces(pieces)}::bytea, pg_sleep(1)`;
  await expect(db.query(slow, { timeoutMs: 50 })).rejects.toThrow("timeout");
  await expect(db.transaction((tx) => tx.query(sql`select ${new Pieces(pieces)}::bytea`))).rejects.toThrow(
    "not in a transaction",
  );
  expect(await send(pieces)).toEqual([{ ...others, bytes: Buffer.concat(pieces) }]);
});
