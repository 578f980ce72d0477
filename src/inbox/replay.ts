import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { enqueueDeliveries } from "../queues/enqueue.ts";

/**
 * Makes deliveries pending again, in any status, and asks for them to be applied. Applying a delivery twice changes
 * nothing, since the merge never goes backwards.
 * @throws QueueUnavailableError when Redis takes no job: they are pending, and the dispatcher asks once Redis is back
 */
export async function replayDeliveries(
  ctx: Pick<Context, "db" | "redis" | "queues">,
  ids: readonly string[],
): Promise<void> {
  // A worker that holds one of them finishes first, and it is then applied once more.
  await ctx.db.query(
    sql`update deliveries set status = 'pending', reason = null, settled_at = null where id = any(${ids}::uuid[])`,
  );
  await enqueueDeliveries(ctx, ids);
}
