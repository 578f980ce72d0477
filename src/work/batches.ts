import { isPostgresOutage } from "../../db/outage.ts";
import { levelOf } from "../failure.ts";
import type { Logger } from "../operations/log.ts";
import type { Tracing } from "../operations/tracing.ts";

interface QueuedItem<Item, Outcome> {
  item: Item;
  resolve: (outcome: Outcome | Promise<Outcome>) => void;
  reject: (error: unknown) => void;
  /** Runs code in the trace of the item. Null: traces are off. */
  enter: ReturnType<Tracing["snapshot"]>;
}

export interface BatchLimits<Item> {
  /** The most items of a batch. */
  size: number;
  /** The most bytes of a batch. A single larger item makes a batch of its own. */
  bytes?: { most: number; of: (item: Item) => number };
  /** The most batches that run at once. */
  atOnce: number;
}

/** The outcome of an item. An Error: only this item fails. Undefined: the item goes to the front of the next batch. */
type Come<Outcome> = Outcome | Promise<Outcome> | Error | undefined;

/**
 * Processes single items in batches. A batch holds the items that arrived while earlier batches ran. A lone item does
 * not wait for others, and a bad item fails alone.
 */
export class Batches<Item, Outcome> {
  readonly #log: Logger;
  readonly #tracing: Pick<Tracing, "snapshot">;
  readonly #run: (items: readonly Item[]) => Promise<readonly Come<Outcome>[]>;
  readonly #limits: BatchLimits<Item>;
  readonly #waiting: QueuedItem<Item, Outcome>[] = [];
  #isAwaited = false;
  #underWay = 0;

  /**
   * @param run returns the outcome of each item, in their order. If it throws, each item of the batch is tried alone.
   */
  constructor(
    { log, tracing }: { log: Logger; tracing: Pick<Tracing, "snapshot"> },
    limits: BatchLimits<Item>,
    run: (items: readonly Item[]) => Promise<readonly Come<Outcome>[]>,
  ) {
    this.#log = log;
    this.#tracing = tracing;
    this.#limits = limits;
    this.#run = run;
  }

  /** @throws the item's own error, or the error of a Postgres outage */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject, enter: this.#tracing.snapshot() });
      if (this.#isAwaited) return;
      this.#isAwaited = true;
      // Behind the current callback, with all items that it adds.
      queueMicrotask(() => {
        this.#isAwaited = false;
        this.#next();
      });
    });
  }

  #next(): void {
    while (this.#underWay < this.#limits.atOnce && this.#waiting.length > 0) {
      this.#underWay += 1;
      const batch = this.#take();
      const run = () => this.#do(batch);
      // Otherwise this batch would appear in the trace of the batch before.
      const enter = batch[0]?.enter;
      (enter ? enter(run) : run()).finally(() => {
        this.#underWay -= 1;
        this.#next();
      });
    }
  }

  #take(): QueuedItem<Item, Outcome>[] {
    const { size, bytes } = this.#limits;
    let sum = 0;
    const end = this.#waiting.findIndex(({ item }, at) => {
      sum += bytes?.of(item) ?? 0;
      return at > 0 && (at === size || sum > (bytes?.most ?? Number.POSITIVE_INFINITY));
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #do(batch: QueuedItem<Item, Outcome>[]): Promise<void> {
    try {
      this.#settle(batch, await this.#run(batch.map(({ item }) => item)));
    } catch (error) {
      if (batch.length === 1 || isPostgresOutage(error)) {
        for (const { reject } of batch) reject(error);
        return;
      }
      const level = levelOf(error, "debug");
      this.#log[level]({ items: batch.length, err: error }, "A batch failed; its items are tried singly");
      for (const one of batch) await this.#do([one]);
    }
  }

  #settle(batch: QueuedItem<Item, Outcome>[], outcomes: readonly Come<Outcome>[]): void {
    const left: QueuedItem<Item, Outcome>[] = [];
    for (const [at, one] of batch.entries()) {
      const outcome = outcomes[at];
      if (outcome === undefined) left.push(one);
      else if (outcome instanceof Error) one.reject(outcome);
      else one.resolve(outcome);
    }
    this.#waiting.unshift(...left);
  }
}
