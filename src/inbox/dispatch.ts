import type { Context } from "../context.ts";
import { enqueueDeliveries } from "../queues/enqueue.ts";
import { deliveriesInBursts, deliveriesWithoutJob } from "../queues/open-jobs.ts";

/** A younger one is most likely on its way through the queue already. */
const OVERDUE_MS = 5_000;
const BATCH = 1_000;
/** Bounds one call; the scheduler asks again within seconds. */
const MAX_BATCHES = 20;

/**
 * Queues every delivery that has been pending for longer than it should: its job was lost with Redis, or was never added.
 * Those that still have a job, or share one, are left to it: a process that has fallen behind must not be given more to do by
 * its backlog. Answers how many were asked for.
 */
export async function dispatchPending(ctx: Pick<Context, "db" | "redis" | "queues" | "clock">): Promise<number> {
  const overdue = new Date(ctx.clock.now().getTime() - OVERDUE_MS);
  let asked = 0;
  let last: { id: string; position: string } | undefined;
  let inBursts: ReadonlySet<string> | undefined;
  for (let batch = 0; batch < MAX_BATCHES; batch++) {
    const { rows } = await ctx.db.$client.query<{ id: string; position: string }>(
      // As text, since a Date would round the microseconds off and find rows a second time.
      `select id, received_at::text as position from deliveries
        where status = 'pending' and received_at <= $1 and ($2::timestamptz is null or (received_at, id) > ($2, $3::uuid))
        order by received_at, id limit ${BATCH}`,
      [overdue, last?.position ?? null, last?.id ?? null],
    );
    if (rows.length === 0) break;
    // One that is applied between the two questions is asked for once more, and found settled.
    inBursts ??= new Set(await deliveriesInBursts(ctx));
    const unshared = rows.flatMap(({ id }) => (inBursts?.has(id) ? [] : [id]));
    const lost = await deliveriesWithoutJob(ctx, unshared);
    await enqueueDeliveries(ctx, lost);
    asked += lost.length;
    last = rows.at(-1);
    if (rows.length < BATCH) break;
  }
  return asked;
}

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
    const { rowCount } = await db.$client.query(
      `with doomed as (
        select id from deliveries where received_at < $1 and status <> 'pending'
          order by received_at limit ${BATCH} for update skip locked
      ) delete from deliveries using doomed where deliveries.id = doomed.id`,
      [before],
    );
    pruned += rowCount ?? 0;
    if ((rowCount ?? 0) < BATCH) break;
  }
  return pruned;
}
