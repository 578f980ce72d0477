import { isPostgresOutage } from "../../../db/outage.ts";
import type { Context } from "../../context.ts";
import { Batches } from "../../work/batches.ts";
import { type Applied, applyDeliveries } from "./apply.ts";

/** So many go into one transaction. More saves little, and holds rows for longer. */
const BATCH = 128;
/** While Postgres works on one batch, the payloads of another are read. */
const AT_ONCE = 2;

/** How many deliveries a process should take up at once, so that each batch finds the next one waiting. */
export const DELIVERIES_AT_ONCE = BATCH * AT_ONCE;

/** Applies what is asked for one by one in batches. */
export class DeliveryBatches {
  readonly #batches: Batches<string, Applied>;

  constructor(ctx: Context) {
    this.#batches = new Batches(ctx, { size: BATCH, atOnce: AT_ONCE }, async (ids) => {
      const outcomes = await applyDeliveries(ctx, ids);
      return ids.map((id) => outcomes.get(id));
    });
  }

  /** @throws InvalidPayloadError when the payload cannot be what its event says */
  apply({ deliveryId }: { deliveryId: string }): Promise<Applied> {
    return this.#batches.add(deliveryId);
  }

  /**
   * Applies deliveries that arrived together, and answers those that failed. Each failed one gets a job of its own,
   * which can be tried again and shows the reason.
   * @throws the errors that say Postgres is away; then no delivery need be tried by itself
   */
  async applyBurst({ deliveryIds }: { deliveryIds: readonly string[] }): Promise<string[]> {
    const outcomes = await Promise.allSettled(deliveryIds.map((deliveryId) => this.apply({ deliveryId })));
    for (const outcome of outcomes)
      if (outcome.status === "rejected" && isPostgresOutage(outcome.reason)) throw outcome.reason;
    return deliveryIds.filter((_, index) => outcomes[index]?.status === "rejected");
  }
}
