import pg from "pg";
import type { Transaction } from "./database.ts";
import { sql } from "./sql.ts";

const CHANNEL = "tain_changes";
/** The keys of two advisory locks; any constants will do. All listeners hold the first, shared. */
const LISTENING = 7_241_947;
/** Transactions that have looked for listeners hold this one, shared. A listener that begins waits for them. */
const WRITING = 7_241_948;

/**
 * Tells listeners in every process, once the transaction is committed. A transaction that tells makes all others that tell
 * wait for its commit, so it does so only where somebody listens. To look for them is to try their lock, and to give it back in
 * the same moment: two that look at once may each take the other for a listener, and tell nobody. What Postgres knows
 * of all locks would be sure, and takes milliseconds to ask for.
 */
export async function announce(tx: Transaction, texts: readonly string[]): Promise<void> {
  if (texts.length === 0) return;
  await tx.prepared(sql`
    with heard as materialized (
      select case
        when not pg_try_advisory_xact_lock_shared(${WRITING}) then true
        when pg_try_advisory_lock(${LISTENING}) then not pg_advisory_unlock(${LISTENING})
        else true end as is_heard)
    select pg_notify(${CHANNEL}, one) from unnest(${[...new Set(texts)]}::text[]) as x(one), heard where is_heard`);
}

/** Listens on its own connection until it is disposed of. `onLost`: it broke, and later texts are not heard. */
export async function listen(
  databaseUrl: string,
  { onText, onLost }: { onText: (text: string) => void; onLost: (error: Error) => void },
): Promise<AsyncDisposable> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: "tain subscriptions",
    keepAlive: true,
  });
  let isOver = false;
  const lost = (error: Error) => {
    if (isOver) return;
    isOver = true;
    onLost(error);
  };
  client.on("error", lost);
  client.on("end", () => lost(new Error("The connection to Postgres was closed")));
  client.on("notification", ({ payload = "" }) => onText(payload));
  await client.connect();
  try {
    await client.query(`listen ${CHANNEL}`);
    await client.query("select pg_advisory_lock_shared($1)", [LISTENING]);
    // A transaction that looked before saw no listener, and commits before this lock is granted. One that looks meanwhile finds it taken.
    await client.query("select pg_advisory_lock($1), pg_advisory_unlock($1)", [WRITING]);
  } catch (error) {
    isOver = true;
    await client.end();
    throw error;
  }
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      await client.end();
    },
  };
}
