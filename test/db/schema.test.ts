import { readdir, readFile } from "node:fs/promises";
import { getTableName } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/pg-core";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { MIGRATION_LOCK, migrate } from "../../db/migrate.ts";
import { MIGRATIONS, oldestTainOf, readMigration } from "../../db/migrations.ts";
import { columnsOf } from "../../db/schema/columns.ts";
import { type AppliedMigration, fitOf, SchemaTooNewError } from "../../db/schema-fit.ts";
import { compiled, SQL } from "../../db/sql.ts";
import * as schema from "../../src/schema.ts";
import { isOlder, VERSION } from "../../src/version.ts";
import { openTestDatabase } from "../support/database.ts";

const tables = Object.values(schema);

async function withClient<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

test("the migrations make the tables as the code describes them, and no others", async () => {
  await using database = await openTestDatabase();
  const made = await withClient(database.url, (client) =>
    client.query<{
      line: string;
    }>(
      `select format('%s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull) as line
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped`,
    ),
  );
  const described = tables.flatMap((table) =>
    Object.entries(columnsOf(table)).map(([column, { type, isNullable }]) => {
      const spelt = type.replace("timestamptz", "timestamp with time zone");
      return `${getTableName(table)}.${column} ${spelt} ${isNullable ? "f" : "t"}`;
    }),
  );
  expect(made.rows.map((row) => row.line).sort()).toEqual(described.sort());
});

test("the migrations make the keys, indexes and checks that the code describes", async () => {
  await using database = await openTestDatabase();
  const made = await withClient(database.url, (client) =>
    client.query<{ line: string }>(`
      select format('%s: %s%s (%s)%s', t.relname, case when i.indisunique then 'unique ' else '' end, x.relname,
          (select string_agg(replace(pg_get_indexdef(i.indexrelid, k, true), '"', ''), ', ' order by k)
            from generate_series(1, i.indnkeyatts) k), case when i.indpred is null then '' else ' where' end) as line
        from pg_index i join pg_class x on x.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
        where t.relnamespace = 'public'::regnamespace
      union all select format('%s: check %s', conrelid::regclass, conname) from pg_constraint
        where contype = 'c' and connamespace = 'public'::regnamespace`),
  );
  const nameOf = (column: object): string =>
    column instanceof SQL ? compiled(column).text : String((column as { name?: string }).name);
  const described = tables.flatMap((table) => {
    const { name, indexes, primaryKeys, uniqueConstraints, checks, columns } = getTableConfig(table);
    const key = columns.find(({ primary }) => primary);
    const unique = [
      ...primaryKeys.map((one) => ({ name: one.getName(), columns: one.columns })),
      ...uniqueConstraints.map((one) => ({ name: one.getName(), columns: one.columns })),
      ...(key ? [{ name: `${name}_pkey`, columns: [key] }] : []),
    ];
    return [
      ...unique.map((one) => `${name}: unique ${one.name} (${one.columns.map(nameOf).join(", ")})`),
      ...indexes.map(({ config }) => {
        const where = config.where ? " where" : "";
        return `${name}: ${config.unique ? "unique " : ""}${config.name} (${config.columns.map(nameOf).join(", ")})${where}`;
      }),
      ...checks.map((one) => `${name}: check ${one.name}`),
    ];
  });
  expect(made.rows.map(({ line }) => line).sort()).toEqual(described.sort());
});

test("every table and column says in the database what it is", async () => {
  await using database = await openTestDatabase();
  const { rows } = await withClient(database.url, (client) =>
    client.query<{ name: string }>(`select c.relname || coalesce('.' || a.attname, '') as name
      from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_migrations'
        and (obj_description(c.oid) is null or col_description(c.oid, a.attnum) is null)`),
  );
  expect(rows).toEqual([]);
});

test("many processes may migrate at once", async () => {
  await using database = await openTestDatabase();
  await withClient(database.url, (client) => client.query("drop schema public cascade; create schema public"));
  await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)));
  const { rows } = await withClient(database.url, (client) =>
    client.query("select name from schema_migrations order by version"),
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
    await other.query(`select pg_advisory_lock(${MIGRATION_LOCK})`);
    const migrated = migrate(database.url, (sentence) => {
      told.push(sentence);
      resolve(sentence);
    });
    expect(await waits).toBe("Another process migrates this database. Waiting until it is done.");
    await other.query(`select pg_advisory_unlock(${MIGRATION_LOCK})`);
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

test("the database keeps what each migration said, also of those that were applied before it did so", async () => {
  await using database = await openTestDatabase();
  const said = () =>
    withClient(database.url, async (client) => {
      const { rows } = await client.query("select name, oldest_tain from schema_migrations order by version");
      return rows.map((row) => [row.name, row.oldest_tain]);
    });
  const expected = await Promise.all(MIGRATIONS.map(async (one) => [one.name, (await readMigration(one)).oldestTain]));
  expect(await said()).toEqual(expected);
  await withClient(database.url, (client) => client.query("alter table schema_migrations drop column oldest_tain"));
  await migrate(database.url);
  expect(await said()).toEqual(expected);
});

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
  await expect(migrate(database.url)).rejects.toThrow("Migration 0001_mirror.sql failed and was rolled back");
  const { rows } = await withClient(database.url, (client) =>
    client.query("select to_regclass('users') as users, (select count(*)::int from schema_migrations) as applied"),
  );
  expect(rows).toEqual([{ users: null, applied: 0 }]);
});

test("a mirror of before 0012 has beside its labels what its issues say", async () => {
  await using database = await openTestDatabase();
  await withClient(database.url, async (client) => {
    await client.query("drop schema public cascade; create schema public");
    await client.query(
      "create table schema_migrations (version integer primary key, name text not null, applied_at timestamptz not null default now())",
    );
    const folder = new URL("../../db/migrations/", import.meta.url);
    await client.query(await readFile(new URL("../uuidv7.sql", folder), "utf8")); // Postgres before 18 needs it.
    for (const name of (await readdir(folder)).filter((one) => one.endsWith(".sql") && one < "0012").sort()) {
      await client.query(await readFile(new URL(name, folder), "utf8"));
      await client.query("insert into schema_migrations (version, name) values ($1, $2)", [
        Number(name.slice(0, 4)),
        name,
      ]);
    }
    await client.query(`insert into issues (repository_id, number, id, is_pull_request, title, state, created_at, updated_at, document, seen_at, seen_by_read, deleted_at)
      values (7, 1, 11, false, 'a', 'open', '2026-01-01Z', '2026-01-02Z', '{}', now(), true, null),
        (7, 2, 12, true, 'b', 'closed', '2026-01-03Z', '2026-01-04Z', '{}', now(), true, now()),
        (7, 3, null, true, 'c', 'open', '2026-01-05Z', '2026-01-06Z', '{}', now(), true, null);
      insert into issue_labels (repository_id, label_id, number) values (7, 1, 1), (7, 2, 1), (7, 1, 2), (7, 1, 3), (7, 1, 4)`);
  });
  await migrate(database.url);
  const { rows } = await withClient(database.url, (client) =>
    client.query(`select number, label_id::integer as label, state, is_pull_request as pull, is_shown as shown, extract(day from created_at)::integer as day
      from issue_labels order by number, label_id`),
  );
  expect(rows).toEqual([
    { number: 1, label: 1, state: "open", pull: false, shown: true, day: 1 },
    { number: 1, label: 2, state: "open", pull: false, shown: true, day: 1 },
    { number: 2, label: 1, state: "closed", pull: true, shown: false, day: 3 },
    { number: 3, label: 1, state: "open", pull: true, shown: false, day: 5 },
  ]);
});
