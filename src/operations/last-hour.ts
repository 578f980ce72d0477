import type { Config } from "../config.ts";
import { levelOf } from "../failure.ts";
import type { Logger } from "./log.ts";
import { type RedisClient, whileSilent, withPatience } from "./redis.ts";

/** Together at most an hour and a slot is told. */
const SLOT_MS = 5 * 60_000;
const SLOTS = 12;
/** What comes within this time is noted together. */
const GATHERED_MS = 2_000;
/**
 * Figures that Redis has not taken by then are forgotten: they are for a person's eye, and the metrics count
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

  /** @param name tells these sums from others */
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

  /** Stores what was gathered. What Redis does not take is tried again with what follows. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#gathered.size === 0) return;
    const { redis, config, clock, log } = this.#ctx;
    const key = keyOf(config, this.#name, slotOf(clock.now().getTime()));
    const taken = [...this.#gathered];
    this.#gathered.clear();
    try {
      const together = redis.multi();
      for (const [field, amount] of taken) together.hincrby(key, field, amount);
      await withPatience(redis, () => together.pexpire(key, (SLOTS + 2) * SLOT_MS).exec());
    } catch (error) {
      log[levelOf(error, "debug")]({ err: error, sums: this.#name }, "The sums of the last seconds could not be noted");
      for (const [field, amount] of taken) this.#gathered.set(field, (this.#gathered.get(field) ?? 0) + amount);
    }
  }
}

/** The sums of the last hour, each with its words; null: Redis does not answer, so they are not known. */
export async function sumsOfLastHour(
  { redis, config, clock }: Pick<LastHourContext, "redis" | "config" | "clock">,
  name: string,
): Promise<{ words: string[]; sum: number }[] | null> {
  const now = slotOf(clock.now().getTime());
  const keys = Array.from({ length: SLOTS + 1 }, (_, back) => keyOf(config, name, now - back));
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
  return Math.floor(now / SLOT_MS);
}

function keyOf({ redisPrefix }: Pick<Config, "redisPrefix">, name: string, slot: number): string {
  return `${redisPrefix}:${name}:${slot}`;
}
