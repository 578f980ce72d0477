import pg from "pg";
import { RETRIES } from "../src/waits/retries.ts";
import { ANNOUNCED } from "./database.ts";
import { holdersEnd, lockHolders } from "./holders.ts";
import { isPostgresOutage } from "./outage.ts";
import { compiled } from "./sql.ts";

interface Listening {
  onText: (text: string) => void;
  /** Called when an established connection breaks: later texts are lost. */
  onLost: (error: Error) => void;
  /** How long Postgres may take to let the connection in. */
  connectMs?: number;
  /** How long to wait for running transactions that found no listener. All new listeners wait together. */
  waitMs?: number;
}

/** A transaction that found no listener does not end. */
class NotEndingError extends Error {
  override name = "NotEndingError";
  override message = "A transaction that announces changes does not end";
  readonly code = "55P03"; // lock_not_available
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
  const { text, values } = compiled(lockHolders("listeners", "AccessShareLock"));
  client.on("error", lost);
  client.on("end", () => lost(new Error("The connection to Postgres was closed")));
  client.on("notification", ({ payload = "" }) => onText(payload));
  try {
    await client.connect();
    await client.query(`listen ${ANNOUNCED}`);
    // Rows of listeners that ended without a word only cost notifications that nobody hears.
    await client.query("delete from listeners where pid not in (select pid from pg_stat_activity)");
    await client.query("insert into listeners (pid) values (pg_backend_pid()) on conflict do nothing");
    const look = async () => (await client.query<{ holder: string }>(text, [...values])).rows;
    const policy = { ...RETRIES.logEnd, withinMs: waitMs };
    if (!(await holdersEnd(look, { policy, random: Math.random }))) throw new NotEndingError();
  } catch (error) {
    await client.end();
    throw error;
  }
  isOver = false;
  return {
    [Symbol.asyncDispose]: async () => {
      const forgotten = isOver ? null : client.query("delete from listeners where pid = pg_backend_pid()");
      isOver = true;
      try {
        await forgotten;
      } catch (error) {
        // The next listener forgets the row.
        if (!isPostgresOutage(error)) throw error;
      } finally {
        await client.end();
      }
    },
  };
}
