import { levelOf } from "../../failure.ts";
import { withPatience } from "../../operations/redis.ts";
import type { Stores } from "../../stores.ts";

/** Together at most an hour and a slot is told. */
const SLOT_MS = 5 * 60_000;
const SLOTS = 12;
/** What is spent within this time is noted together. */
const GATHERED_MS = 2_000;
/** What Redis has not taken by then is forgotten: the figures are for a person's eye, the metrics count everything. */
const MOST_GATHERED = 2_000;

/** What something took of the mirror's quota. */
export interface Spent {
  class: string;
  bucket: string;
  /** Where it went, with a star for each name and number. */
  route: string;
  /** Whom it was read for, as their quota is named; empty: for nobody in particular. */
  caller: string;
  /** Requests, or points of GraphQL. */
  cost: number;
}

/** Notes for all processes what takes of the mirror's quota, a few seconds' worth at a time. */
export class Spending {
  readonly #ctx: Pick<Stores, "redis" | "config" | "clock" | "log">;
  readonly #gathered = new Map<string, number>();
  #timer: NodeJS.Timeout | null = null;

  constructor(ctx: Pick<Stores, "redis" | "config" | "clock" | "log">) {
    this.#ctx = ctx;
  }

  note({ cost, class: name, bucket, route, caller }: Spent): void {
    const field = [name, bucket, route, caller].join("\t");
    if (!this.#gathered.has(field) && this.#gathered.size >= MOST_GATHERED) return;
    this.#gathered.set(field, (this.#gathered.get(field) ?? 0) + cost);
    this.#timer ??= setTimeout(() => void this.flush(), GATHERED_MS).unref();
  }

  /** Stores what was gathered. What Redis does not take is tried again with what follows. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#gathered.size === 0) return;
    const { redis, config, clock, log } = this.#ctx;
    const key = keyOf(config, slotOf(clock.now().getTime()));
    const taken = [...this.#gathered];
    this.#gathered.clear();
    try {
      const together = redis.multi();
      for (const [field, cost] of taken) together.hincrby(key, field, cost);
      await withPatience(redis, () => together.pexpire(key, (SLOTS + 2) * SLOT_MS).exec());
    } catch (error) {
      log[levelOf(error, "debug")]({ err: error }, "What upstream's quota is spent on could not be noted");
      for (const [field, cost] of taken) this.#gathered.set(field, (this.#gathered.get(field) ?? 0) + cost);
    }
  }
}

/** What was spent within the last hour, the most first; null: Redis does not answer, so it is not known. */
export async function spentLately({
  redis,
  config,
  clock,
}: Pick<Stores, "redis" | "config" | "clock">): Promise<Spent[] | null> {
  const now = slotOf(clock.now().getTime());
  const keys = Array.from({ length: SLOTS + 1 }, (_, back) => keyOf(config, now - back));
  const slots = await withPatience(redis, () => Promise.all(keys.map((key) => redis.hgetall(key)))).catch(() => null);
  if (slots === null) return null;
  const sums = new Map<string, number>();
  for (const [field, cost] of slots.flatMap((slot) => Object.entries(slot)))
    sums.set(field, (sums.get(field) ?? 0) + Number(cost));
  const spent = [...sums].map(([field, cost]) => {
    const [name = "", bucket = "", route = "", caller = ""] = field.split("\t");
    return { class: name, bucket, route, caller, cost };
  });
  return spent.sort((one, other) => other.cost - one.cost);
}

function slotOf(now: number): number {
  return Math.floor(now / SLOT_MS);
}

function keyOf({ redisPrefix }: Pick<Stores["config"], "redisPrefix">, slot: number): string {
  return `${redisPrefix}:quota-spent:${slot}`;
}
