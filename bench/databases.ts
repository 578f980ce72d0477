import { randomBytes } from "node:crypto";
import pg from "pg";
import { migrate } from "../db/migrate.ts";

/** A database of this run on the server that `npm run bench` started; dropped with the rest when it is disposed of. */
export interface BenchDatabase extends AsyncDisposable {
  readonly url: string;
}

/** Migrated and empty, or a copy of another database, which must have no connections. */
export async function openBenchDatabase(original?: BenchDatabase): Promise<BenchDatabase> {
  const server = serverUrl();
  const name = `b_${randomBytes(6).toString("hex")}`;
  const template = original ? new URL(original.url).pathname.slice(1) : "template1";
  await administer(server, `create database ${name} template ${template} strategy file_copy`);
  const address = new URL(server);
  address.pathname = `/${name}`;
  if (!original) await migrate(address.href);
  return {
    url: address.href,
    [Symbol.asyncDispose]: async () => void (await administer(server, `drop database if exists ${name} with (force)`)),
  };
}

/**
 * The database of this name, which stays for later runs on the same server. `fill` is given an empty, migrated one. The
 * name is given only once `fill` has ended, so a later run never meets a half-filled database.
 */
export async function openKeptDatabase(
  name: string,
  fill: (database: BenchDatabase) => Promise<unknown>,
): Promise<BenchDatabase> {
  const server = serverUrl();
  const [found] = await administer(server, "select from pg_database where datname = $1", [name]);
  if (!found) {
    const begun = await openBenchDatabase();
    await fill(begun);
    await administer(server, `alter database ${new URL(begun.url).pathname.slice(1)} rename to ${name}`);
  }
  const address = new URL(server);
  address.pathname = `/${name}`;
  return { url: address.href, [Symbol.asyncDispose]: async () => {} };
}

/** The Redis of the run, and a prefix of the caller's own. */
export function benchRedis(): { url: string; prefix: string } {
  return { url: required("TEST_REDIS_URL"), prefix: `{b-${randomBytes(3).toString("hex")}}` };
}

async function administer(server: string, statement: string, values: unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    return (await client.query(statement, values)).rows;
  } finally {
    await client.end();
  }
}

const serverUrl = () => required("TEST_DATABASE_URL");

function required(name: string): string {
  const value = process.env[name];
  if (!value)
    throw new Error(`${name} is not set: start the benchmarks with \`npm run bench\`, which starts the stores`);
  return value;
}
