import type { Database } from "./database.ts";
import { sql } from "./sql.ts";

/**
 * Does work that must not run twice at once in any process. Answers null when another process does it already. The lock
 * belongs to the connection, so a killed process holds nothing up.
 */
export async function alone<T>({ db }: { db: Database }, name: string, work: () => Promise<T>): Promise<T | null> {
  const lock = sql`hashtextextended(${`tain ${name}`}, 0)`;
  return await db.connection(async (connection) => {
    const [row] = await connection.query<{ held: boolean }>(sql`select pg_try_advisory_lock(${lock}) as held`);
    if (!row?.held) return null;
    try {
      return await work();
    } finally {
      await connection.query(sql`select pg_advisory_unlock(${lock})`);
    }
  });
}
