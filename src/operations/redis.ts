import { Redis } from "ioredis";
import type { Config } from "../config.ts";
import type { Logger } from "./log.ts";

// A caller that waits on Redis holds a webhook or a request: it must learn soon that Redis is not there.
const CONNECT_TIMEOUT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 3_000;
const RECONNECT_MS = 500;
/** How long Redis may take before a process goes on by itself. */
const PATIENCE_MS = 500;

/**
 * The connection for short commands and for adding jobs. With Redis down its commands fail at once; it keeps trying to
 * come back. It opens in the background, so opening neither waits nor fails.
 */
export function openRedis({ config, log }: { config: Pick<Config, "redisUrl">; log: Logger }, name: string): Redis {
  const redis = new Redis(config.redisUrl, {
    connectionName: `tain-${name}`,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: () => RECONNECT_MS,
  });
  reportOutages(redis, log);
  return redis;
}

/**
 * The connection for workers, which wait in Redis for their next job: commands queue while Redis is away and go on when
 * it is back.
 */
export function openWorkerRedis(
  { config, log }: { config: Pick<Config, "redisUrl">; log: Logger },
  name: string,
): Redis {
  const redis = new Redis(config.redisUrl, {
    connectionName: `tain-${name}-jobs`,
    maxRetriesPerRequest: null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: () => RECONNECT_MS,
  });
  reportOutages(redis, log);
  return redis;
}

/** Settles once the connection is usable, or after `timeoutMs` without it. Answers which. */
export async function redisReady(redis: Redis, timeoutMs: number): Promise<boolean> {
  if (redis.status === "ready") return true;
  return await new Promise((resolve) => {
    const timer = setTimeout(() => settle(false), timeoutMs);
    const ready = () => settle(true);
    const settle = (isReady: boolean) => {
      clearTimeout(timer);
      redis.off("ready", ready);
      resolve(isReady);
    };
    redis.once("ready", ready);
  });
}

/** Runs short commands. A client without a connection may keep them for later, perhaps for ever: we do not wait for that. */
export async function withPatience<T>(redis: Redis, run: () => Promise<T>): Promise<T> {
  // A connection that is being opened is worth the wait: without it a fresh process would know nothing of the budget.
  const isOpening = redis.status === "connecting" || redis.status === "connect";
  if (
    ["reconnecting", "close", "end"].includes(redis.status) ||
    (isOpening && !(await redisReady(redis, PATIENCE_MS)))
  ) {
    throw new Error(`Redis is not connected (${redis.status})`);
  }
  const { promise: outOfTime, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`Redis has not answered within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  try {
    return await Promise.race([run(), outOfTime]);
  } finally {
    clearTimeout(timer);
  }
}

/** An outage is one line when it begins and one when it ends, however many attempts to reconnect lie between. */
function reportOutages(redis: Redis, log: Logger): void {
  let isDown = false;
  redis.on("error", (error: Error) => {
    if (!isDown)
      log.warn({ reason: error.message || error.name }, "Redis cannot be reached; trying again until it can");
    isDown = true;
  });
  redis.on("ready", () => {
    if (isDown) log.info("Redis is back");
    isDown = false;
  });
}
