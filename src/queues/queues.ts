import { type JobsOptions, Queue } from "bullmq";
import { isMistake, levelOf, reasonOf } from "../failure.ts";
import type { RedisClient } from "../operations/redis.ts";
import type { Stores } from "../stores.ts";
import { waitAfterMs } from "../waits/backoff.ts";
import { JOB_ATTEMPTS, RETRIES } from "../waits/retries.ts";
import {
  BURST_SIZE,
  type BurstJob,
  burstId,
  type CommandJob,
  type DeliveryJob,
  type InboxJob,
  type MaintenanceTask,
  type RefreshJob,
  type RepositoryJob,
  refreshId,
  type Shard,
  type ShardedTask,
  type TargetJob,
} from "./jobs.ts";
import { QueueUnavailableError } from "./unavailable.ts";

export interface Queues {
  inbox: Queue<InboxJob>;
  deliveries: Queue<DeliveryJob>;
  bursts: Queue<BurstJob>;
  backfill: Queue<RepositoryJob>;
  catchUp: Queue<RepositoryJob>;
  audit: Queue<RepositoryJob>;
  refresh: Queue<RefreshJob>;
  targets: Queue<TargetJob>;
  commands: Queue<CommandJob>;
  maintenance: Queue<Record<string, never>, void, MaintenanceTask>;
  shards: Queue<Shard, void, ShardedTask>;
}

/** The names in Redis, which follow `REDIS_PREFIX`. */
export const QUEUE_NAMES = {
  inbox: "inbox",
  deliveries: "deliveries",
  bursts: "bursts",
  backfill: "backfill",
  catchUp: "catch-up",
  audit: "audit",
  refresh: "refresh",
  targets: "targets",
  commands: "commands",
  maintenance: "maintenance",
  shards: "shards",
} as const satisfies Record<keyof Queues, string>;

// No type can say that an object has no other keys than its type's.
export const QUEUE_KEYS = Object.keys(QUEUE_NAMES) as readonly (keyof Queues)[];

const DAY_S = 86_400;

/** Bounded. Finished jobs only help a person who looks at the queue. Failed jobs stay a week with their reason. */
const KEPT: JobsOptions = {
  removeOnComplete: { count: 100, age: DAY_S },
  removeOnFail: { count: 10_000, age: 7 * DAY_S },
};

/** How often a job is tried is said in `src/waits/retries.ts`, and how the waits grow. */
const tried = (key: keyof Queues): JobsOptions => ({ attempts: JOB_ATTEMPTS[key], backoff: { type: "capped" } });

const OPTIONS: Readonly<Record<keyof Queues, JobsOptions>> = {
  // The delivery exists nowhere else until it is in Postgres. So one that cannot be stored is kept until a person acts.
  // The attempts are for failures that are not of Postgres: an absent Postgres costs none.
  inbox: { ...KEPT, ...tried("inbox"), removeOnComplete: true, removeOnFail: false },
  deliveries: { ...KEPT, ...tried("deliveries"), removeOnComplete: true },
  // If the shared job broke, the dispatcher finds its deliveries.
  bursts: { ...tried("bursts"), removeOnComplete: true, removeOnFail: true },
  // Long work continues at the last page. After its last attempt it rests until it is asked for again.
  backfill: { ...KEPT, ...tried("backfill") },
  catchUp: { ...KEPT, ...tried("catchUp") },
  audit: { ...KEPT, ...tried("audit") },
  refresh: { ...KEPT, ...tried("refresh") },
  targets: { ...KEPT, ...tried("targets"), removeOnComplete: true },
  // The person who waits for it is told how it ended by its own key.
  commands: { ...KEPT, ...tried("commands"), removeOnComplete: true },
  maintenance: {
    ...tried("maintenance"),
    removeOnComplete: { count: 20, age: DAY_S },
    removeOnFail: { count: 200, age: 7 * DAY_S },
  },
  shards: { ...tried("shards"), removeOnComplete: true, removeOnFail: { count: 200, age: 7 * DAY_S } },
};

/** The producers' side. `redis` comes from `openRedis`, so that with Redis down adding a job fails instead of waiting. */
export function openQueues({
  config,
  redis,
  log,
  random,
}: Pick<Stores, "config" | "redis" | "log" | "random">): Queues {
  const queues: Partial<Record<keyof Queues, Queue>> = {};
  const broken = new Map<keyof Queues, Queue>();
  let soon: NodeJS.Timeout | undefined;
  const replaceBroken = () => {
    redis.off("ready", replaceBroken);
    clearTimeout(soon);
    const replaced = [...broken];
    broken.clear();
    for (const [key, queue] of replaced) {
      // It listens to the connection, which outlives it.
      void queue.close();
      open(key);
    }
  };
  const open = (key: keyof Queues): Queue => {
    const queue = new Queue(QUEUE_NAMES[key], {
      connection: redis,
      prefix: config.redisPrefix,
      defaultJobOptions: OPTIONS[key],
      // Nothing reads the queues' event streams; the default keeps 10,000 entries of each.
      streams: { events: { maxLen: 100 } },
    });
    // The connection reports its own outages; what arrives here concerns one queue, such as a script that Redis refuses.
    queue.on("error", (error) =>
      log[levelOf(error, "debug")]({ queue: QUEUE_NAMES[key], err: error }, "A queue reports an error"),
    );
    // A queue that loses its connection while it opens, or gets no answer in time, stays broken, since BullMQ keeps the
    // rejected promise. So a new queue takes its place. All queues share the connection and break together, so they are
    // replaced together.
    queue.waitUntilReady().catch(() => {
      if (queue.closing) return;
      if (broken.size === 0) {
        redis.once("ready", replaceBroken);
        const replaceConnected = () => (redis.status === "ready" ? replaceBroken() : undefined);
        soon = setTimeout(replaceConnected, waitAfterMs(1, RETRIES.silentQueue, random)).unref();
      }
      broken.set(key, queue);
    });
    queues[key] = queue;
    return queue;
  };
  for (const key of QUEUE_KEYS) open(key);
  // No type can say that a loop over its keys fills an object.
  return queues as Queues;
}

export async function closeQueues(queues: Queues): Promise<void> {
  await Promise.all(Object.values(queues).map((queue: Queue) => queue.close()));
}

/** What asking the queues takes. */
export interface QueueAccess {
  queues: Queues;
  redis: Pick<RedisClient, "status">;
}

/** @throws QueueUnavailableError when Redis is away (BullMQ would wait for it without end), or too slow */
export async function askQueues<T>({ redis }: Pick<QueueAccess, "redis">, ask: () => Promise<T>): Promise<T> {
  if (redis.status !== "ready")
    throw new QueueUnavailableError("Redis cannot be reached, so its queues cannot be used");
  try {
    return await ask();
  } catch (error) {
    if (isMistake(error)) throw error;
    throw new QueueUnavailableError(`Redis does not answer for its queues: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Asks the queues for work that Postgres knows of, too. With Redis away nothing is lost: the scheduler finds the work
 * later.
 * @param what the work, for the log
 */
export async function orLater(
  { log }: Pick<Stores, "log">,
  what: Record<string, unknown>,
  enqueue: () => Promise<void>,
): Promise<void> {
  try {
    await enqueue();
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
    // The connection reports its own outages.
    log.debug({ ...what, reason: error.message }, "Redis takes no jobs; the scheduler will find the work");
  }
}

// Each of these throws QueueUnavailableError when Redis takes no job.

/** Adds a whole delivery. Asked twice while the first waits, it is one job. */
export async function enqueueInbox(ctx: QueueAccess, job: InboxJob): Promise<void> {
  await askQueues(ctx, () =>
    ctx.queues.inbox.add("store", job, { deduplication: { id: `${job.hookId}:${job.guid}` } }),
  );
}

/** The traces that deliveries arrived in, by their ids, as far as they are told. */
type DeliveryTraces = ReadonlyMap<string, string>;

const UNTOLD: ReadonlyMap<string, string> = new Map();

/** Asks for deliveries to be applied, each by a job of its own. A delivery whose own job waits or runs gets no second one. */
export async function enqueueDeliveries(
  ctx: QueueAccess,
  deliveryIds: readonly string[],
  traces: DeliveryTraces = UNTOLD,
): Promise<void> {
  const jobs = deliveryIds.map((deliveryId) => {
    const traceparent = traces.get(deliveryId);
    const data: DeliveryJob = { deliveryId, ...(traceparent !== undefined && { traceparent }) };
    return { name: "apply", data, opts: { deduplication: { id: deliveryId } } };
  });
  await addAll(ctx, ctx.queues.deliveries, jobs);
}

/**
 * Asks for deliveries that arrived together to be applied. A job for each would take longer than all else that the receiver
 * does with it, so they share jobs. A lone delivery has its own, as `enqueueDeliveries` gives it.
 */
export async function enqueueBursts(
  ctx: QueueAccess,
  deliveryIds: readonly string[],
  traces: DeliveryTraces = UNTOLD,
): Promise<void> {
  const jobs: NewJob<BurstJob>[] = [];
  let start = 0;
  for (; deliveryIds.length - start > 1; start += BURST_SIZE) {
    const ids = deliveryIds.slice(start, start + BURST_SIZE);
    const traceparents = ids.flatMap((id) => traces.get(id) ?? []);
    const data: BurstJob = { deliveryIds: ids, ...(traceparents.length > 0 && { traceparents }) };
    jobs.push({ name: "apply", data, opts: { jobId: burstId(ids.length) } });
  }
  await addAll(ctx, ctx.queues.bursts, jobs);
  await enqueueDeliveries(ctx, deliveryIds.slice(start), traces);
}

interface NewJob<Payload> {
  name: string;
  data: Payload;
  opts?: JobsOptions;
}

/** As a `Queue` of BullMQ, whose own types do not let a generic function add. */
interface Taking<Payload> {
  add(name: string, data: Payload, opts?: JobsOptions): Promise<unknown>;
  addBulk(jobs: NewJob<Payload>[]): Promise<unknown>;
}

/** So many jobs are one request to Redis. */
const ADDED_AT_ONCE = 1_000;

/** Adds as many jobs as there are, in order. Where Redis fails in between, the earlier ones are added. */
async function addAll<Payload>(ctx: QueueAccess, queue: Taking<Payload>, jobs: NewJob<Payload>[]): Promise<void> {
  const [first] = jobs;
  // A pipeline takes longer to set up than a job takes to add, and mostly there is one job.
  if (first && jobs.length === 1)
    return void (await askQueues(ctx, () => queue.add(first.name, first.data, first.opts)));
  for (let start = 0; start < jobs.length; start += ADDED_AT_ONCE)
    await askQueues(ctx, () => queue.addBulk(jobs.slice(start, start + ADDED_AT_ONCE)));
}

/**
 * Asks for the first full copy. A copy that waits or runs already continues by itself. Copies with a lower `rank` come
 * first: the first of every account, then the second of each. So no account waits behind all copies of another.
 */
export async function enqueueBackfill(
  ctx: QueueAccess,
  job: RepositoryJob,
  { rank = 1 }: { rank?: number } = {},
): Promise<void> {
  const { name, data, opts } = backfillJob(job, rank);
  await askQueues(ctx, () => ctx.queues.backfill.add(name, data, opts));
}

/** Asks for the copies of many repositories, in one go. */
export async function enqueueBackfills(ctx: QueueAccess, repositoryIds: readonly number[]): Promise<void> {
  await addAll(
    ctx,
    ctx.queues.backfill,
    repositoryIds.map((repositoryId) => backfillJob({ repositoryId }, 1)),
  );
}

function backfillJob(data: RepositoryJob, rank: number): NewJob<RepositoryJob> {
  const priority = Math.min(rank, MAX_PRIORITY);
  return { name: "backfill", data, opts: { priority, deduplication: { id: String(data.repositoryId) } } };
}

/** BullMQ's own bound. */
const MAX_PRIORITY = 2_097_152;

/**
 * Asks for a catch-up. Asked while one runs, another follows it, since the running one may have passed the place. `atOnce`: a
 * catch-up that waits for a better time need not wait any more.
 */
export async function enqueueCatchUp(
  ctx: QueueAccess,
  { repositoryId }: RepositoryJob,
  options: { atOnce?: boolean } = {},
): Promise<void> {
  await enqueueCatchUps(ctx, [repositoryId], options);
}

/** Asks for the catch-ups of many repositories, in one go. */
export async function enqueueCatchUps(
  ctx: QueueAccess,
  repositoryIds: readonly number[],
  { atOnce = false }: { atOnce?: boolean } = {},
): Promise<void> {
  const jobs = repositoryIds.map((repositoryId) => ({
    name: "catch-up",
    data: { repositoryId },
    opts: { deduplication: { id: String(repositoryId), keepLastIfActive: true } },
  }));
  await addAll(ctx, ctx.queues.catchUp, jobs);
  if (!atOnce) return;
  const promote = async (repositoryId: number) => {
    const waiting = await ctx.queues.catchUp.getDeduplicationJobId(String(repositoryId));
    const known = waiting ? await ctx.queues.catchUp.getJob(waiting) : undefined;
    if (await known?.isDelayed()) await known?.promote();
  };
  for (let start = 0; start < repositoryIds.length; start += PROMOTED_AT_ONCE)
    await askQueues(ctx, () => Promise.all(repositoryIds.slice(start, start + PROMOTED_AT_ONCE).map(promote)));
}

/** BullMQ has no request for several jobs, so the requests for so many jobs travel together. */
const PROMOTED_AT_ONCE = 100;

/** Asks for the next parts of audits, in one go. A part that waits or runs already gets no second job. */
export async function enqueueAudits(ctx: QueueAccess, repositoryIds: readonly number[]): Promise<void> {
  const jobs = repositoryIds.map((repositoryId) => ({
    name: "audit",
    data: { repositoryId },
    opts: { deduplication: { id: String(repositoryId) } },
  }));
  await addAll(ctx, ctx.queues.audit, jobs);
}

/**
 * Asks for resources to be read again, each not before `delayMs` from now (upstream's replicas lag behind its
 * webhooks).
 *
 * Many asks become one read. An ask is dropped while an earlier job waits, even for a shorter time. Postgres knows what
 * is still to be asked, and when (`refresh_marks`); the job only makes a worker look there.
 */
export async function enqueueRefreshes(ctx: QueueAccess, asks: { job: RefreshJob; delayMs: number }[]): Promise<void> {
  const jobs = asks.map(({ job, delayMs }) => ({
    name: "refresh",
    data: job,
    opts: { delay: delayMs, deduplication: { id: refreshId(job), keepLastIfActive: true } },
  }));
  await addAll(ctx, ctx.queues.refresh, jobs);
}

/**
 * Wakes targets that have something waiting. A target that is woken during its turn has another turn after it: the running one
 * may have begun too early to see what was just written.
 */
export async function enqueueTargets(ctx: QueueAccess, targetIds: readonly number[]): Promise<void> {
  const jobs: { name: string; data: TargetJob; opts: JobsOptions }[] = targetIds.map((targetId) => ({
    name: "send",
    data: { targetId },
    opts: { deduplication: { id: String(targetId), keepLastIfActive: true } },
  }));
  await addAll(ctx, ctx.queues.targets, jobs);
}

/** Asks for a task to be done for each shard. A shard whose job waits or runs already gets no second one. */
export async function enqueueShards(ctx: QueueAccess, task: ShardedTask, shards: readonly Shard[]): Promise<void> {
  const jobs = shards.map((shard) => ({
    name: task,
    data: shard,
    opts: { deduplication: { id: `${task} ${shard.at} of ${shard.of}` } },
  }));
  await addAll(ctx, ctx.queues.shards, jobs);
}

/** Asks for a maintenance task now, beside its schedule. A task that waits already gets no second job. */
export async function enqueueTask(ctx: QueueAccess, task: MaintenanceTask): Promise<void> {
  // Asked while it runs, it runs once more: what the caller has just stored may have come too late for the running one.
  await askQueues(ctx, () =>
    ctx.queues.maintenance.add(task, {}, { deduplication: { id: task, keepLastIfActive: true } }),
  );
}
