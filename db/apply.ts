import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { codeOf } from "../src/failure.ts";
import type { ReadMigration } from "./migrations.ts";

/**
 * A statement that waits for a lock holds up all statements behind it. So a migration waits this long at most, gives
 * way, and comes again. Each statement of it may wait as long once more.
 */
const LOCK_MS = 400;
/** It gives up after some two minutes. */
const TRIES = 60;
const PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 2_000;

/** Somebody's transaction has held a table for as long as the migration came again. The message says whose. */
export class TableHeldError extends Error {
  override name = "TableHeldError";
}

/** Applies one migration, and records it. @throws Error that names the migration, once nothing of it is left */
export async function applyMigration(
  client: pg.Client,
  migration: ReadMigration,
  tries: number = TRIES,
): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      return await (migration.isStepwise ? applyStepwise : applyAtOnce)(client, migration);
    } catch (error) {
      if (!isLockTimeout(error))
        throw new Error(`Migration ${migration.name} failed and was rolled back`, { cause: error });
      if (tried >= tries) throw new TableHeldError(await heldBy(client, migration), { cause: error });
    }
    await delay(Math.min(PAUSE_MS * tried, LONGEST_PAUSE_MS));
  }
}

async function applyAtOnce(client: pg.Client, migration: ReadMigration): Promise<void> {
  await client.query("begin");
  try {
    await client.query(`set local lock_timeout = ${LOCK_MS}`);
    await client.query(migration.statements);
    await record(client, migration);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/**
 * Indexes that are built beside all other work. One statement at a time: Postgres builds none so within a transaction.
 */
async function applyStepwise(client: pg.Client, migration: ReadMigration): Promise<void> {
  for (const statement of stepsOf(migration.statements)) {
    const [, index] = /^create index concurrently if not exists (\w+)/.exec(statement) ?? [];
    // An interrupted build leaves an index that nothing uses, and that has the name.
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

async function record(client: pg.Client, { version, name, oldestTain }: ReadMigration): Promise<void> {
  const row = [version, name, oldestTain];
  await client.query("insert into schema_migrations (version, name, oldest_tain) values ($1, $2, $3)", row);
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
