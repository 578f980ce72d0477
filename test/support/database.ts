import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject, onTestFinished, TestRunner } from "vitest";
import { askForStores } from "./run-stores.ts";
import { EMPTY_TEMPLATE } from "./template.ts";

export type Administrator = Pick<pg.ClientBase, "query">;

/** A test file that imports this module needs the stores. The first such file of a run has them opened, and waits. */
const STORES = await askForStores(inject("storesSocket"));

/** The connection is kept for the next database. A new one would cost as much as the cloning. */
const ADMINISTRATORS = new pg.Pool({
  connectionString: STORES.databaseUrl,
  max: 1,
  allowExitOnIdle: true,
}).on("error", (error) => console.error("The connection that makes test databases has ended", error));

export interface TestDatabase extends AsyncDisposable {
  /** The connection string of a superuser for this test's own database. */
  readonly url: string;
  /**
   * Removes the database. If the test failed, it is kept and its name is printed.
   * @throws Error when connections to it are still open, which the test forgot to close
   */
  drop(failed?: boolean): Promise<void>;
}

/**
 * Clones a template (some 50 ms), by default the migrated one that is empty.
 * A database that is opened inside a test is dropped once the test has ended, and kept when the test failed: `await
 * using` is then enough. A `beforeAll` that opens one needs an `afterAll` that calls `drop(failed)`.
 */
export async function openTestDatabase(template = EMPTY_TEMPLATE): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString("hex")}`;
  // FILE_COPY copies the files. Writing each page into Postgres' log takes half as long again.
  await administer((admin) => admin.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`));

  let open = true;
  const drop = async (failed = false) => {
    if (!open) return;
    open = false;
    if (failed) return console.error(`The test failed; its database is kept: ${name}`);
    await administer((admin) => dropDatabase(admin, name));
  };

  // Whether the test failed is known only after `await using` has let go of the database.
  const insideTest = TestRunner.getCurrentTest() !== undefined;
  if (insideTest) onTestFinished(({ task }) => drop(task.result?.state === "fail"));
  return {
    url: addressOf(name),
    drop,
    [Symbol.asyncDispose]: async () => {
      if (!insideTest) await drop();
    },
  };
}

/** The address of one database of the server, as a superuser. */
export function addressOf(database: string): string {
  const address = new URL(STORES.databaseUrl);
  address.pathname = `/${database}`;
  return address.href;
}

/** The address of the same database, with the rights of the role alone. */
export function asRole(databaseUrl: string, role: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("options", `-c role=${role}`);
  return url.href;
}

/**
 * The Redis of this run, and a prefix of the caller's own. The prefix is a hash tag, because a Redis Cluster wants keys
 * that are used together in one slot.
 */
export function testRedis(): { url: string; prefix: string } {
  return { url: STORES.redisUrl, prefix: `{t-${randomBytes(3).toString("hex")}}` };
}

async function dropDatabase(admin: Administrator, name: string): Promise<void> {
  try {
    // Postgres itself waits here up to five seconds for connections that are just closing.
    await admin.query(`DROP DATABASE ${name}`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && error.code === "55006")) throw error;
    const { rows } = await admin.query<{ application_name: string; query: string }>(
      "SELECT application_name, query FROM pg_stat_activity WHERE datname = $1",
      [name],
    );
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    const leaked = rows.map(
      (row) => `${row.application_name || "unnamed"}, last statement: ${row.query.slice(0, 200)}`,
    );
    throw new Error(`The test left ${rows.length} connections open:\n  ${leaked.join("\n  ")}`, { cause: error });
  }
}

/** A connection for what the mirror itself never does, such as holding rows or acting as another role. */
export async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Runs statements on the server's own database, on one connection. */
export async function administer<T>(act: (admin: Administrator) => Promise<T>): Promise<T> {
  const admin = await ADMINISTRATORS.connect();
  try {
    return await act(admin);
  } finally {
    admin.release();
  }
}

/**
 * SQL for the locks that somebody waits for in this database. Other test files use other databases of the same server.
 */
export const AWAITED_LOCKS = `(select l.* from pg_locks l join pg_database d on d.oid = l.database
  where d.datname = current_database() and not l.granted) as awaited_locks`;
