import { stepsOf } from "./apply.ts";
import { MIGRATIONS, type ReadMigration, readMigration } from "./migrations.ts";
import { openMigrator } from "./migrator.ts";
import { APPLIED, type AppliedMigration, fitOf } from "./schema-fit.ts";
import { compiled } from "./sql.ts";
import { UnfitStoreError } from "./unfit.ts";

/** A migration that has not been applied yet, and its effects. */
export interface PlannedMigration {
  name: string;
  /** The oldest Tain whose processes may go on after this migration. */
  oldestTain: string;
  /** New tables. */
  makes: string[];
  /** Tables whose columns, constraints or triggers change. Each is locked for a moment. */
  changes: string[];
  /** Tables that get an index while all other work goes on. */
  indexes: string[];
  /** Tables that are rewritten. Writers of these tables wait meanwhile. */
  rewrites: string[];
  /** About how long the migration takes with the present sizes of the tables. */
  seconds: number;
}

/**
 * The bytes of a table that are rewritten in a second. The next constant: the bytes that are read for an index.
 * Measured with Postgres 15 on two cores with a load of 30: rewriting 67 MB of issues with their search index took 72
 * s, and reading 117 MB for an index took 0.5 s.
 */
const REWRITTEN_BYTES = 1_000_000;
const INDEXED_BYTES = 100_000_000;
/** The tables that migrations from before 0.3.0 rewrite. Later migrations leave such work to a worker, in batches. */
const REWRITES: Readonly<Record<string, string[]>> = {
  "0007_search.sql": ["issues", "issue_comments"],
  "0012_label_lists.sql": ["issue_labels"],
};

/** What `migrate` would do now. It changes nothing. @throws UnfitStoreError as `migrate` does */
export async function planMigrations(databaseUrl: string): Promise<PlannedMigration[]> {
  const migrations = await Promise.all(MIGRATIONS.map(readMigration));
  const client = await openMigrator(databaseUrl);
  try {
    const applied = await client.query<AppliedMigration>(compiled(APPLIED).text).then(
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
