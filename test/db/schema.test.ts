import { readdir, readFile } from "node:fs/promises";
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api-postgres";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { MIGRATION_LOCK, migrate, missingMigrations } from "../../db/migrate.ts";
import { MIGRATIONS, oldestTainOf, readMigration } from "../../db/migrations.ts";
import { type AppliedMigration, fitOf, SchemaTooNewError, SchemaTooOldError } from "../../db/schema-fit.ts";
import * as schema from "../../src/schema.ts";
import { isOlder, VERSION } from "../../src/version.ts";
import { openTestDatabase } from "../support/database.ts";

async function withClient<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

test("the migrations make the tables that the schema describes, with their columns, keys, checks and indexes, and no others", async () => {
  await using migrated = await openTestDatabase();
  await using described = await openTestDatabase();
  await withClient(described.url, async (client) => {
    // The functions and sequences stay: the description names them, and does not hold them.
    const { rows } = await client.query<{ name: string }>(`select relname as name from pg_class ${OF_TABLES}`);
    await client.query(`drop table ${rows.map(({ name }) => name).join(", ")} cascade`);
    const statements = await generateMigration(await generateDrizzleJson({}), await generateDrizzleJson(schema));
    for (const statement of statements) await client.query(statement);
  });
  expect(await withClient(migrated.url, describedParts)).toEqual(await withClient(described.url, describedParts));
});

const OF_TABLES = "where relnamespace = 'public'::regnamespace and relkind = 'r'";

/** All of the tables that the schema's description holds. */
async function describedParts(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(`
    with t as (select oid, relname from pg_class ${OF_TABLES})
    select format('%s.%s %s, not null: %s, default: %s, identity: %s, generated: %s', relname, attname,
        format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attidentity, attgenerated) as line
      from t join pg_attribute a on a.attrelid = t.oid and attnum > 0 and not attisdropped
        left join pg_attrdef on adrelid = t.oid and adnum = attnum
    union all select format('%s: %s %s', relname, conname, pg_get_constraintdef(c.oid))
      from t join pg_constraint c on conrelid = t.oid
    union all select pg_get_indexdef(indexrelid) from t join pg_index on indrelid = t.oid
    order by 1`);
  return rows.map(({ line }) => line);
}

test("every table, view and column says in the database what it is", async () => {
  await using database = await openTestDatabase();
  const { rows } = await withClient(database.url, (client) =>
    client.query<{ name: string }>(`select c.relname || coalesce('.' || a.attname, '') as name
      from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace in ('public'::regnamespace, 'tain_v1'::regnamespace) and c.relkind in ('r', 'v') and c.relname <> 'schema_migrations'
        and (obj_description(c.oid) is null or col_description(c.oid, a.attnum) is null)`),
  );
  expect(rows).toEqual([]);
});

test("many processes may migrate at once", async () => {
  await using database = await openTestDatabase();
  await withClient(database.url, (client) => client.query("drop schema public cascade; create schema public"));
  await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)));
  const { rows } = await withClient(database.url, (client) =>
    client.query("select name from schema_migrations where version >= 46 order by version"),
  );
  const files = (await readdir(new URL("../../db/migrations/", import.meta.url))).filter((name) =>
    name.endsWith(".sql"),
  );
  expect(rows.map(({ name }) => name)).toEqual(files.sort());
});

test("who waits for another's migration is told so once, and goes on when it is over", async () => {
  await using database = await openTestDatabase();
  const { promise: waits, resolve } = Promise.withResolvers<string>();
  const told: string[] = [];
  await withClient(database.url, async (other) => {
    await other.query("begin");
    await other.query(MIGRATION_LOCK);
    const migrated = migrate(database.url, (sentence) => {
      told.push(sentence);
      resolve(sentence);
    });
    expect(await waits).toBe("Another process migrates this database. Waiting until it is done.");
    await other.query("commit");
    expect(await migrated).toBeNull();
  });
  expect(told).toHaveLength(1);
});

test("every migration says which Tain may go on beside it: never a newer one than this, never an older one than before", async () => {
  const named = await Promise.all(MIGRATIONS.map(async (one) => (await readMigration(one)).oldestTain));
  expect(named.filter((oldest) => isOlder(VERSION, oldest))).toEqual([]);
  expect(named.filter((oldest, at) => isOlder(oldest, named[at - 1] ?? oldest))).toEqual([]);
});

test.each([
  ["nothing", "create table a ();\n"],
  ["it too late", "create table a ();\n-- Oldest Tain that works beside this: 0.2.0\n"],
  ["no version", "-- Oldest Tain that works beside this: any\n"],
])("a migration that says %s of the oldest Tain beside it is refused by its name", (_, text) => {
  expect(() => oldestTainOf("0015_new.sql", text)).toThrow(
    'Migration 0015_new.sql does not say which Tain may go on beside it: let its first line be "-- Oldest Tain that works beside this: 1.2.3"',
  );
});

/** The rows of schema_migrations, in order. */
async function recordedIn(url: string): Promise<Recorded[]> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<Recorded>(
      `select version, name, oldest_tain as "oldestTain" from schema_migrations order by version`,
    );
    return rows;
  });
}

interface Recorded extends AppliedMigration {
  name: string;
}

test("a fresh database keeps what each migration said; the baseline counts as 1 to 46, so that Tain 0.3.0 works with it", async () => {
  await using database = await openTestDatabase();
  const [baseline, ...later] = await Promise.all(MIGRATIONS.map(readMigration));
  const recorded = await recordedIn(database.url);
  expect(recorded.slice(0, 46)).toEqual(
    ALL_OF_0_3_0.map((version) => ({ version, name: "0046_baseline.sql", oldestTain: baseline?.oldestTain })),
  );
  expect(recorded.slice(46)).toEqual(later.map(({ version, name, oldestTain }) => ({ version, name, oldestTain })));
  expect(fitOf(recorded, ALL_OF_0_3_0, "0.3.0")).toBe("newer");
});

test("a database of Tain 0.3.0 gets the migrations after the baseline alone, and keeps what it has recorded", async () => {
  await using database = await openTestDatabase("template0");
  const recorded = await migratedBy030(database.url);
  expect((await missingMigrations(database.url)).map(({ name }) => name)).toEqual(
    MIGRATIONS.slice(1).map(({ name }) => name),
  );
  await migrate(database.url);
  const now = await recordedIn(database.url);
  expect(now.slice(0, 46)).toEqual(recorded);
  expect(now.slice(46).map(({ name }) => name)).toEqual(MIGRATIONS.slice(1).map(({ name }) => name));
  expect(fitOf(now)).toBe("same");
  expect(fitOf(now, ALL_OF_0_3_0, "0.3.0")).toBe("newer");
});

test.each([
  ["0.2.0", 12],
  ["0.3.0 that was stopped while it migrated", 45],
])("a database of Tain %s is refused and left as it is: 0.3.0 has to migrate it first", async (_, newest) => {
  await using database = await openTestDatabase("template0");
  const before = await withClient(database.url, async (client) => {
    // 0.2.0 did not record the oldest Tain yet.
    await client.query(
      "create table schema_migrations (version integer primary key, name text not null, applied_at timestamptz not null default now())",
    );
    await client.query("insert into schema_migrations select n, n || '.sql' from generate_series(1, $1::integer) n", [
      newest,
    ]);
    return await madeIn(client);
  });
  const refusal = `A Tain before 0.3.0 migrated the database, up to migration ${newest}: migrate it with Tain 0.3.0 first, then with this one (${VERSION})`;
  for (const act of [migrate, missingMigrations])
    await expect(act(database.url)).rejects.toMatchObject({ name: "SchemaTooOldError", message: refusal });
  expect(await withClient(database.url, madeIn)).toEqual(before);
});

/** The numbers of the migrations that Tain 0.3.0 knows. */
const ALL_OF_0_3_0 = Array.from({ length: 46 }, (_, at) => at + 1);

/** Makes the schema of Tain 0.3.0, and records the migrations as it did. The proof `upgrade` runs 0.3.0 itself. */
async function migratedBy030(url: string): Promise<Recorded[]> {
  const [first] = MIGRATIONS;
  if (!first) throw new Error("There is no migration");
  const { name, statements } = await readMigration(first);
  expect(name).toBe("0046_baseline.sql");
  await withClient(url, async (client) => {
    const { rows } = await client.query("select current_setting('server_version_num')::integer < 180000 as old");
    if (rows[0]?.old) await client.query(await readFile(new URL("../../db/uuidv7.sql", import.meta.url), "utf8"));
    await client.query(`
      create table schema_migrations (
        version integer primary key, name text not null, applied_at timestamptz not null default now());
      alter table schema_migrations add column oldest_tain text check (oldest_tain ~ '^\\d+\\.\\d+\\.\\d+$');
      insert into schema_migrations (version, name, oldest_tain)
        select n, format('%s_of_0_3_0.sql', n), case when n <= 5 then '0.1.0' else '0.2.0' end from generate_series(1, 46) n`);
    await client.query(statements);
  });
  return await recordedIn(url);
}

/** All relations, columns and functions of the database. */
async function madeIn(client: pg.Client): Promise<unknown[]> {
  const { rows } = await client.query(`
    select oid::regclass::text as made from pg_class where relnamespace = 'public'::regnamespace
      union all select format('%s %s', attrelid::regclass, attname) from pg_attribute where attrelid >= 16384
      union all select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace
      order by 1`);
  return rows;
}

describe("how the schema fits a Tain 0.3.0 that knows two migrations", () => {
  const judged = (...applied: [version: number, oldestTain: string | null][]) =>
    fitOf(
      applied.map(([version, oldestTain]): AppliedMigration => ({ version, oldestTain })),
      [1, 2],
      "0.3.0",
    );

  test.each([
    [
      "the two",
      [
        [1, "0.1.0"],
        [2, "0.3.0"],
      ],
      "same",
    ],
    [
      "the two, of before Tain recorded the oldest",
      [
        [1, null],
        [2, null],
      ],
      "same",
    ],
    ["none", [], "missing"],
    ["one of the two", [[1, "0.1.0"]], "missing"],
    [
      "a third, beside which 0.3.0 works",
      [
        [1, "0.1.0"],
        [2, "0.3.0"],
        [3, "0.3.0"],
      ],
      "newer",
    ],
    [
      "a third, beside which older ones work too",
      [
        [1, "0.1.0"],
        [2, "0.3.0"],
        [3, "0.2.9"],
      ],
      "newer",
    ],
  ] as [string, [number, string | null][], string][])("%s: %s", (_, applied, expected) => {
    expect(judged(...applied)).toBe(expected);
  });

  test("a third that needs a newer Tain, whatever a fourth says: it says which to start", () => {
    for (const oldest of ["0.3.1", "0.4.0", "0.10.0", "1.0.0"]) {
      const refused = judged([1, "0.1.0"], [2, "0.3.0"], [3, oldest], [4, "0.2.0"]);
      expect(refused).toBeInstanceOf(SchemaTooNewError);
      expect((refused as Error).message).toBe(
        `This is Tain 0.3.0; the database has been migrated for ${oldest} and later: start ${oldest} or later, or restore a backup from before that migration`,
      );
    }
  });

  test("a third that says nothing of the oldest Tain, or stands on another second one: refused", () => {
    const words = /^This is Tain 0\.3\.0; the database has migration 3 of another Tain: start the Tain that made it/;
    for (const refused of [judged([1, "0.1.0"], [2, "0.3.0"], [3, null]), judged([1, "0.1.0"], [3, "0.3.0"])])
      expect(refused).toMatchObject({ name: "SchemaTooNewError", message: expect.stringMatching(words) });
  });
});

describe("how the schema fits a Tain 0.4.0 whose baseline is migration 3, and that knows 4", () => {
  const judged = (...versions: number[]) =>
    fitOf(
      versions.map((version): AppliedMigration => ({ version, oldestTain: version < 3 ? null : "0.2.0" })),
      [3, 4],
      "0.4.0",
    );

  test.each([
    ["nothing", [], "missing"],
    ["what the baseline replaced, up to it", [1, 2, 3], "missing"],
    ["all", [1, 2, 3, 4], "same"],
    ["the baseline without what it replaced", [3, 4], "same"],
    ["a fifth as well", [1, 2, 3, 4, 5], "newer"],
  ] as [string, number[], string][])("%s: %s", (_, versions, expected) => {
    expect(judged(...versions)).toBe(expected);
  });

  test("part of what the baseline replaced, and not the baseline: refused as too old", () => {
    for (const versions of [[1], [1, 2], [2, 4]]) expect(judged(...versions)).toBeInstanceOf(SchemaTooOldError);
  });
});

test.each([
  ["0.2.0", "0.2.0", false],
  ["0.2.0", "0.10.0", true],
  ["0.10.0", "0.9.9", false],
  ["1.0.0", "0.9.9", false],
  ["0.3.0-rc.1", "0.3.0", false],
  ["0.2.9", "0.3.0-rc.1", true],
])("is %s older than %s: %s", (one, other, expected) => {
  expect(isOlder(one, other)).toBe(expected);
});

test("what is no version is older than none", () => {
  expect(() => isOlder("0.2", "0.3.0")).toThrow("Not a version: 0.2. It should look like 1.2.3");
});

test("a schema that this Tain must not work with is not migrated; one that is newer, and fits, has nothing to do", async () => {
  await using database = await openTestDatabase();
  const insert = (version: number, oldest: string) =>
    withClient(database.url, (client) =>
      client.query(`insert into schema_migrations (version, name, oldest_tain) values (${version}, 'x', '${oldest}')`),
    );
  await insert(9_998, VERSION);
  await migrate(database.url);
  await insert(9_999, "99.0.0");
  await expect(migrate(database.url)).rejects.toThrow(SchemaTooNewError);
  await expect(migrate(database.url)).rejects.toThrow(/the database has been migrated for 99\.0\.0 and later: start/);
  await expect(insert(10_000, "soon")).rejects.toThrow(/violates check constraint/);
});

test("a migration that fails leaves nothing behind and names itself", async () => {
  await using database = await openTestDatabase();
  await withClient(database.url, (client) =>
    client.query("drop schema public cascade; create schema public; create table labels (x integer)"),
  );
  await expect(migrate(database.url)).rejects.toThrow("Migration 0046_baseline.sql failed and was rolled back");
  const { rows } = await withClient(database.url, (client) =>
    client.query("select to_regclass('users') as users, (select count(*)::int from schema_migrations) as applied"),
  );
  expect(rows).toEqual([{ users: null, applied: 0 }]);
});
