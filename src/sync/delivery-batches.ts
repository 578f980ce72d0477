import { isPostgresOutage } from "../../db/outage.ts";
import type { Context } from "../context.ts";
import { type Applied, applyDeliveries, InvalidPayloadError } from "./apply.ts";

/** So many go into one transaction. More saves little, and holds rows for longer. */
const BATCH = 128;
/** While Postgres works on one batch, the payloads of another are read. */
const AT_ONCE = 2;

/** How many deliveries a process should take up at once, so that each batch finds the next one waiting. */
export const DELIVERIES_AT_ONCE = BATCH * AT_ONCE;

interface Waiting {
  deliveryId: string;
  resolve: (applied: Applied) => void;
  reject: (error: unknown) => void;
}

/**
 * Applies what is asked for one by one in batches: whatever has come while the ones before were applied. A lone delivery
 * waits for nobody, and one that cannot be applied fails alone.
 */
export class DeliveryBatches {
  readonly #ctx: Context;
  readonly #waiting: Waiting[] = [];
  #running = 0;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** @throws InvalidPayloadError when the payload cannot be what its event says */
  apply({ deliveryId }: { deliveryId: string }): Promise<Applied> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ deliveryId, resolve, reject });
      // The callers of one moment make one batch.
      queueMicrotask(() => this.#next());
    });
  }

  /**
   * Applies deliveries that arrived together, and answers which of them could not be. Why is for a job of its own to find
   * out, which can be tried again without the others.
   * @throws what says that Postgres is away; then none need be tried by itself
   */
  async applyBurst({ deliveryIds }: { deliveryIds: readonly string[] }): Promise<string[]> {
    const failed: string[] = [];
    const outcomes = await Promise.allSettled(deliveryIds.map((deliveryId) => this.apply({ deliveryId })));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") continue;
      if (isPostgresOutage(outcome.reason)) throw outcome.reason;
      failed.push(deliveryIds[index] as string);
    }
    return failed;
  }

  #next(): void {
    if (this.#running === AT_ONCE || this.#waiting.length === 0) return;
    this.#running += 1;
    this.#run(this.#waiting.splice(0, BATCH)).finally(() => {
      this.#running -= 1;
      this.#next();
    });
  }

  async #run(batch: Waiting[]): Promise<void> {
    try {
      this.#settle(batch, await applyDeliveries(this.#ctx, ids(batch)));
    } catch (error) {
      if (batch.length === 1 || isPostgresOutage(error)) {
        for (const { reject } of batch) reject(error);
        return;
      }
      this.#ctx.log.debug(
        { deliveries: batch.length, err: error },
        "A batch failed; its deliveries are applied singly",
      );
      for (const one of batch) await this.#run([one]);
    }
  }

  #settle(batch: Waiting[], outcomes: Map<string, Applied | InvalidPayloadError>): void {
    const left: Waiting[] = [];
    for (const one of batch) {
      const outcome = outcomes.get(one.deliveryId);
      if (outcome === undefined) left.push(one);
      else if (outcome instanceof InvalidPayloadError) one.reject(outcome);
      else one.resolve(outcome);
    }
    this.#waiting.unshift(...left);
  }
}

function ids(batch: Waiting[]): string[] {
  return batch.map(({ deliveryId }) => deliveryId);
}
