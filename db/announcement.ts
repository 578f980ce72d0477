import pg from "pg";
import { ANNOUNCED, LISTENING, WRITING } from "./database.ts";

interface Listening {
  onText: (text: string) => void;
  /** Called when an established connection breaks: later texts are lost. */
  onLost: (error: Error) => void;
  /** How long Postgres may take to let the connection in. */
  connectMs?: number;
  /** How long to wait for running transactions that found no listener. All new listeners wait together. */
  waitMs?: number;
}

/**
 * Listens on its own connection until it is disposed of.
 * @throws an error like that of a Postgres outage, also if those transactions do not end in time
 */
export async function listen(
  databaseUrl: string,
  { onText, onLost, connectMs = 5_000, waitMs = 10_000 }: Listening,
): Promise<AsyncDisposable> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: "tain subscriptions",
    keepAlive: true,
    connectionTimeoutMillis: connectMs,
    query_timeout: waitMs,
  });
  // True until the connection is established: an earlier failure is thrown, and `onLost` is not called.
  let isOver = true;
  const lost = (error: Error) => {
    if (isOver) return;
    isOver = true;
    onLost(error);
  };
  client.on("error", lost);
  client.on("end", () => lost(new Error("The connection to Postgres was closed")));
  client.on("notification", ({ payload = "" }) => onText(payload));
  try {
    await client.connect();
    // The server itself ends its wait behind a client that has given up.
    await client.query("select set_config('lock_timeout', $1, false)", [String(2 * waitMs)]);
    await client.query(`listen ${ANNOUNCED}`);
    await client.query("select pg_advisory_lock_shared($1)", [LISTENING]);
    // A transaction that looked earlier saw no listener; it commits before this lock is granted. A transaction that
    // looks from now on finds the listeners' lock taken.
    await client.query("select pg_advisory_lock($1), pg_advisory_unlock($1)", [WRITING]);
  } catch (error) {
    await client.end();
    throw error;
  }
  isOver = false;
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      await client.end();
    },
  };
}
