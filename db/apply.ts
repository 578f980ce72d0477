import type pg from "pg";
import { codeOf } from "../src/failure.ts";
import { repeated } from "../src/waits/repeated.ts";
import { RETRIES } from "../src/waits/retries.ts";
import type { ReadMigration } from "./migrations.ts";

/**
 * A statement that waits for a table's lock holds up all later statements on that table. So a migration waits at most
 * this long for each lock. Then it rolls back and tries again.
 */
const LOCK_WAIT_MS = 400;

/** Another transaction held a table during all tries of a migration. The message names its process. */
export class TableHeldError extends Error {
  override name = "TableHeldError";
}

/** Applies one migration, and records it. @throws Error that names the migration, once nothing of it is left */
export async function applyMigration(
  client: pg.Client,
  migration: ReadMigration,
  tries: number = RETRIES.migration.attempts,
): Promise<void> {
  const apply = migration.isStepwise ? applyStepwise : applyAtOnce;
  try {
    await repeated(() => apply(client, migration), {
      policy: { ...RETRIES.migration, attempts: tries },
      random: Math.random,
      isPassing: isLockTimeout,
    });
  } catch (error) {
    if (isLockTimeout(error)) throw new TableHeldError(await heldBy(client, migration), { cause: error });
    throw new Error(`Migration ${migration.name} failed and was rolled back`, { cause: error });
  }
}

async function applyAtOnce(client: pg.Client, migration: ReadMigration): Promise<void> {
  await client.query("begin");
  try {
    await client.query(`set local lock_timeout = ${LOCK_WAIT_MS}`);
    await client.query(migration.statements);
    await record(client, migration);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/**
 * Builds indexes while all other work goes on. Each statement runs alone, because Postgres refuses to do this in a
 * transaction.
 */
async function applyStepwise(client: pg.Client, migration: ReadMigration): Promise<void> {
  for (const statement of stepsOf(migration.statements)) {
    const [, index] = /^create (?:unique )?index concurrently if not exists (\w+)/.exec(statement) ?? [];
    // An interrupted build leaves an invalid index under this name.
    if (index !== undefined && (await isBroken(client, index))) await client.query(`drop index concurrently ${index}`);
    await client.query(statement);
  }
  await record(client, migration);
}

/** The statements of a stepwise migration, without comments. Pure. */
export function stepsOf(statements: string): string[] {
  const text = statements.replaceAll(/^--.*$/gm, "");
  return text.split(";").flatMap((part) => part.trim() || []);
}

async function isBroken(client: pg.Client, index: string): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from pg_index where indexrelid = to_regclass($1) and not indisvalid",
    [index],
  );
  return rowCount !== 0;
}

/** Records all versions that the migration stands for: Tain 0.3.0, which knows them one by one, then misses none. */
async function record(client: pg.Client, { since, version, name, oldestTain }: ReadMigration): Promise<void> {
  await client.query(
    `insert into schema_migrations (version, name, oldest_tain)
      select n, $3, $4 from generate_series($1::integer, $2::integer) n`,
    [since, version, name, oldestTain],
  );
}

async function heldBy(client: pg.Client, { name }: ReadMigration): Promise<string> {
  const { rows } = await client.query<{ who: string }>(
    `select format('process %s (%s), since %s', pid, coalesce(nullif(application_name, ''), usename), xact_start) as who
      from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
      order by xact_start limit 3`,
  );
  const holders = rows.map(({ who }) => who).join("; ");
  return `Migration ${name} was not made: a table it changes was in use each time. The longest transactions: ${holders || "none now"}`;
}

/** 55P03, lock_not_available. */
function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === "55P03";
}
