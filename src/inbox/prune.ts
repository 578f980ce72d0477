import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

const BATCH_SIZE = 1_000;

/**
 * Deletes settled deliveries older than `DELIVERY_RETENTION`; pending ones are never deleted. Answers how many went.
 *
 * Short statements on rows that nobody else holds: arriving deliveries never wait for it, and two at once share the work.
 */
export async function pruneDeliveries(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - config.deliveryRetentionMs);
  let pruned = 0;
  while (!signal?.aborted) {
    const count = await db.count(sql`with doomed as (
        select id from deliveries where received_at < ${before} and status <> 'pending'
          order by received_at limit ${BATCH_SIZE} for update skip locked
      ) delete from deliveries using doomed where deliveries.id = doomed.id`);
    pruned += count;
    if (count < BATCH_SIZE) break;
  }
  return pruned;
}
