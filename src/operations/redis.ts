import { type ChainableCommander, Cluster, Redis, type RedisOptions } from "ioredis";
import { parseRedisAddress, type RedisAddress } from "../config/redis-address.ts";
import type { Config } from "../config.ts";
import { codeOf, isMistake, reasonOf } from "../failure.ts";
import { waitAfterMs } from "../waits/backoff.ts";
import { RETRIES } from "../waits/retries.ts";
import { within } from "../waits/within.ts";
import type { Logger } from "./log.ts";
import { refusalOf } from "./redis-refusal.ts";

/** One server, the server that Sentinels name, or the nodes of a Cluster. */
export type RedisClient = Redis | Cluster;

// While code waits for Redis, a webhook or a request waits too. So it must soon learn that Redis is away.
const REDIS_CONNECT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 3_000;
/** How long Redis may take before a process goes on by itself. */
const REDIS_PATIENCE_MS = 500;

type Opening = { config: Pick<Config, "redisUrl">; log: Logger };

/**
 * The connection for short commands and for adding jobs. While Redis is down its commands fail at once, and it keeps
 * trying to reconnect. It opens in the background, so opening neither waits nor fails.
 */
export function openRedis(ctx: Opening, name: string): RedisClient {
  return open(ctx, {
    connectionName: `tain-${name}`,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
  });
}

/**
 * The connection for workers, which wait in Redis for their next job: commands queue while Redis is away and go on when
 * it is back.
 */
export function openWorkerRedis(ctx: Opening, name: string): RedisClient {
  return open(ctx, { connectionName: `tain-${name}-jobs`, enableOfflineQueue: true, maxRetriesPerRequest: null });
}

type WantedConnection = Pick<RedisOptions, "connectionName" | "maxRetriesPerRequest" | "commandTimeout"> & {
  enableOfflineQueue: boolean;
};

function open({ config, log }: Opening, wanted: WantedConnection): RedisClient {
  const address = parseRedisAddress(config.redisUrl);
  const redis = redisClient(address, { ...wanted, connectTimeout: REDIS_CONNECT_MS });
  reportOutages(redis, address, log);
  return redis;
}

function redisClient(
  address: RedisAddress,
  options: WantedConnection & Pick<RedisOptions, "connectTimeout">,
): RedisClient {
  const retryStrategy = () => waitAfterMs(1, RETRIES.redisConnection, Math.random);
  switch (address.of) {
    case "server":
      return new Redis(address.url, { ...options, retryStrategy });
    case "sentinel": {
      const { of: _, endpoints, master, database, isEncrypted, ...access } = address;
      return new Redis({
        ...{ ...options, ...access, retryStrategy, sentinelRetryStrategy: retryStrategy },
        ...{ sentinels: endpoints, name: master, db: database },
        ...(isEncrypted ? { enableTLSForSentinelMode: true, tls: {}, sentinelTLS: {} } : {}),
        // Not ioredis' `failoverDetector`: a message that it receives while a connection is being made ends the client
        // for good.
        reconnectOnError: isDemoted,
      });
    }
    case "cluster": {
      const { of: _, endpoints, isEncrypted, ...access } = address;
      const { enableOfflineQueue, ...ofNode } = { ...options, ...access, ...(isEncrypted ? { tls: {} } : {}) };
      return new Cluster(endpoints, { clusterRetryStrategy: retryStrategy, enableOfflineQueue, redisOptions: ofNode });
    }
    default:
      return address satisfies never;
  }
}

/**
 * A server that was demoted to a replica refuses writes. The answer 2 makes ioredis reconnect, which finds the new
 * primary, and send the command again.
 */
function isDemoted({ message }: Error): 2 | false {
  return message.startsWith("READONLY") ? 2 : false;
}

/**
 * The server that holds all keys of this Tain, for commands that address a server instead of a key. There is exactly
 * one, because the key prefix is a hash tag.
 */
export async function serverOf(redis: RedisClient, { redisPrefix }: Pick<Config, "redisPrefix">): Promise<Redis> {
  if (redis instanceof Redis) return redis;
  // Only a command on a key makes the client learn that the keys moved to another node.
  await redis.exists(redisPrefix);
  const slot = await redis.cluster("KEYSLOT", redisPrefix);
  const owner = redis.slots[slot]?.[0];
  const node = redis.nodes().find(({ options: { host, port } }) => `${host}:${port}` === owner);
  if (!node) throw new Error(`No node of the Redis Cluster serves slot ${slot}`);
  return node;
}

/** A setting of the server. Null: Redis does not show it, since a hosted one may forbid CONFIG. */
export async function redisSetting(redis: Redis, name: string): Promise<string | null> {
  // An outage leaves it unknown, too, and shows in the caller's other commands.
  const told: unknown = await redis.config("GET", name).catch(() => []);
  return Array.isArray(told) && typeof told[1] === "string" ? told[1] : null;
}

/** Waits until the connection is usable, for at most `timeoutMs`. Returns whether it is. */
export async function redisReady(redis: RedisClient, timeoutMs: number): Promise<boolean> {
  if (redis.status === "ready") return true;
  const { promise: isReady, resolve } = Promise.withResolvers<true>();
  const ready = () => resolve(true);
  redis.once("ready", ready);
  return await within(timeoutMs, isReady, () => {
    redis.off("ready", ready);
    return false;
  });
}

/** Redis is not connected, does not answer in time, or cannot do anything now. */
export class RedisSilentError extends Error {
  override name = "RedisSilentError";
}

/** For `catch`: returns this value if Redis is silent, and rethrows any other error. */
export function whileSilent<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof RedisSilentError) return value;
    throw error;
  };
}

/**
 * Runs short commands, with a time limit: a client without a connection may queue its commands for ever.
 * @throws RedisSilentError, or Redis' own error for a command that is a mistake of ours
 */
export async function withPatience<T>(redis: RedisClient, run: () => Promise<T>): Promise<T> {
  // While the connection is being opened, waiting pays: otherwise a fresh process could not read the quota budget.
  const isOpening = redis.status === "connecting" || redis.status === "connect";
  if (
    ["reconnecting", "close", "end"].includes(redis.status) ||
    (isOpening && !(await redisReady(redis, REDIS_PATIENCE_MS)))
  ) {
    throw new RedisSilentError(`Redis is not connected (${redis.status})`);
  }
  try {
    return await within(REDIS_PATIENCE_MS, run(), () => {
      throw new RedisSilentError(`Redis has not answered within ${REDIS_PATIENCE_MS} ms`);
    });
  } catch (error) {
    if (error instanceof RedisSilentError || isMistake(error)) throw error;
    throw new RedisSilentError(`Redis does not answer: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Runs a transaction, as `withPatience` runs a command. Redis runs the other commands even if one fails, and ioredis
 * only lists that failure in the result.
 * @throws the error of the first command that failed, and as `withPatience`
 */
export async function runMulti(redis: RedisClient, commands: ChainableCommander): Promise<void> {
  await withPatience(redis, async () => {
    // Null only if a watched key had changed, and we watch none.
    const results = (await commands.exec()) ?? [];
    for (const [error] of results) if (error) throw error;
  });
}

/** The other end closed the connection. */
const CLOSED_CODES: ReadonlySet<string> = new Set(["EPIPE", "ECONNRESET"]);

/** Logs one line when an outage begins and one when it ends, however many attempts to reconnect fail in between. */
function reportOutages(redis: RedisClient, address: RedisAddress, log: Logger): void {
  let isDown = false;
  const report = async (error: Error) => {
    const isRefused = CLOSED_CODES.has(codeOf(error) ?? "") || error.message.startsWith("DENIED");
    const refusal = isRefused ? await refusalOf(address) : null;
    const reason = refusal ?? (error.message || error.name);
    log.warn({ reason }, "Redis cannot be reached; trying again until it can");
  };
  redis.on("error", (error: Error) => {
    if (!isDown) void report(error);
    isDown = true;
  });
  redis.on("ready", () => {
    if (isDown) log.info("Redis is back");
    isDown = false;
  });
}
