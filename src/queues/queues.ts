import { type JobsOptions, Queue } from "bullmq";
import { isBug, reasonOf } from "../failure.ts";
import type { RedisClient } from "../operations/redis.ts";
import type { Stores } from "../stores.ts";
import type {
  BurstJob,
  CommandJob,
  DeliveryJob,
  InboxJob,
  MaintenanceTask,
  RefreshJob,
  RepositoryJob,
  Shard,
  ShardedTask,
  TargetJob,
} from "./jobs.ts";

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
export const QUEUE_KEYS = Object.keys(QUEUE_NAMES) as (keyof Queues)[];

const DAY_S = 86_400;

/** Bounded. Finished jobs only help a person who looks at the queue. Failed jobs stay a week with their reason. */
const KEPT: JobsOptions = {
  removeOnComplete: { count: 100, age: DAY_S },
  removeOnFail: { count: 10_000, age: 7 * DAY_S },
};

/** How the wait grows is said in `workers/retry-policy.ts`. */
const BACKOFF = { type: "capped" };

const OPTIONS: Record<keyof Queues, JobsOptions> = {
  // The delivery exists nowhere else until it is in Postgres. So one that cannot be stored is kept until a person acts.
  // The attempts are for failures that are not of Postgres: an absent Postgres costs none.
  inbox: { ...KEPT, attempts: 8, backoff: BACKOFF, removeOnComplete: true, removeOnFail: false },
  deliveries: { ...KEPT, attempts: 8, backoff: BACKOFF, removeOnComplete: true },
  // A delivery that could not be applied gets a job of its own. If the shared job broke, the dispatcher finds its
  // deliveries.
  bursts: { attempts: 1, removeOnComplete: true, removeOnFail: true },
  // Long work continues at the last page. It rests after some twenty minutes of failures in a row, until it is asked
  // for again.
  backfill: { ...KEPT, attempts: 20, backoff: BACKOFF },
  catchUp: { ...KEPT, attempts: 8, backoff: BACKOFF },
  audit: { ...KEPT, attempts: 3, backoff: BACKOFF },
  refresh: { ...KEPT, attempts: 8, backoff: BACKOFF },
  // Events that wait for a target stand in Postgres, and are looked for there every two seconds.
  targets: { ...KEPT, attempts: 1, removeOnComplete: true },
  // A person waits for it, and is told how it ended by its own key.
  commands: { ...KEPT, attempts: 1, removeOnComplete: true },
  // Asked for again by the scheduler within seconds anyway.
  maintenance: {
    attempts: 1,
    removeOnComplete: { count: 20, age: DAY_S },
    removeOnFail: { count: 200, age: 7 * DAY_S },
  },
  // The same.
  shards: { attempts: 1, removeOnComplete: true, removeOnFail: { count: 200, age: 7 * DAY_S } },
};

/** The producers' side. `redis` comes from `openRedis`, so that with Redis down adding a job fails instead of waiting. */
export function openQueues({ config, redis, log }: Pick<Stores, "config" | "redis" | "log">): Queues {
  const queues: Partial<Record<keyof Queues, Queue>> = {};
  const open = (key: keyof Queues): Queue => {
    const queue = new Queue(QUEUE_NAMES[key], {
      connection: redis,
      prefix: config.redisPrefix,
      defaultJobOptions: OPTIONS[key],
      // Nothing reads the queues' event streams; the default keeps 10,000 entries of each.
      streams: { events: { maxLen: 100 } },
    });
    // The connection reports its own outages; what arrives here concerns one queue, such as a script that Redis refuses.
    queue.on("error", (error) => log.debug({ queue: QUEUE_NAMES[key], err: error }, "A queue reports an error"));
    // A queue whose first words with Redis were cut off stays broken for good (BullMQ keeps the rejected promise), so
    // another takes its place.
    queue.waitUntilReady().catch(() => redis.once("ready", () => open(key)));
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

/** Redis cannot take a job at the moment, or does not list the jobs that it has. */
export class QueueUnavailableError extends Error {
  override name = "QueueUnavailableError";
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
    if (isBug(error)) throw error;
    throw new QueueUnavailableError(`Redis does not answer for its queues: ${reasonOf(error)}`, { cause: error });
  }
}
