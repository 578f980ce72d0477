import pg from "pg";
import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";

/** An issue or pull request that a committed transaction has changed, deleted or stored for the first time. */
export interface Change {
  repositoryId: number;
  kind: "issue" | "pull_request";
  number: number;
}

const CHANNEL = "tain_changes";
/** The key of an advisory lock; any constant will do. All listeners hold this lock, shared. */
const LISTENING = 7_241_947;

/**
 * Tells listeners in every process, once the transaction is committed. Without listeners it costs one try for a lock:
 * if the lock is free, nobody listens. A new listener waits for transactions that found the lock free.
 */
export async function announceChanges(tx: Transaction, changes: Change[]): Promise<void> {
  if (changes.length === 0) return;
  const texts = new Set(changes.map(({ repositoryId, kind, number }) => `${repositoryId} ${kind} ${number}`));
  await tx.prepared(sql`
    select pg_notify(${CHANNEL}, change) from unnest(${[...texts]}::text[]) as x(change)
      where not pg_try_advisory_xact_lock(${LISTENING})`);
}

/** Listens on its own connection until it is disposed of. `onLost`: it broke, and later changes are not told. */
export async function listenForChanges(
  databaseUrl: string,
  { onChange, onLost }: { onChange: (change: Change) => void; onLost: (error: Error) => void },
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
  client.on("notification", ({ payload = "" }) => {
    const [repositoryId, name, number] = payload.split(" ");
    const kind = name === "issue" ? name : "pull_request";
    onChange({ repositoryId: Number(repositoryId), kind, number: Number(number) });
  });
  await client.connect();
  try {
    await client.query(`listen ${CHANNEL}`);
    await client.query("select pg_advisory_lock_shared($1)", [LISTENING]);
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
