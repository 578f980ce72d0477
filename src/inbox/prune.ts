import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { deleteInBatches } from "../work/deletion.ts";

/**
 * Deletes settled deliveries older than `DELIVERY_RETENTION`, with their places in the ordered log. It keeps pending
 * deliveries, and deliveries that a target still has to hear. A disabled target keeps its deliveries for another
 * `DELIVERY_RETENTION`. Answers how many were deleted.
 *
 * Its statements are short and skip locked rows. So arriving deliveries never wait, and two processes share the work.
 */
export async function pruneDeliveries(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - config.deliveryRetentionMs);
  return await deleteInBatches(signal, (most) =>
    db.count(sql`with doomed as (
        select id from deliveries d where received_at < ${before} and status <> 'pending' and not exists (
            select from events e join target_cursors c on c.repository_id = e.repository_id
              and e.id > c.done_id and e.id <= c.wanted_id join targets t on t.id = c.target_id and t.active
            where e.delivery_id = d.id and (t.disabled_at is null or t.disabled_at >= ${before}))
          order by received_at limit ${most} for update skip locked
      ), forgotten as (
        delete from events using doomed where events.delivery_id = doomed.id returning events.id
      ), noted as (
        insert into event_log (pruned_id) select max(id) from forgotten having max(id) is not null
          on conflict (is_one) do update set pruned_id = greatest(event_log.pruned_id, excluded.pruned_id)
      ) delete from deliveries using doomed where deliveries.id = doomed.id`),
  );
}
