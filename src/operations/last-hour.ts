import type { Config } from "../config.ts";
import { isMistake, levelOf } from "../failure.ts";
import type { Logger } from "./log.ts";
import { type RedisClient, runMulti, whileSilent, withPatience } from "./redis.ts";

/** Sums are kept in slots of this length. A report covers the last hour and the slot that has begun. */
const SUM_SLOT_MS = 5 * 60_000;
const SLOTS_AN_HOUR = 12;
/** Counts are gathered for this long, and then written to Redis in one go. */
const GATHERED_MS = 2_000;
/**
 * If Redis is away and more counts than this wait, they are dropped. They are only for display; the metrics count
 * everything.
 */
const MOST_GATHERED = 2_000;

interface LastHourContext {
  redis: RedisClient;
  config: Pick<Config, "redisPrefix">;
  clock: { now(): Date };
  log: Logger;
}

/** Sums of all processes over the last hour, by words that say what is counted; a few seconds' worth at a time. */
export class LastHour {
  readonly #ctx: LastHourContext;
  readonly #name: string;
  readonly #gathered = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;

  /** @param name separates these sums from others in Redis */
  constructor(ctx: LastHourContext, name: string) {
    this.#ctx = ctx;
    this.#name = name;
  }

  note(words: readonly string[], amount: number): void {
    const field = words.join("\t");
    if (!this.#gathered.has(field) && this.#gathered.size >= MOST_GATHERED) return;
    this.#gathered.set(field, (this.#gathered.get(field) ?? 0) + amount);
    this.#timer ??= setTimeout(() => void this.flush(), GATHERED_MS).unref();
  }

  /** Writes the gathered counts to Redis. If Redis is away, they are written with the next ones. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#gathered.size === 0) return;
    const { redis, config, clock, log } = this.#ctx;
    const key = slotKey(config, this.#name, slotOf(clock.now().getTime()));
    const taken = [...this.#gathered];
    this.#gathered.clear();
    try {
      const together = redis.multi();
      for (const [field, amount] of taken) together.hincrby(key, field, amount);
      await runMulti(redis, together.pexpire(key, (SLOTS_AN_HOUR + 2) * SUM_SLOT_MS));
    } catch (error) {
      log[levelOf(error, "debug")]({ err: error, sums: this.#name }, "The sums of the last seconds could not be noted");
      // Redis may have taken the other counts, and would refuse this one again.
      if (isMistake(error)) return;
      for (const [field, amount] of taken) this.#gathered.set(field, (this.#gathered.get(field) ?? 0) + amount);
    }
  }
}

/** The sums of the last hour, each with its words. Null: Redis does not answer. */
export async function sumsOfLastHour(
  { redis, config, clock }: Pick<LastHourContext, "redis" | "config" | "clock">,
  name: string,
): Promise<{ words: string[]; sum: number }[] | null> {
  const now = slotOf(clock.now().getTime());
  const keys = Array.from({ length: SLOTS_AN_HOUR + 1 }, (_, back) => slotKey(config, name, now - back));
  const slots = await withPatience(redis, () => Promise.all(keys.map((key) => redis.hgetall(key)))).catch(
    whileSilent(null),
  );
  if (slots === null) return null;
  const sums = new Map<string, number>();
  for (const [field, amount] of slots.flatMap((slot) => Object.entries(slot)))
    sums.set(field, (sums.get(field) ?? 0) + Number(amount));
  return [...sums].map(([field, sum]) => ({ words: field.split("\t"), sum }));
}

function slotOf(now: number): number {
  return Math.floor(now / SUM_SLOT_MS);
}

function slotKey({ redisPrefix }: Pick<Config, "redisPrefix">, name: string, slot: number): string {
  return `${redisPrefix}:${name}:${slot}`;
}
