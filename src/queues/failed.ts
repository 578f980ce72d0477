import type { Job, Queue } from "bullmq";
import { askQueues, QUEUE_KEYS, QUEUE_NAMES, type QueueAccess, type Queues } from "./queues.ts";

// Jobs that failed for good. Each function throws QueueUnavailableError when Redis cannot be reached.

/** How many jobs have failed for good. Commands are left out: the person who asked was told. */
export interface FailedJobs {
  count: number;
  /** When the oldest failed; null: none has, or that is not known. */
  since: Date | null;
  /** Why the oldest failed. */
  reason: string;
}

/** A job that failed for good. */
export interface FailedJob {
  /** `QUEUE:NUMBER`, by which `tain jobs` knows it. */
  id: string;
  queue: string;
  /** What it was to do, such as `catch-up` or, in the queue `maintenance`, `sweep`. */
  name: string;
  /** What it was to be done to, as far as that can be shown. */
  about: Record<string, string | number>;
  reason: string;
  failedAt: Date | null;
  /** How often it was tried. */
  attempts: number;
}

/** A whole delivery may be 25 MB, so few are read at once. */
const READ_AT_ONCE = { inbox: 5, others: 100 };

const SHOWN_KEYS: readonly string[] = ["repositoryId", "deliveryId", "targetId", "kind", "key", "event", "guid"];

export async function countFailedJobs(ctx: QueueAccess): Promise<FailedJobs> {
  const all = await Promise.all(
    QUEUE_KEYS.filter((key) => key !== "commands").map(async (key) => {
      const queue: Queue = ctx.queues[key];
      const count = await askQueues(ctx, () => queue.getFailedCount());
      const [oldest] = count === 0 ? [] : await askQueues(ctx, () => queue.getJobs(["failed"], 0, 0, true));
      return { count, oldest };
    }),
  );
  const failed = all
    .flatMap(({ oldest }) => oldest ?? [])
    .sort((one, other) => (one.finishedOn ?? 0) - (other.finishedOn ?? 0));
  const [first] = failed;
  return {
    count: all.reduce((sum, { count }) => sum + count, 0),
    since: first?.finishedOn === undefined ? null : new Date(first.finishedOn),
    reason: first?.failedReason ?? "",
  };
}

/** The newest `limit` of each queue, the newest first. */
export async function listFailedJobs(ctx: QueueAccess, limit: number): Promise<FailedJob[]> {
  const lists: FailedJob[][] = [];
  for (const key of QUEUE_KEYS) {
    for await (const jobs of failedIn(ctx, key, { limit, isOldestFirst: false }))
      lists.push(jobs.map((job) => shown(key, job)));
  }
  return lists
    .flat()
    .sort((one, other) => (other.failedAt?.getTime() ?? 0) - (one.failedAt?.getTime() ?? 0))
    .slice(0, limit);
}

function shown(key: keyof Queues, job: Job): FailedJob {
  const { id = "", name, failedReason, finishedOn, attemptsMade } = job;
  const data: unknown = job.data;
  const about = Object.entries(typeof data === "object" && data !== null ? data : {}).filter(
    ([field, value]) => SHOWN_KEYS.includes(field) && (typeof value === "string" || typeof value === "number"),
  );
  return {
    id: `${QUEUE_NAMES[key]}:${id}`,
    queue: QUEUE_NAMES[key],
    name,
    about: Object.fromEntries(about),
    reason: failedReason ?? "",
    failedAt: finishedOn === undefined ? null : new Date(finishedOn),
    attempts: attemptsMade,
  };
}

/** The failed jobs of a queue, a few at a time. Those that leave meanwhile move others past the reader. */
export async function* failedIn(
  ctx: QueueAccess,
  key: keyof Queues,
  { limit, isOldestFirst }: { limit: number; isOldestFirst: boolean },
): AsyncGenerator<Job[], void> {
  const queue: Queue = ctx.queues[key];
  const most = Math.min(limit, key === "inbox" ? READ_AT_ONCE.inbox : READ_AT_ONCE.others);
  for (let start = 0; start < limit; start += most) {
    const end = Math.min(limit, start + most) - 1;
    const jobs = await askQueues(ctx, () => queue.getJobs(["failed"], start, end, isOldestFirst));
    if (jobs.length > 0) yield jobs;
    if (jobs.length < most) return;
  }
}

/** What came of a job that was to be tried again, or forgotten. "absent": it has not failed, or is no more there. */
export type JobOutcome = "done" | "absent" | "refused";

/**
 * Has a failed job tried once more. A command is refused: its operator does not expect it any more.
 * @param id as `FailedJob.id`
 */
export async function retryFailedJob(ctx: QueueAccess, id: string): Promise<JobOutcome> {
  const found = await findFailed(ctx, id);
  if (!found) return "absent";
  if (found.key === "commands") return "refused";
  await askQueues(ctx, () => retried(found.job));
  return "done";
}

/** @param id as `FailedJob.id` */
export async function clearFailedJob(ctx: QueueAccess, id: string): Promise<JobOutcome> {
  const found = await findFailed(ctx, id);
  if (!found) return "absent";
  await askQueues(ctx, () => found.job.remove());
  return "done";
}

/** Moves a failed job back into its queue, where it has one more attempt. Another process may have been quicker. */
export async function retried(job: Job): Promise<void> {
  try {
    await job.retry("failed");
  } catch (error) {
    if (await job.isFailed()) throw error;
  }
}

async function findFailed(ctx: QueueAccess, id: string): Promise<{ key: keyof Queues; job: Job } | null> {
  const at = id.indexOf(":");
  const key = QUEUE_KEYS.find((one) => QUEUE_NAMES[one] === id.slice(0, at));
  if (key === undefined) return null;
  const queue: Queue = ctx.queues[key];
  const job = await askQueues(ctx, () => queue.getJob(id.slice(at + 1)));
  return job && (await askQueues(ctx, () => job.isFailed())) ? { key, job } : null;
}

/** A run of the scheduler's task went well: earlier runs that failed matter no more. @param at of a shard, its place */
export async function forgetFailedRuns(
  ctx: QueueAccess,
  key: "maintenance" | "shards",
  { name, at }: { name: string; at?: number },
): Promise<void> {
  const queue: Queue = ctx.queues[key];
  if ((await askQueues(ctx, () => queue.getFailedCount())) === 0) return;
  for await (const jobs of failedIn(ctx, key, { limit: READ_AT_ONCE.others, isOldestFirst: true }))
    for (const job of jobs)
      if (job.name === name && (at === undefined || job.data.at === at)) await askQueues(ctx, () => job.remove());
}
