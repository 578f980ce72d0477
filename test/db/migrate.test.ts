/** How the schema changes while others work with it. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { applyMigration, stepsOf, TableHeldError } from "../../db/apply.ts";
import { missingMigrations } from "../../db/migrate.ts";
import { MIGRATIONS, type ReadMigration, readMigration } from "../../db/migrations.ts";
import { tain } from "../cli/tain-on.ts";
import { projectRoot } from "../docs/markdown.ts";
import { inherited } from "../support/config.ts";
import { AWAITED_LOCKS, connectTo, openTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";

let database: TestDatabase;
let migrating: pg.Client;
let other: pg.Client;
let holder: pg.Client;
beforeAll(async () => {
  database = await openTestDatabase();
  migrating = await connectTo(database.url);
  other = await connectTo(database.url);
  holder = await connectTo(database.url);
});
afterAll(async () => {
  for (const client of [migrating, other, holder]) await client?.end();
  await database?.drop();
});

const migration = (version: number, statements: string, isStepwise = false): ReadMigration => ({
  version,
  since: version,
  name: `${version}_test.sql`,
  statements,
  oldestTain: "0.2.0",
  isStepwise,
});
const isApplied = async (version: number) =>
  (await other.query("select from schema_migrations where version = $1", [version])).rowCount === 1;

test("the migrations are numbered from the baseline on, each number once", () => {
  expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, at) => 46 + at));
});

test("what was published of the migrations stays as it is: databases have it already", () => {
  const sumOf = (name: string) =>
    createHash("sha256")
      .update(readFileSync(join(projectRoot, "db", "migrations", name)))
      .digest("hex");
  const published = readFileSync(join(projectRoot, "test", "db", "published-migrations.sha256"), "utf8");
  // A new one is added by `sha256sum *.sql > ../../test/db/published-migrations.sha256` in its folder.
  expect(MIGRATIONS.map(({ name }) => `${sumOf(name)}  ${name}\n`).join("")).toBe(published);
});

test("a migration that meets a long transaction holds up nobody behind it, and is made once the table is free", async () => {
  await holder.query("begin; select from labels");
  const applying = applyMigration(migrating, migration(9_001, "alter table labels add column tried integer"));
  await until("the migration waits for the table", async () => {
    const waiting = await other.query(`select from ${AWAITED_LOCKS} where relation = 'labels'::regclass`);
    return waiting.rowCount === 1;
  });
  // Both would wait for the holder's end, which comes after them.
  await other.query("select count(*) from labels");
  await other.query("update labels set name = name");
  expect(await isApplied(9_001)).toBe(false);
  await holder.query("commit");
  await applying;
  expect(await isApplied(9_001)).toBe(true);
});

test("one that finds its table in use each time leaves nothing behind and says whose transaction it is", async () => {
  await holder.query("begin; select from milestones");
  const { rows } = await holder.query<{ pid: number }>("select pg_backend_pid() as pid");
  const failure = await applyMigration(
    migrating,
    migration(9_002, "alter table labels add column half integer; alter table milestones add column tried integer"),
    2,
  ).catch((error: unknown) => error);
  await holder.query("rollback");
  expect(failure).toBeInstanceOf(TableHeldError);
  expect(failure).toMatchObject({
    message: expect.stringContaining(`9002_test.sql was not made: a table it changes was in use each time`),
  });
  expect(failure).toMatchObject({ message: expect.stringContaining(`process ${rows[0]?.pid} (`) });
  expect(await isApplied(9_002)).toBe(false);
  const left = await other.query("select from pg_attribute where attrelid = 'labels'::regclass and attname = 'half'");
  expect(left.rowCount).toBe(0);
});

test("an index whose building was interrupted is built anew", async () => {
  await other.query("create table twice (n integer); insert into twice values (1), (1)");
  await expect(other.query("create unique index concurrently twice_n on twice (n)")).rejects.toThrow(
    "could not create",
  );
  const text = "-- x\ncreate index concurrently if not exists twice_n on twice (n);\n";
  await applyMigration(migrating, migration(9_003, text, true));
  const { rows } = await other.query(
    "select indisvalid, indisunique from pg_index where indexrelid = 'twice_n'::regclass",
  );
  expect(rows).toEqual([{ indisvalid: true, indisunique: false }]);
  expect(await isApplied(9_003)).toBe(true);
});

test("no migration locks a table that is in use for as long as it reads or writes it anew", async () => {
  const faults: string[] = [];
  const [, ...later] = MIGRATIONS; // No table is in use before the baseline.
  for (const one of later) {
    const read = await readMigration(one);
    const steps = stepsOf(read.statements).map((step) => step.toLowerCase());
    if (read.isStepwise) {
      const other = steps.filter(
        (step) => !/^(create (unique )?index concurrently if not exists|drop index concurrently if exists) /.test(step),
      );
      faults.push(
        ...other.map((step) => `${one.name}: a stepwise migration builds or drops indexes alone, not: ${step}`),
      );
      continue;
    }
    const tables = (pattern: RegExp) => steps.flatMap((step) => pattern.exec(step)?.[1] ?? []);
    const made = tables(/\bcreate (?:unlogged )?table (\w+)/);
    const indexed = tables(/\bcreate (?:unique )?index (?:if not exists )?\w+ on (\w+)/).filter(
      (table) => !made.includes(table),
    );
    faults.push(...indexed.map((table) => `${one.name}: build the index of ${table} stepwise`));
    const heavy =
      /\b(alter column \w+ (set data )?type|set not null|truncate|generated always as \(.*\) stored|validate constraint)\b/;
    const rewritten = steps.filter((step) => heavy.test(step) || /^lock table /.test(step));
    faults.push(...rewritten.map((step) => `${one.name} reads or writes a table anew under its lock: ${step}`));
  }
  expect(faults).toEqual([]);
});

test("`tain migrate --plan` changes nothing and lists what `tain migrate` then does", async () => {
  await using empty = await openTestDatabase("template0");
  const env = { DATABASE_URL: empty.url };
  const plan = await tain(["migrate", "--plan"], env);
  expect(plan).toMatchObject({ code: 0, stderr: "" });
  const lines = plan.stdout.trimEnd().split("\n");
  expect(lines.at(-1)).toBe("Processes of Tain 0.3.0 and later go on beside it; older ones stop.");
  expect(lines).toContain("0053_folded_names.sql: in one transaction");
  expect(lines).toContain("0054_folded_name_indexes.sql: beside all other work, index by index");
  const { migrations } = JSON.parse((await tain(["migrate", "--plan", "--json"], env)).stdout);
  expect(migrations).toHaveLength(MIGRATIONS.length);
  expect(migrations).toContainEqual({
    ...{ name: "0054_folded_name_indexes.sql", oldestTain: "0.2.0", isStepwise: true },
  });
  expect((await missingMigrations(empty.url)).map(({ name }) => name)).toEqual(MIGRATIONS.map(({ name }) => name));
  const done = await tain(["migrate", "--json"], env);
  expect(done.code).toBe(0);
  expect(JSON.parse(done.stdout)).toEqual({ migrated: MIGRATIONS.map(({ name }) => name) });
  expect((await tain(["migrate", "--plan"], env)).stdout).toMatch(/there is nothing to do\n$/);
  expect(await tain(["migrate"], {})).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("DATABASE_URL is not set"),
  });
});

test("a migration that cannot be made is told by its name and the reason, and a Postgres that is away in a sentence", async () => {
  await using spoilt = await openTestDatabase("template0");
  const client = await connectTo(spoilt.url);
  await client.query("create table labels ()");
  await client.end();
  expect(await tain(["migrate"], { DATABASE_URL: spoilt.url })).toMatchObject({
    code: 1,
    stderr: 'tain: Migration 0046_baseline.sql failed and was rolled back (relation "labels" already exists)\n',
  });

  const away =
    "Postgres cannot be used (connect ECONNREFUSED 127.0.0.1:1): see that DATABASE_URL is right and the server runs";
  const env = { DATABASE_URL: "postgres://me:s3cret-word@127.0.0.1:1/x" };
  for (const args of [["migrate"], ["migrate", "--plan"]])
    expect(await tain(args, env)).toMatchObject({ code: 1, stderr: `tain: ${away}\n` });
  const release = promisify(execFile)(process.execPath, ["db/migrate.ts"], {
    cwd: projectRoot,
    env: { ...inherited, ...env },
  });
  await expect(release).rejects.toMatchObject({ code: 1, stderr: `${away}\n` });
});
