import { stepsOf } from "./apply.ts";
import { MIGRATIONS, type ReadMigration, readMigration } from "./migrations.ts";
import { openMigrator } from "./migrator.ts";
import { APPLIED, type AppliedMigration, fitOf } from "./schema-fit.ts";
import { UnfitStoreError } from "./unfit.ts";

/** A migration that the database has not yet, and what it will be like. */
export interface PlannedMigration {
  name: string;
  /** The oldest Tain whose processes go on beside it. */
  oldestTain: string;
  /** New tables. */
  makes: string[];
  /** Tables that get other columns, rules or triggers. Each is locked for a moment. */
  changes: string[];
  /** Tables that get an index, beside all other work. */
  indexes: string[];
  /** Tables that are written anew. Who writes to them waits meanwhile. */
  rewrites: string[];
  /** About how long it takes, for the tables as large as they are. */
  seconds: number;
}

/**
 * How much of a table is rewritten in a second, and how much is read for an index. Seen with Postgres 15 on two cores
 * with a load of 30: 67 MB of issues were written with their search and indexed by it in 72 s, and 117 MB were read for
 * an index in 0.5 s.
 */
const REWRITTEN_BYTES = 1_000_000;
const INDEXED_BYTES = 100_000_000;
/** Those from before 0.3.0. Later ones leave such work to a worker, in batches. */
const REWRITES: Record<string, string[]> = {
  "0007_search.sql": ["issues", "issue_comments"],
  "0012_label_lists.sql": ["issue_labels"],
};

/** What `migrate` would do now. It changes nothing. @throws UnfitStoreError as `migrate` does */
export async function planMigrations(databaseUrl: string): Promise<PlannedMigration[]> {
  const migrations = await Promise.all(MIGRATIONS.map(readMigration));
  const client = await openMigrator(databaseUrl);
  try {
    const applied = await client.query<AppliedMigration>(APPLIED.compiled().text).then(
      ({ rows }) => rows,
      (error: { code?: string }) => {
        if (error.code === "42P01") return []; // No such table: nothing was ever migrated.
        throw error;
      },
    );
    const fit = fitOf(applied);
    if (fit instanceof UnfitStoreError) throw fit;
    const missing = migrations.filter(({ version }) => !applied.some((one) => one.version === version));
    const { rows } = await client.query<{ name: string; bytes: string }>(
      `select relname as name, pg_table_size(oid) as bytes from pg_class
        where relkind = 'r' and relnamespace = current_schema()::regnamespace`,
    );
    const sizes = new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]));
    return missing.map((migration) => plannedOf(migration, sizes));
  } finally {
    await client.end();
  }
}

/** Pure. @param sizes the bytes of each table that is there */
export function plannedOf(migration: ReadMigration, sizes: ReadonlyMap<string, number>): PlannedMigration {
  const { name, oldestTain, statements } = migration;
  const text = stepsOf(statements).join(";\n").toLowerCase();
  const named = (pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, table = ""]) => table))];
  const makes = named(/\bcreate (?:unlogged )?table (?:if not exists )?(\w+)/g);
  const isThere = (table: string) => !makes.includes(table);
  const rewrites = REWRITES[name] ?? [];
  const indexes = named(/\bcreate (?:unique )?index [^;]*? on (\w+)/g).filter(isThere);
  const changes = [
    ...named(/\balter table (?:if exists )?(\w+)/g),
    ...named(/\bcreate trigger [^;]*? on (\w+)/g),
  ].filter((table) => isThere(table) && !rewrites.includes(table));
  const bytesOf = (tables: string[]) => tables.reduce((sum, table) => sum + (sizes.get(table) ?? 0), 0);
  const seconds = bytesOf(rewrites) / REWRITTEN_BYTES + bytesOf(indexes) / INDEXED_BYTES;
  return { name, oldestTain, makes, changes: [...new Set(changes)], indexes, rewrites, seconds: Math.ceil(seconds) };
}
