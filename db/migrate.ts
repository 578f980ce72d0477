import { readdir, readFile } from "node:fs/promises";
import pg from "pg";
import type { Limits, Queries } from "./database.ts";
import { sql } from "./sql.ts";

const DIRECTORY = new URL("./migrations/", import.meta.url);
/** Any constant will do; it names the lock among the other advisory locks of the database. */
const LOCK = 7_241_946;

/** The database's schema is newer than this code knows. */
export class SchemaTooNewError extends Error {
  override name = "SchemaTooNewError";
}

/**
 * Brings the database to the newest schema: each numbered file of `migrations/` once, in order, each in its own
 * transaction. Many processes may call it at once: an advisory lock lets one work and the others find it done.
 * @throws SchemaTooNewError when a newer Tain has been here: run that one, or restore an older database
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "tain migrate" });
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    await client.query(
      "create table if not exists schema_migrations (version integer primary key, name text not null, applied_at timestamptz not null default now())",
    );
    const known = await migrationFiles();
    const applied = await appliedVersions(client);
    refuseNewer(known, applied);
    for (const { version, name } of known) {
      if (applied.includes(version)) continue;
      const statements = await readFile(new URL(name, DIRECTORY), "utf8");
      await client.query("begin");
      try {
        await client.query(statements);
        await client.query("insert into schema_migrations (version, name) values ($1, $2)", [version, name]);
        await client.query("commit");
      } catch (error) {
        await client.query("rollback");
        throw new Error(`Migration ${name} failed and was rolled back`, { cause: error });
      }
    }
  } finally {
    await client.end(); // The lock goes with the session.
  }
}

/** What keeps a process from working with this database: "missing" migrations, or a "newer" schema; null when it fits. */
export async function schemaMismatch(db: Queries, limits?: Limits): Promise<"missing" | "newer" | null> {
  const known = (await migrationFiles()).map((file) => file.version);
  const applied = await db.query<{ version: number }>(sql`select version from schema_migrations`, limits).then(
    (rows) => rows.map((row): number => row.version),
    (error: { code?: string }) => {
      if (error.code === "42P01") return [] as number[]; // No such table: nothing was ever migrated.
      throw error;
    },
  );
  if (applied.some((version) => !known.includes(version))) return "newer";
  return known.every((version) => applied.includes(version)) ? null : "missing";
}

async function migrationFiles(): Promise<{ version: number; name: string }[]> {
  const names = (await readdir(DIRECTORY)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort();
  return names.map((name) => ({ version: Number(name.slice(0, 4)), name }));
}

async function appliedVersions(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query<{ version: number }>("select version from schema_migrations");
  return rows.map((row) => row.version);
}

function refuseNewer(known: { version: number }[], applied: number[]): void {
  const newest = known.at(-1)?.version ?? 0;
  const unknown = applied.filter((version) => version > newest);
  if (unknown.length > 0) {
    throw new SchemaTooNewError(
      `The database has schema ${Math.max(...unknown)}, this Tain knows ${newest}. Run the newer Tain, or restore a database of this version.`,
    );
  }
}

if (import.meta.main) {
  const url = process.env.DATABASE_URL;
  if (!url) {
    console.error(
      "DATABASE_URL is not set. Set it to the Postgres database to migrate, e.g. postgres://user:password@host:5432/tain",
    );
    process.exit(1);
  }
  await migrate(url);
}
