import { isPostgresOutage } from "../../db/outage.ts";
import type { Context } from "../context.ts";

interface Waiting<Item, Outcome> {
  item: Item;
  resolve: (outcome: Outcome) => void;
  reject: (error: unknown) => void;
}

interface Limits {
  /** So many items make a batch at most. */
  size: number;
  /** So many batches are under way at most. */
  atOnce: number;
}

/**
 * Does what is asked for one by one in batches: whatever has come while the ones before were done. A lone item waits for
 * nobody, and one that cannot be done fails alone.
 */
export class Batches<Item, Outcome> {
  readonly #ctx: Pick<Context, "log">;
  readonly #run: (items: readonly Item[]) => Promise<(Outcome | Error | undefined)[]>;
  readonly #limits: Limits;
  readonly #waiting: Waiting<Item, Outcome>[] = [];
  #underWay = 0;

  /**
   * @param run answers for each item, in their order, what came of it; an Error: it fails alone; undefined: it comes first in
   * the next batch. When it throws, each of a batch is tried alone.
   */
  constructor(
    ctx: Pick<Context, "log">,
    limits: Limits,
    run: (items: readonly Item[]) => Promise<(Outcome | Error | undefined)[]>,
  ) {
    this.#ctx = ctx;
    this.#limits = limits;
    this.#run = run;
  }

  /** @throws what became of this item; or, with Postgres away, what says so */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      // The callers of one moment make one batch.
      queueMicrotask(() => this.#next());
    });
  }

  #next(): void {
    if (this.#underWay === this.#limits.atOnce || this.#waiting.length === 0) return;
    this.#underWay += 1;
    this.#do(this.#waiting.splice(0, this.#limits.size)).finally(() => {
      this.#underWay -= 1;
      this.#next();
    });
  }

  async #do(batch: Waiting<Item, Outcome>[]): Promise<void> {
    try {
      this.#settle(batch, await this.#run(batch.map(({ item }) => item)));
    } catch (error) {
      if (batch.length === 1 || isPostgresOutage(error)) {
        for (const { reject } of batch) reject(error);
        return;
      }
      this.#ctx.log.debug({ items: batch.length, err: error }, "A batch failed; its items are tried singly");
      for (const one of batch) await this.#do([one]);
    }
  }

  #settle(batch: Waiting<Item, Outcome>[], outcomes: (Outcome | Error | undefined)[]): void {
    const left: Waiting<Item, Outcome>[] = [];
    for (const [at, one] of batch.entries()) {
      const outcome = outcomes[at];
      if (outcome === undefined) left.push(one);
      else if (outcome instanceof Error) one.reject(outcome);
      else one.resolve(outcome);
    }
    this.#waiting.unshift(...left);
  }
}
