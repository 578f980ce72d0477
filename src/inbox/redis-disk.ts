import type { Config } from "../config.ts";
import type { Logger } from "../operations/log.ts";
import { openRedis, type RedisClient, redisReady, redisSetting, serverOf } from "../operations/redis.ts";
import type { Tracing } from "../operations/tracing.ts";
import { Batches } from "../work/batches.ts";

/** Redis has the write, but not on disk, so the write would be lost with the machine. */
class NotOnDiskError extends Error {
  override name = "NotOnDiskError";
}

/** A Redis that puts its log on disk each second needs up to two where the disk is busy. */
const DISK_PATIENCE_MS = 2_500;

interface DiskContext {
  config: Pick<Config, "redisUrl" | "redisPrefix">;
  log: Logger;
  tracing: Tracing;
}

/** Waits until writes to Redis are on its disk, and on a replica if there is one. */
export class RedisDisk {
  readonly #ctx: DiskContext;
  readonly #waits: Batches<null, null>;
  #redis: RedisClient | null = null;

  constructor(ctx: DiskContext) {
    this.#ctx = ctx;
    const limits = { size: Number.POSITIVE_INFINITY, atOnce: 1 };
    this.#waits = new Batches<null, null>(ctx, limits, async (asked) => {
      const found = await this.#wait().then(
        () => null,
        (error: Error) => error,
      );
      return asked.map(() => found);
    });
  }

  /**
   * Resolves once every earlier acknowledged write is on Redis' disk.
   * @throws NotOnDiskError if a write is not on disk in time; Redis' own error
   */
  async settled(): Promise<void> {
    await this.#waits.add(null);
  }

  close(): void {
    this.#redis?.disconnect();
  }

  async #wait(): Promise<void> {
    // A connection of its own, because Redis blocks the whole connection meanwhile.
    this.#redis ??= openRedis(this.#ctx, "disk");
    if (!(await redisReady(this.#redis, DISK_PATIENCE_MS))) throw new NotOnDiskError("Redis cannot be reached");
    const redis = await serverOf(this.#redis, this.#ctx.config);
    const facts = redisFacts(await redis.info("everything"));
    const known = diskKnowledge(facts, await redisSetting(redis, "appendfsync"));
    if (typeof known === "object") throw new NotOnDiskError(known.problem);
    // Redis waits for the last write of the same connection. All writes form one sequence, so earlier writes of other
    // connections are on disk, too.
    await redis.incr(`${this.#ctx.config.redisPrefix}:on-disk`);
    if (known === "asked") {
      const reached = await redis.call("WAITAOF", 1, 0, DISK_PATIENCE_MS);
      if (!Array.isArray(reached) || reached[0] !== 1)
        throw new NotOnDiskError(`Redis had not put it on disk within ${DISK_PATIENCE_MS} ms`);
    }
    if (Number(facts.get("connected_slaves")) === 0) return;
    const replicas = await redis.wait(1, DISK_PATIENCE_MS);
    if (replicas < 1) throw new NotOnDiskError(`No replica of Redis had it within ${DISK_PATIENCE_MS} ms`);
  }
}

/** The fields of Redis' answer to INFO. */
export type RedisFacts = ReadonlyMap<string, string>;

export function redisFacts(info: string): RedisFacts {
  return new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]));
}

/**
 * How we know that a write is on disk. "answered": Redis answers only then. "asked": Redis has to be asked. A problem
 * in words: there is no way to know. Pure.
 */
export function diskKnowledge(facts: RedisFacts, fsync: string | null): "answered" | "asked" | { problem: string } {
  if (facts.get("aof_enabled") !== "1") return { problem: "Redis keeps no append-only file" };
  // Redis docs: WAITAOF since 7.2. Valkey calls itself a Redis 7.2.4.
  const [major = 0, minor = 0] = (facts.get("redis_version") ?? "").split(".").map(Number);
  if (fsync === "always") return "answered";
  if (major > 7 || (major === 7 && minor >= 2)) return "asked";
  const when = fsync === null ? "it does not tell when" : `appendfsync is ${fsync}`;
  return { problem: `Redis does not put each write on disk (${when})` };
}
