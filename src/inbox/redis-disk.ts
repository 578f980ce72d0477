import type { Redis } from "ioredis";
import type { Config } from "../config.ts";
import type { Logger } from "../operations/log.ts";
import { openRedis, type RedisClient, redisReady, serverOf } from "../operations/redis.ts";
import type { Tracing } from "../operations/tracing.ts";
import { Batches } from "../work/batches.ts";

/** Redis has what it was told, but not where it outlives the end of its machine. */
class NotOnDiskError extends Error {
  override name = "NotOnDiskError";
}

/** A Redis that puts its log on disk each second needs up to two where the disk is busy. */
const PATIENCE_MS = 2_500;

interface DiskContext {
  config: Pick<Config, "redisUrl" | "redisPrefix">;
  log: Logger;
  tracing: Tracing;
}

/** Knows when what Redis was told stands on its disk, and on a replica where there is one. */
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
   * Settles once everything that Redis has acknowledged before stands on its disk.
   * @throws NotOnDiskError where it does not, or does not in time; what Redis throws
   */
  async settled(): Promise<void> {
    await this.#waits.add(null);
  }

  close(): void {
    this.#redis?.disconnect();
  }

  async #wait(): Promise<void> {
    // Redis lets the whole connection wait, so that nothing else may use it.
    this.#redis ??= openRedis(this.#ctx, "disk");
    if (!(await redisReady(this.#redis, PATIENCE_MS))) throw new NotOnDiskError("Redis cannot be reached");
    const redis = await serverOf(this.#redis, this.#ctx.config);
    const facts = redisFacts(await redis.info("everything"));
    const known = diskKnowledge(facts, await appendFsync(redis));
    if (typeof known === "object") throw new NotOnDiskError(known.problem);
    // Redis waits for the last write of the same connection. All writes are one sequence, so what came before has come,
    // too.
    await redis.incr(`${this.#ctx.config.redisPrefix}:on-disk`);
    if (known === "asked") {
      const reached = await redis.call("WAITAOF", 1, 0, PATIENCE_MS);
      if (!Array.isArray(reached) || reached[0] !== 1)
        throw new NotOnDiskError(`Redis had not put it on disk within ${PATIENCE_MS} ms`);
    }
    if (Number(facts.get("connected_slaves")) === 0) return;
    const replicas = await redis.wait(1, PATIENCE_MS);
    if (replicas < 1) throw new NotOnDiskError(`No replica of Redis had it within ${PATIENCE_MS} ms`);
  }
}

/** What INFO says. */
export type RedisFacts = ReadonlyMap<string, string>;

export function redisFacts(info: string): RedisFacts {
  return new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]));
}

/** `appendfsync`; null where Redis does not tell it, as hosted ones. */
export async function appendFsync(redis: Redis): Promise<string | null> {
  // A refusal says no more than that. An outage shows in the commands that follow.
  const told = await redis.config("GET", "appendfsync").catch(() => []);
  return Array.isArray(told) && typeof told[1] === "string" ? told[1] : null;
}

/**
 * How it is known that a write is on disk: it is before the write is answered ("answered"), or Redis tells ("asked"). A
 * problem in words where it is not known. Pure.
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
