import { type JobsOptions, Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Config } from "../config.ts";
import type { Logger } from "../operations/log.ts";
import type { Stores } from "../stores.ts";

/**
 * A whole delivery on its way to Postgres, for the time that Postgres cannot be reached: the one job that carries more
 * than keys.
 */
export interface InboxJob {
  hookId: number;
  guid: string;
  event: string;
  /** The JSON document as received, base64. */
  payload: string;
  /** ISO 8601, by our clock. */
  receivedAt: string;
}

export interface DeliveryJob {
  /** `deliveries.id` */
  deliveryId: string;
}

export interface BurstJob {
  /** `deliveries.id` of those that arrived together, at most `BURST`. */
  deliveryIds: string[];
}

export interface RepositoryJob {
  repositoryId: number;
}

type RefreshKind =
  | "repository"
  | "user"
  | "label"
  | "milestone"
  | "issue"
  | "pull_request"
  | "issue_comment"
  | "review"
  | "review_comment"
  | "mergeability";

export interface RefreshJob {
  kind: RefreshKind;
  repositoryId: number;
  /** The resource's id, or its number where upstream asks by number (issue, pull request, milestone). */
  key: number;
  /** Reviews are asked for below their pull request. */
  pullNumber?: number;
}

/** What the scheduler asks for at intervals. */
export type MaintenanceTask =
  | "dispatch"
  | "prune"
  | "select"
  | "schedule-catch-up"
  | "sweep"
  | "check-deliveries"
  | "schedule-audits";

export interface Queues {
  inbox: Queue<InboxJob>;
  deliveries: Queue<DeliveryJob>;
  bursts: Queue<BurstJob>;
  backfill: Queue<RepositoryJob>;
  catchUp: Queue<RepositoryJob>;
  audit: Queue<RepositoryJob>;
  refresh: Queue<RefreshJob>;
  maintenance: Queue<Record<string, never>, void, MaintenanceTask>;
}

/** The names in Redis, which follow `REDIS_PREFIX`. */
export const queueNames = {
  inbox: "inbox",
  deliveries: "deliveries",
  bursts: "bursts",
  backfill: "backfill",
  catchUp: "catch-up",
  audit: "audit",
  refresh: "refresh",
  maintenance: "maintenance",
} as const satisfies Record<keyof Queues, string>;

const DAY_S = 86_400;

/** Bounded: what is done is of use only to a person looking at the queue; what failed is kept a week with its reason. */
const kept: JobsOptions = {
  removeOnComplete: { count: 100, age: DAY_S },
  removeOnFail: { count: 10_000, age: 7 * DAY_S },
};

/** How the wait grows is said in `workers/retry-policy.ts`. */
const backoff = { type: "capped" };

const options: Record<keyof Queues, JobsOptions> = {
  // The delivery exists nowhere else until it is in Postgres, so one that cannot be stored is kept until someone acts.
  inbox: { ...kept, removeOnComplete: true, removeOnFail: false },
  deliveries: { ...kept, attempts: 8, backoff, removeOnComplete: true },
  // Whoever could not be applied has a job of its own by then; the dispatcher finds what was in a job that broke.
  bursts: { attempts: 1, removeOnComplete: true, removeOnFail: true },
  // Long work that goes on at the last page: about twenty minutes of failures in a row, then it rests until it is asked for again.
  backfill: { ...kept, attempts: 20, backoff },
  catchUp: { ...kept, attempts: 8, backoff },
  audit: { ...kept, attempts: 3, backoff },
  refresh: { ...kept, attempts: 8, backoff },
  // Asked for again by the scheduler within seconds anyway.
  maintenance: {
    attempts: 1,
    removeOnComplete: { count: 20, age: DAY_S },
    removeOnFail: { count: 200, age: 7 * DAY_S },
  },
};

/** The producers' side. `redis` comes from `openRedis`, so that with Redis down adding a job fails instead of waiting. */
export function openQueues({
  config,
  redis,
  log,
}: {
  config: Pick<Config, "redisPrefix">;
  redis: Redis;
  log: Logger;
}): Queues {
  const queues: Partial<Record<keyof Queues, Queue>> = {};
  const open = (key: keyof Queues): Queue => {
    const queue = new Queue(queueNames[key], {
      connection: redis,
      prefix: config.redisPrefix,
      defaultJobOptions: options[key],
      // Nothing reads the queues' event streams; the default keeps 10,000 entries of each.
      streams: { events: { maxLen: 100 } },
    });
    // The connection reports its own outages; what arrives here concerns one queue, such as a script that Redis refuses.
    queue.on("error", (error) => log.debug({ queue: queueNames[key], err: error }, "A queue reports an error"));
    // A queue whose first words with Redis were cut off stays broken for good (BullMQ keeps the rejected promise), so
    // another takes its place.
    queue.waitUntilReady().catch(() => redis.once("ready", () => open(key)));
    queues[key] = queue;
    return queue;
  };
  for (const key of Object.keys(queueNames) as (keyof Queues)[]) open(key);
  return queues as Queues;
}

export async function closeQueues(queues: Queues): Promise<void> {
  await Promise.all(Object.values(queues).map((queue: Queue) => queue.close()));
}

type Enqueuing = Pick<Stores, "redis"> & { queues: Queues };

/** Redis cannot take a job at the moment. */
export class QueueUnavailableError extends Error {
  override name = "QueueUnavailableError";
}

/**
 * Adds a whole delivery. Asked twice while the first waits, it is one job.
 * @throws QueueUnavailableError when Redis cannot be reached
 */
export async function enqueueInbox(ctx: Enqueuing, job: InboxJob): Promise<void> {
  await asking(ctx, () => ctx.queues.inbox.add("store", job, { deduplication: { id: `${job.hookId}:${job.guid}` } }));
}

/**
 * Asks for deliveries to be applied, each by a job of its own. One for which such a job already waits or runs is not asked
 * for twice.
 */
export async function enqueueDeliveries(ctx: Enqueuing, deliveryIds: string[]): Promise<void> {
  const jobs = deliveryIds.map((deliveryId) => ({
    name: "apply",
    data: { deliveryId },
    opts: { deduplication: { id: deliveryId } },
  }));
  await addAll(ctx, ctx.queues.deliveries, jobs);
}

/**
 * Those of these deliveries for which no job of their own waits or runs. Asking is a tenth of the work of adding them in vain.
 * @throws QueueUnavailableError when Redis cannot be reached
 */
export async function deliveriesWithoutJob(
  { queues: { deliveries }, redis }: Enqueuing,
  deliveryIds: string[],
): Promise<string[]> {
  return await withoutJob({ redis }, deliveries, deliveryIds, (id) => id);
}

/**
 * Those of these refreshes for which no job waits or runs.
 * @throws QueueUnavailableError when Redis cannot be reached
 */
export async function refreshesWithoutJob<Asked extends RefreshJob>(
  { queues: { refresh }, redis }: Enqueuing,
  asked: Asked[],
): Promise<Asked[]> {
  return await withoutJob({ redis }, refresh, asked, refreshId);
}

async function withoutJob<Asked>(
  ctx: Pick<Stores, "redis">,
  queue: Queue,
  asked: Asked[],
  idOf: (one: Asked) => string,
): Promise<Asked[]> {
  if (asked.length === 0) return [];
  // BullMQ keeps a job's deduplication under this key for as long as the job is open.
  const keys = asked.map((one) => queue.toKey(`de:${idOf(one)}`));
  const jobs = await asking(ctx, () => ctx.redis.mget(keys));
  return asked.filter((_, index) => jobs[index] === null);
}

/** How many deliveries share a job at most. Of more each costs hardly less, and workers have smaller parts to share. */
export const BURST = 16;

/**
 * Asks for deliveries that arrived together to be applied. A job for each would take longer than all else that the receiver
 * does with it, so they share jobs; a lone one has its own, as `enqueueDeliveries` gives it.
 */
export async function enqueueBursts(ctx: Enqueuing, deliveryIds: string[]): Promise<void> {
  const jobs: { name: string; data: BurstJob }[] = [];
  let start = 0;
  for (; deliveryIds.length - start > 1; start += BURST)
    jobs.push({ name: "apply", data: { deliveryIds: deliveryIds.slice(start, start + BURST) } });
  await addAll(ctx, ctx.queues.bursts, jobs);
  await enqueueDeliveries(ctx, deliveryIds.slice(start));
}

async function addAll<Payload>(
  ctx: Enqueuing,
  queue: Queue<Payload>,
  jobs: { name: string; data: Payload; opts?: JobsOptions }[],
): Promise<void> {
  const [first, ...others] = jobs;
  if (!first) return;
  await asking<unknown>(ctx, () =>
    // A pipeline takes longer to set up than a job does to add, and mostly there is one.
    others.length === 0
      ? queue.add(first.name as never, first.data as never, first.opts)
      : queue.addBulk(jobs as Parameters<typeof queue.addBulk>[0]),
  );
}

type OpenState = "waiting" | "prioritized" | "active" | "delayed";
const OPEN_STATES: OpenState[] = ["waiting", "prioritized", "active", "delayed"];
/** How many jobs are read from Redis at once. */
const JOBS_READ = 1_000;

/**
 * The deliveries that are named by the bursts in these states; one may be named by several.
 * @throws QueueUnavailableError when Redis cannot be reached
 */
export async function deliveriesInBursts(
  { queues: { bursts }, redis }: Enqueuing,
  states: OpenState[] = OPEN_STATES,
): Promise<string[]> {
  return await asking({ redis }, async () => {
    const jobIds = await bursts.getRanges(states, 0, -1);
    const deliveryIds: string[] = [];
    for (let start = 0; start < jobIds.length; start += JOBS_READ) {
      const reading = redis.pipeline();
      for (const jobId of jobIds.slice(start, start + JOBS_READ)) reading.hget(bursts.toKey(jobId), "data");
      for (const [error, data] of (await reading.exec()) ?? []) {
        if (error) throw error;
        // Null: it was done meanwhile.
        if (typeof data === "string") deliveryIds.push(...(JSON.parse(data) as BurstJob).deliveryIds);
      }
    }
    return deliveryIds;
  });
}

/**
 * Asks for the first full copy. Nothing happens when it already waits or runs, since it goes on by itself. Those with a lower
 * `rank` come first: the first of every account, then the second of each, so that none waits behind all of another's.
 */
export async function enqueueBackfill(
  ctx: Enqueuing,
  job: RepositoryJob,
  { rank = 1 }: { rank?: number } = {},
): Promise<void> {
  const opts = { priority: Math.min(rank, MAX_PRIORITY), deduplication: { id: String(job.repositoryId) } };
  await asking(ctx, () => ctx.queues.backfill.add("backfill", job, opts));
}

/** BullMQ's own bound. */
const MAX_PRIORITY = 2_097_152;

/**
 * Asks for a catch-up. Asked while one runs, another follows it: the running one may have passed the place. `atOnce`: one that
 * waits for a better time need not wait any more.
 */
export async function enqueueCatchUp(
  ctx: Enqueuing,
  job: RepositoryJob,
  { atOnce = false }: { atOnce?: boolean } = {},
): Promise<void> {
  const id = String(job.repositoryId);
  await asking(ctx, async () => {
    await ctx.queues.catchUp.add("catch-up", job, { deduplication: { id, keepLastIfActive: true } });
    if (!atOnce) return;
    const waiting = await ctx.queues.catchUp.getDeduplicationJobId(id);
    const known = waiting ? await ctx.queues.catchUp.getJob(waiting) : undefined;
    if (await known?.isDelayed()) await known?.promote();
  });
}

/** Asks for the next part of an audit. One that waits or runs already is not asked for twice. */
export async function enqueueAudit(ctx: Enqueuing, job: RepositoryJob): Promise<void> {
  await asking(ctx, () => ctx.queues.audit.add("audit", job, { deduplication: { id: String(job.repositoryId) } }));
}

/**
 * Asks for resources to be read again, each not before `delayMs` from now (upstream's replicas lag behind its webhooks).
 *
 * Many asks become one read. An ask is dropped while an earlier job waits, even one that waits for less long: what is still
 * to be asked, and when, is known to Postgres (`refresh_marks`), and the job only wakes who looks there.
 */
export async function enqueueRefreshes(ctx: Enqueuing, asks: { job: RefreshJob; delayMs: number }[]): Promise<void> {
  if (asks.length === 0) return;
  const jobs = asks.map(({ job, delayMs }) => ({
    name: "refresh",
    data: job,
    opts: { delay: delayMs, deduplication: { id: refreshId(job), keepLastIfActive: true } },
  }));
  await asking(ctx, () => ctx.queues.refresh.addBulk(jobs));
}

function refreshId({ kind, repositoryId, key }: RefreshJob): string {
  return `${kind}-${repositoryId}-${key}`;
}

/** Asks for a maintenance task now, beside its schedule. One that waits or runs already is not asked for twice. */
export async function enqueueTask(ctx: Enqueuing, task: MaintenanceTask): Promise<void> {
  // Asked while it runs, it runs once more: what the caller has just stored may have come too late for the running one.
  await asking(ctx, () =>
    ctx.queues.maintenance.add(task, {}, { deduplication: { id: task, keepLastIfActive: true } }),
  );
}

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
export async function queueCounts(ctx: Enqueuing): Promise<Record<string, QueueCounts>> {
  const { bursts: _, ...counted } = queueNames;
  const counts = Object.entries(counted).map(async ([key, name]) => {
    const own = await asking(ctx, () => jobCounts(ctx.queues[key as keyof Queues]));
    return [name, key === "deliveries" ? await withBursts(ctx, own) : own] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

async function jobCounts(queue: Queue): Promise<QueueCounts> {
  const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed");
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { waiting: waiting + prioritized, active, delayed, failed };
}

async function withBursts(ctx: Enqueuing, own: QueueCounts): Promise<QueueCounts> {
  const [waiting, active, delayed] = await Promise.all([
    deliveriesInBursts(ctx, ["waiting", "prioritized"]),
    deliveriesInBursts(ctx, ["active"]),
    deliveriesInBursts(ctx, ["delayed"]),
  ]);
  return {
    waiting: own.waiting + waiting.length,
    active: own.active + active.length,
    delayed: own.delayed + delayed.length,
    failed: own.failed,
  };
}

/** Runs `ask`, or says that Redis does not serve its queues: away (BullMQ would wait for it without end), or too slow. */
async function asking<T>({ redis }: Pick<Stores, "redis">, ask: () => Promise<T>): Promise<T> {
  if (redis.status !== "ready")
    throw new QueueUnavailableError("Redis cannot be reached, so its queues cannot be used");
  try {
    return await ask();
  } catch (error) {
    throw new QueueUnavailableError(`Redis does not answer for its queues: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
