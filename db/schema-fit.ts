import { isOlder, VERSION } from "../src/version.ts";
import type { Queries, StatementLimits } from "./database.ts";
import { MIGRATIONS } from "./migrations.ts";
import { sql } from "./sql.ts";
import { postgresTooOld, UnfitStoreError } from "./unfit.ts";

/** The database has been migrated beyond what this Tain works with. */
export class SchemaTooNewError extends UnfitStoreError {
  override name = "SchemaTooNewError";
}

/** The database was last migrated by a Tain whose migrations this one no longer has. */
export class SchemaTooOldError extends UnfitStoreError {
  override name = "SchemaTooOldError";
}

/**
 * How the schema of the database fits this code. "same": it is this code's. "newer": this code may work beside it.
 * "missing": migrations have to run first. An error: this code must not work with the database.
 */
export type SchemaFit = "same" | "newer" | "missing" | UnfitStoreError;

/** A row of `schema_migrations`, with the columns that every version of Tain reads. */
export interface AppliedMigration {
  version: number;
  /**
   * The oldest Tain that works with the schema after this migration. Null: it was applied before Tain recorded that.
   */
  oldestTain: string | null;
}

interface OnServer {
  /** As in `server_version_num`. */
  onServer: number;
}

/**
 * Reads the applied migrations. Older versions of Tain read the table with this same statement, so the columns
 * `version` and `oldest_tain` must keep their names and meanings for good. Reading by way of JSON also works where
 * `oldest_tain` does not exist, in a database that is too old.
 */
export const APPLIED = sql`
  select version, to_jsonb(m) ->> 'oldest_tain' as "oldestTain",
    current_setting('server_version_num')::integer as "onServer" from schema_migrations m`;

/** How the database and its schema fit this code now. @throws the database's error if it cannot be asked */
export async function schemaFit(db: Queries, limits?: StatementLimits): Promise<SchemaFit> {
  const applied = await db.query<AppliedMigration & OnServer>(APPLIED, limits).catch((error: { code?: string }) => {
    if (error.code === "42P01") return []; // No such table: nothing was ever migrated.
    throw error;
  });
  const [first] = applied;
  return (first && postgresTooOld(first.onServer)) ?? fitOf(applied);
}

/**
 * Pure. `known` are the numbers of the migrations that the Tain of this `version` has. The first is the baseline, which
 * stands for all before it.
 */
export function fitOf(
  applied: readonly AppliedMigration[],
  known: readonly number[] = MIGRATIONS.map(({ version }) => version),
  version: string = VERSION,
): SchemaFit {
  const named = applied.flatMap(({ oldestTain }) => oldestTain ?? []);
  const oldest = named.reduce<string | null>((last, one) => (last !== null && isOlder(one, last) ? last : one), null);
  if (oldest !== null && isOlder(version, oldest))
    return new SchemaTooNewError(
      `This is Tain ${version}; the database has been migrated for ${oldest} and later`,
      `start ${oldest} or later, or restore a backup from before that migration`,
    );
  const baseline = Math.min(...known);
  const isApplied = (version: number) => applied.some((row) => row.version === version);
  if (!isApplied(baseline) && applied.some((row) => row.version < baseline))
    return new SchemaTooOldError(
      `A Tain before 0.3.0 migrated the database, up to migration ${Math.max(...applied.map((row) => row.version))}`,
      `migrate it with Tain 0.3.0 first, then with this one (${version})`,
    );
  const isMissing = !known.every(isApplied);
  const unknown = applied.filter((row) => row.version > baseline && !known.includes(row.version));
  if (unknown.length === 0) return isMissing ? "missing" : "same";
  // The schema lacks migrations of this code, or a newer migration does not say which Tain may work with it.
  if (isMissing || unknown.some(({ oldestTain }) => oldestTain === null))
    return new SchemaTooNewError(
      `This is Tain ${version}; the database has migration ${Math.max(...unknown.map((row) => row.version))} of another Tain`,
      "start the Tain that made it, or restore a backup from before that migration",
    );
  return "newer";
}
