import { readFile } from "node:fs/promises";
import pg from "pg";
import { readSecretFiles } from "../src/config/secret-files.ts";
import { codeOf, isBug, reasonOf, wholeReasonOf } from "../src/failure.ts";
import { waitAfterMs } from "../src/waits/backoff.ts";
import { repeated, wait } from "../src/waits/repeated.ts";
import { RETRIES } from "../src/waits/retries.ts";
import { applyMigration } from "./apply.ts";
import { MIGRATIONS, type ReadMigration, readMigration } from "./migrations.ts";
import { grantRoles } from "./roles.ts";
import { APPLIED, type AppliedMigration, fitOf } from "./schema-fit.ts";
import { compiled } from "./sql.ts";
import { postgresTooOld, UnfitStoreError } from "./unfit.ts";

/**
 * Whoever migrates holds this lock, which only owners of the table may take. It disturbs no statement but such as alter
 * the table, so migrations must leave the table as it is.
 */
export const MIGRATION_LOCK = "lock table schema_migrations in share update exclusive mode nowait";

/** Postgres is not there, or lets nobody in by this address. */
class NoPostgresError extends Error {
  override name = "NoPostgresError";
}

/** Makes the table of applied migrations. */
const RECORD = `
  create table if not exists schema_migrations (
    version integer primary key, name text not null, applied_at timestamptz not null default now(),
    oldest_tain text check (oldest_tain ~ '^\\d+\\.\\d+\\.\\d+$'))`;

/**
 * Brings the database to the newest schema: each numbered file of `migrations/` once, in order, each in its own
 * transaction, or stepwise. Many processes may call this at once: a lock lets one work, and the others then find the
 * work done. If a newer Tain has migrated the database, and this one may work with that schema, nothing is to
 * be done. At the end, the roles are granted their rights. Returns a sentence for the operator if the roles could not
 * be made, otherwise null.
 * @param tell says to the operator why nothing happens
 * @throws UnfitStoreError when this Tain must not work with the database, NoPostgresError, TableHeldError
 */
export async function migrate(databaseUrl: string, tell: (line: string) => void = () => {}): Promise<string | null> {
  const migrations = await Promise.all(MIGRATIONS.map(readMigration));
  await using resources = new AsyncDisposableStack();
  const open = async () => {
    const opened = await openMigrator(databaseUrl);
    resources.defer(() => opened.end());
    return opened;
  };
  const client = await open();
  const server = await serverVersion(client);
  await makeRecord(client);
  // The lock lasts for a transaction, and each migration has one of its own.
  const lock = await open();
  // Without the lock another process may migrate. What runs then fails with its connection.
  for (const end of ["error", "end"] as const) lock.on(end, () => void client.end());
  await lockMigrations(lock, tell);
  const { fit, missing } = await examine(client, migrations);
  // Gives an older Postgres what the migrations take from 18.
  if (server < 180_000) await client.query(await readFile(new URL("./uuidv7.sql", import.meta.url), "utf8"));
  for (const migration of missing) await applyMigration(client, migration);
  // A newer Tain has granted what its own tables need.
  return fit === "newer" ? null : await grantRoles(client);
}

/** The migrations that `migrate` would apply now. It changes nothing. @throws as `migrate` does */
export async function missingMigrations(databaseUrl: string): Promise<ReadMigration[]> {
  const migrations = await Promise.all(MIGRATIONS.map(readMigration));
  const client = await openMigrator(databaseUrl);
  try {
    return (await examine(client, migrations)).missing;
  } finally {
    await client.end();
  }
}

/** Asks which of the migrations are missing. @throws UnfitStoreError */
async function examine(client: pg.Client, migrations: readonly ReadMigration[]) {
  const { rows: applied } = await client.query<AppliedMigration>(compiled(APPLIED).text).catch((error: unknown) => {
    if (codeOf(error) === "42P01") return { rows: [] }; // No such table: nothing was ever migrated.
    throw error;
  });
  const fit = fitOf(applied);
  if (fit instanceof UnfitStoreError) throw fit;
  const missing = migrations.filter(({ version }) => !applied.some((row) => row.version === version));
  return { fit, missing };
}

/** Opens the connection that migrates. @throws NoPostgresError */
async function openMigrator(databaseUrl: string): Promise<pg.Client> {
  try {
    const client = new pg.Client({ connectionString: databaseUrl, application_name: "tain migrate" });
    await client.connect();
    return client;
  } catch (error) {
    // The reason may name the server. It never holds the password.
    const message = `Postgres cannot be used (${reasonOf(error)}): see that DATABASE_URL is right and the server runs`;
    throw new NoPostgresError(message);
  }
}

/** Makes the table of applied migrations, if it is not there. Several processes may do so at once. */
async function makeRecord(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ isThere: boolean }>(
    `select to_regclass('schema_migrations') is not null as "isThere"`,
  );
  if (rows[0]?.isThere) return;
  await repeated(() => client.query(RECORD), {
    policy: RETRIES.migration,
    random: Math.random,
    // unique_violation of the catalog, duplicate_table: another was quicker.
    isPassing: (error) => ["23505", "42P07"].includes(String(codeOf(error))),
  });
}

/**
 * Waits for as long as another migrates, which may be hours. If that process dies, its lock is gone.
 *
 * `create index concurrently` waits for all earlier statements. A statement that waits for the migration lock would
 * block it for ever. So processes only try for the lock, and try again later. The transaction of the lock holds no
 * snapshot, so nothing waits for it, and no limit of the server's may end it.
 */
async function lockMigrations(client: pg.Client, tell: (line: string) => void): Promise<void> {
  await client.query(`select set_config(name, '0', false) from pg_settings
    where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')`);
  for (let attempt = 1; ; attempt++) {
    await client.query("begin");
    try {
      await client.query(MIGRATION_LOCK);
      return;
    } catch (error) {
      if (codeOf(error) !== "55P03") throw error; // lock_not_available
      await client.query("rollback");
    }
    if (attempt === 1) tell("Another process migrates this database. Waiting until it is done.");
    await wait(waitAfterMs(attempt, RETRIES.othersMigration, Math.random));
  }
}

/** As in `server_version_num`. @throws StoreTooOldError */
async function serverVersion(client: pg.Client): Promise<number> {
  const asked = "select current_setting('server_version_num')::integer as version";
  const { rows } = await client.query<{ version: number }>(asked);
  const version = rows[0]?.version ?? 0;
  const refusal = postgresTooOld(version);
  if (refusal) throw refusal;
  return version;
}

if (import.meta.main) {
  const { env, problems } = readSecretFiles(process.env, ["DATABASE_URL", "DATABASE_DIRECT_URL"]);
  if (problems.size > 0) {
    console.error(`Cannot start:\n  ${[...problems.values()].join("\n  ")}`);
    process.exit(1);
  }
  // Its lock outlasts a transaction.
  const url = env.DATABASE_DIRECT_URL?.trim() || env.DATABASE_URL?.trim();
  if (!url) {
    console.error(
      "DATABASE_URL is not set. Set it to the Postgres database to migrate, e.g. postgres://user:password@host:5432/tain",
    );
    process.exit(1);
  }
  try {
    const missing = await migrate(url, (line) => console.error(line));
    if (missing !== null) console.error(missing);
  } catch (error) {
    if (isBug(error)) throw error;
    console.error(wholeReasonOf(error));
    process.exitCode = 1;
  }
}
