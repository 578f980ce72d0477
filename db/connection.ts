import pg from "pg";
import { drizzle, type NodePgDatabase } from "./drizzle.ts";
import { raiseTouched } from "./revisions.ts";

export type Database = NodePgDatabase & { $client: pg.Pool };
export type Transaction = Parameters<Parameters<Database["transaction"]>[0]>[0];
/** A database or a transaction in it. */
export type Queries = Pick<Database, "execute" | "select" | "insert" | "update" | "delete">;

/**
 * Opens a pool. `maxConnections` bounds it; a connection is made when it is first needed, so opening never fails.
 * Close it with `database.$client.end()`. Its transactions raise the revisions of what was touched in them.
 */
export function openDatabase(
  url: string,
  options: { maxConnections?: number; applicationName?: string } = {},
): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.maxConnections ?? 10,
    application_name: options.applicationName ?? "tain",
    connectionTimeoutMillis: 5_000,
    // Statements that do not need each other's answers go out together; whoever waits for each notices nothing.
    pipeline: true,
  });
  // An idle connection that breaks (Postgres restarts) leaves the pool by itself; the next query tells its caller.
  pool.on("error", () => {});
  // One that breaks between two statements of a transaction reports to nobody else, and would end the process; the
  // transaction learns of it by its next statement.
  pool.on("connect", (client) => client.on("error", () => {}));
  const database = drizzle(pool);
  const transaction = database.transaction.bind(database);
  database.transaction = async (run, config) => {
    let raised: Promise<void> | undefined;
    const result = await transaction(async (tx) => {
      const result = await run(tx);
      // The commit is sent behind it without waiting for its answer, and is a rollback where it is refused.
      raised = raiseTouched(tx);
      raised.catch(() => {});
      return result;
    }, config);
    await raised;
    return result;
  };
  return database;
}
