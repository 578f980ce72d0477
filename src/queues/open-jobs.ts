import { BURST_SIZE, type BurstJob, type RefreshJob, refreshId } from "./jobs.ts";
import { askQueues, type QueueAccess, type Queues } from "./queues.ts";

// Finds the jobs that a queue holds already and need not be given again. To ask takes a third of the work of adding a job in vain.
// Each function throws QueueUnavailableError when Redis cannot be reached.

/** The deliveries among these that have no job of their own, waiting or running. */
export async function deliveriesWithoutJob(ctx: QueueAccess, deliveryIds: readonly string[]): Promise<string[]> {
  return await withoutJob(ctx, ctx.queues.deliveries, deliveryIds, (id) => id);
}

/** How far a delivery's own job is. */
export interface DeliveryJobState {
  /** As BullMQ names it: waiting, active, delayed … */
  state: string;
  queuedAt: Date;
  /** How often it was tried. */
  attempts: number;
  /** Why it failed last. */
  reason: string | null;
}

/** Null: it has none. Deliveries that arrive together share one. */
export async function jobOfDelivery(ctx: QueueAccess, deliveryId: string): Promise<DeliveryJobState | null> {
  return await askQueues(ctx, async () => {
    const id = await ctx.queues.deliveries.getDeduplicationJobId(deliveryId);
    const job = id === null ? undefined : await ctx.queues.deliveries.getJob(id);
    if (!job) return null;
    const { timestamp, attemptsMade: attempts, failedReason } = job;
    return { state: await job.getState(), queuedAt: new Date(timestamp), attempts, reason: failedReason ?? null };
  });
}

/** The refreshes among these that have no job, waiting or running. */
export async function refreshesWithoutJob<Asked extends RefreshJob>(
  ctx: QueueAccess,
  asked: readonly Asked[],
): Promise<Asked[]> {
  return await withoutJob(ctx, ctx.queues.refresh, asked, refreshId);
}

/** The repositories among these that have no job of that kind, waiting or running. */
export async function repositoriesWithoutJob(
  ctx: QueueAccess,
  queue: "backfill" | "catchUp",
  repositoryIds: readonly number[],
): Promise<number[]> {
  return await withoutJob(ctx, ctx.queues[queue], repositoryIds, String);
}

async function withoutJob<Asked>(
  ctx: QueueAccess,
  queue: Queues["deliveries" | "refresh" | "backfill" | "catchUp"],
  asked: readonly Asked[],
  idOf: (one: Asked) => string,
): Promise<Asked[]> {
  if (asked.length === 0) return [];
  const jobs = await askQueues(ctx, () => Promise.all(asked.map((one) => queue.getDeduplicationJobId(idOf(one)))));
  return asked.filter((_, at) => jobs[at] === null);
}

type OpenState = "waiting" | "prioritized" | "active" | "delayed";
/** The active ones come once more at the end, for jobs that began meanwhile. */
const READ_IN_TURN: readonly OpenState[] = ["active", "waiting", "prioritized", "delayed", "active"];
/** How many jobs are read from Redis at once. */
const JOBS_READ = 1_000;
/** Neighbouring pages share so many jobs: those that finish meanwhile leave at the near end, and the others move up. */
const JOBS_SHARED = 100;
/** How many ids of jobs are read at once. */
const IDS_READ = 10_000;

/** The deliveries that bursts name, a page of jobs at a time, the oldest jobs of each state first. Several may name one delivery. */
export async function* deliveriesInBursts(ctx: QueueAccess): AsyncGenerator<string[], void> {
  for (const state of READ_IN_TURN) {
    for (let start = 0; ; start += JOBS_READ - JOBS_SHARED) {
      const jobs = await askQueues(ctx, () => ctx.queues.bursts.getJobs([state], start, start + JOBS_READ - 1, true));
      if (jobs.length === 0) break;
      yield jobs.flatMap(({ data }) => (data satisfies BurstJob).deliveryIds);
    }
  }
}

/** How many deliveries the bursts in this state have. */
export async function countInBursts(ctx: QueueAccess, state: OpenState): Promise<number> {
  return await askQueues(ctx, async () => {
    let count = 0;
    for (let start = 0; ; start += IDS_READ) {
      const ids = await ctx.queues.bursts.getRanges([state], start, start + IDS_READ - 1);
      for (const id of ids) count += deliveriesOf(id);
      if (ids.length < IDS_READ) return count;
    }
  });
}

/** How many deliveries a job holds. Ids of older versions do not say so; most of their jobs are full. */
function deliveriesOf(id: string): number {
  return Number(/^(\d+)-/.exec(id)?.[1] ?? BURST_SIZE);
}
