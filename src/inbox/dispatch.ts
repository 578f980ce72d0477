import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { deliveriesInBursts, deliveriesWithoutJob } from "../queues/open-jobs.ts";
import { enqueueDeliveries } from "../queues/queues.ts";

/** A younger delivery is most likely in the queue already. */
const DISPATCH_OVERDUE_MS = 5_000;
const DISPATCHED_AT_ONCE = 1_000;
/** Bounds one call; the scheduler asks again within seconds. */
const MAX_BATCHES = 20;

/** A place among the pending deliveries, by their receipt. */
interface PendingCursor {
  id: string;
  /** As text, since a Date would round the microseconds off and find rows a second time. */
  receivedAt: string;
}

/**
 * Bounds how many deliveries of bursts one call remembers. The oldest bursts have the oldest deliveries, and only old
 * deliveries are looked at.
 */
const MOST_REMEMBERED = 5 * DISPATCHED_AT_ONCE * MAX_BATCHES;

/**
 * Queues every delivery that has been pending too long: its job was lost with Redis, or was never added. A delivery
 * with a job of its own, or a shared one, is left to that job. So the backlog of a slow process does not add to its
 * work. Answers how many were asked for.
 */
export async function dispatchPending(ctx: Pick<Context, "db" | "redis" | "queues" | "clock">): Promise<number> {
  const overdue = new Date(ctx.clock.now().getTime() - DISPATCH_OVERDUE_MS);
  let asked = 0;
  let last: PendingCursor | undefined;
  const withoutJob = findWithoutJob(ctx);
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const behind = last ? sql`(received_at, id) > (${last.receivedAt}::timestamptz, ${last.id}::uuid)` : sql`true`;
    const rows = await ctx.db.query<PendingCursor>(sql`select id, received_at::text as "receivedAt" from deliveries
      where status = 'pending' and received_at <= ${overdue} and ${behind} order by received_at, id limit ${DISPATCHED_AT_ONCE}`);
    if (rows.length === 0) break;
    // A delivery that is applied between the two queries is queued once more, and its job finds it settled.
    const lost = await withoutJob(rows.map(({ id }) => id));
    await enqueueDeliveries(ctx, lost);
    asked += lost.length;
    last = rows.at(-1);
    if (rows.length < DISPATCHED_AT_ONCE) break;
  }
  return asked;
}

/**
 * Finds deliveries that have neither their own job nor a place in a burst. Reads further bursts only while some are not
 * found.
 */
function findWithoutJob(
  ctx: Pick<Context, "redis" | "queues">,
): (deliveryIds: readonly string[]) => Promise<readonly string[]> {
  const bursts = deliveriesInBursts(ctx);
  const inBursts = new Set<string>();
  const unnamed = (ids: readonly string[]) => ids.filter((id) => !inBursts.has(id));
  return async (deliveryIds) => {
    let lost = await deliveriesWithoutJob(ctx, unnamed(deliveryIds));
    while (lost.length > 0 && inBursts.size < MOST_REMEMBERED) {
      const page = await bursts.next();
      if (page.done) break;
      for (const id of page.value) inBursts.add(id);
      lost = unnamed(lost);
    }
    return lost;
  };
}
