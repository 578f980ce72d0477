import { LRUCache } from "lru-cache";
import type { Context } from "../../context.ts";
import { levelOf } from "../../failure.ts";
import { mostEntries } from "../../work/bounded.ts";

/** Long enough for callers who ask at weekends alone, or whom a process has known since. */
const LATELY_MS = 7 * 24 * 3_600_000;
/** A network is noted again after this long, which keeps the notes few. */
const NOTED_MS = 3_600_000;
const MOST_NETWORKS = 10_000;

/**
 * The networks from which upstream accepted a token lately. Redis holds them, so that a process that has just started
 * knows them as well. Without Redis each process knows its own.
 */
export class AcceptedNetworks {
  readonly #ctx: Pick<Context, "config" | "clock" | "redis" | "log">;
  /** When each was noted by this process. */
  readonly #noted = new LRUCache<string, number>(mostEntries(MOST_NETWORKS));

  constructor(ctx: Pick<Context, "config" | "clock" | "redis" | "log">) {
    this.#ctx = ctx;
  }

  async has(network: string): Promise<boolean> {
    if (this.#isNoted(network, LATELY_MS)) return true;
    const found = await this.#inRedis((redis) => redis.exists(this.#key(network)));
    return found === 1;
  }

  async note(network: string): Promise<void> {
    if (this.#isNoted(network, NOTED_MS)) return;
    this.#noted.set(network, this.#ctx.clock.now().getTime());
    await this.#inRedis((redis) => redis.set(this.#key(network), "1", "PX", LATELY_MS));
  }

  #isNoted(network: string, withinMs: number): boolean {
    const notedAt = this.#noted.get(network);
    return notedAt !== undefined && this.#ctx.clock.now().getTime() - notedAt < withinMs;
  }

  #key(network: string): string {
    return `${this.#ctx.config.redisPrefix}:accepted:${network}`;
  }

  /** Null: Redis cannot be asked. No login fails with it. */
  async #inRedis<T>(ask: (redis: Context["redis"]) => Promise<T>): Promise<T | null> {
    if (this.#ctx.redis.status !== "ready") return null;
    try {
      return await ask(this.#ctx.redis);
    } catch (error) {
      const level = levelOf(error, "warn");
      this.#ctx.log[level]({ err: error }, "Redis cannot be asked which networks had callers; logins go on without");
      return null;
    }
  }
}
