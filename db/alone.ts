import type { Database } from "./connection.ts";

/**
 * Does work that must not run twice at once, in whichever process; null: another does it already. The lock goes with the
 * connection, so a process that was killed holds nothing up.
 */
export async function alone<T>({ db }: { db: Database }, name: string, work: () => Promise<T>): Promise<T | null> {
  const client = await db.$client.connect();
  let isBroken = true;
  try {
    const { rows } = await client.query<{ held: boolean }>(
      "select pg_try_advisory_lock(hashtextextended($1, 0)) as held",
      [`tain ${name}`],
    );
    if (!rows[0]?.held) {
      isBroken = false;
      return null;
    }
    try {
      return await work();
    } finally {
      await client.query("select pg_advisory_unlock(hashtextextended($1, 0))", [`tain ${name}`]);
      isBroken = false;
    }
  } finally {
    // A connection that may still hold the lock must not go back to the others.
    client.release(isBroken);
  }
}
