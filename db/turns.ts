import type { Transaction } from "./database.ts";
import { sql } from "./sql.ts";

/** What transactions take turns at. */
type Purpose = "events" | "found changes" | "review comments" | "targets" | "write";

/** A purpose has at most this many rows. Keys that share one only wait for each other. */
const SLOTS = 65_536;

/**
 * Waits until no other transaction has the turn of these keys, and holds it until the end of this one. A turn is a
 * locked row, because Postgres lets every login take advisory locks, whatever it may read.
 *
 * The keys of one call are locked in one order, so two calls for a purpose do not deadlock. The conflict locks a row
 * and changes nothing of it: https://www.postgresql.org/docs/18/sql-insert.html#SQL-ON-CONFLICT
 */
export async function takeTurns(tx: Transaction, purpose: Purpose, keys: readonly (string | number)[]): Promise<void> {
  await tx.prepared(sql`
    insert into turns (purpose, slot)
      select ${purpose}, slot from (
          select distinct (hashtextextended(key, 0) & ${SLOTS - 1}::bigint)::integer as slot
            from unnest(${sql.array(keys.map(String), "text")}) as x(key)) s
        order by slot
      on conflict (purpose, slot) do update set slot = excluded.slot where false`);
}
