import { randomBytes } from "node:crypto";
import pg from "pg";
import { onTestFinished, TestRunner } from "vitest";
import { templateName } from "./global-setup.ts";

export interface TestDatabase extends AsyncDisposable {
  /** Connection string of a superuser on this test's own database. */
  readonly url: string;
  /**
   * Removes the database, or keeps it and prints its address when the test failed.
   * Throws when connections to it are still open: whoever opened them forgot to close them.
   */
  drop(failed?: boolean): Promise<void>;
}

/**
 * Clones the migrated template (some 50 ms).
 *
 * Opened inside a test, it is dropped once the test has ended, and kept when the test failed: `await using`
 * is then enough. Opened in a `beforeAll`, whoever opened it calls `drop(failed)`.
 */
export async function openTestDatabase(): Promise<TestDatabase> {
  const server = required("TEST_DATABASE_URL");
  const name = `t_${randomBytes(6).toString("hex")}`;
  await administer(server, (admin) => admin.query(`CREATE DATABASE ${name} TEMPLATE ${templateName}`));
  const address = new URL(server);
  address.pathname = `/${name}`;

  let open = true;
  const drop = async (failed = false) => {
    if (!open) return;
    open = false;
    if (failed) return console.error(`The test failed; its database is kept: ${name}`);
    await administer(server, (admin) => dropDatabase(admin, name));
  };

  // Whether the test failed is known only after `await using` has let go of the database.
  const insideTest = TestRunner.getCurrentTest() !== undefined;
  if (insideTest) onTestFinished(({ task }) => drop(task.result?.state === "fail"));
  return {
    url: address.href,
    drop,
    [Symbol.asyncDispose]: async () => {
      if (!insideTest) await drop();
    },
  };
}

/**
 * The Redis of this run and a prefix of the caller's own, hash-tagged so that it also holds on a Redis Cluster,
 * where keys used together must share a slot.
 */
export function testRedis(): { url: string; prefix: string } {
  return { url: required("TEST_REDIS_URL"), prefix: `{t-${randomBytes(3).toString("hex")}}` };
}

async function dropDatabase(admin: pg.Client, name: string): Promise<void> {
  try {
    // Postgres itself waits up to five seconds here for connections that are just closing.
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

async function administer(server: string, act: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  try {
    await act(admin);
  } finally {
    await admin.end();
  }
}

function required(name: "TEST_DATABASE_URL" | "TEST_REDIS_URL"): string {
  const value = process.env[name];
  if (!value)
    throw new Error(`${name} is not set: run \`npm test\`, which starts a Postgres and a Redis for the tests`);
  return value;
}
