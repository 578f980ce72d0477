import { countInBursts } from "./open-jobs.ts";
import { askQueues, QUEUE_KEYS, QUEUE_NAMES, type QueueAccess, type Queues } from "./queues.ts";

export interface QueueCounts {
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
}

/**
 * What stands in each queue, by its name. Deliveries are counted, whether each has a job or many share one.
 * @throws QueueUnavailableError when Redis cannot be reached, or does not answer in time
 */
export async function queueCounts(ctx: QueueAccess): Promise<Record<string, QueueCounts>> {
  const counts = QUEUE_KEYS.filter((key) => key !== "bursts").map(async (key) => {
    const own = await askQueues(ctx, () => jobCounts(ctx.queues[key]));
    return [QUEUE_NAMES[key], key === "deliveries" ? await withBursts(ctx, own) : own] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

async function jobCounts(queue: Queues[keyof Queues]): Promise<QueueCounts> {
  const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed");
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { waiting: waiting + prioritized, active, delayed, failed };
}

async function withBursts(ctx: QueueAccess, own: QueueCounts): Promise<QueueCounts> {
  const [waiting, prioritized, active, delayed] = await Promise.all([
    countInBursts(ctx, "waiting"),
    countInBursts(ctx, "prioritized"),
    countInBursts(ctx, "active"),
    countInBursts(ctx, "delayed"),
  ]);
  return {
    waiting: own.waiting + waiting + prioritized,
    active: own.active + active,
    delayed: own.delayed + delayed,
    failed: own.failed,
  };
}
