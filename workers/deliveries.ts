import type { Worker } from "bullmq";
import { isPostgresOutage } from "../db/outage.ts";
import type { Context } from "../src/context.ts";
import { failDelivery } from "../src/inbox/inbox.ts";
import { BURST_SIZE, type BurstJob, type DeliveryJob } from "../src/queues/jobs.ts";
import { enqueueDeliveries, QUEUE_NAMES } from "../src/queues/queues.ts";
import { type Applied, applyDeliveries } from "../src/sync/deliveries/apply.ts";
import { Batches } from "../src/work/batches.ts";
import { ANY_NUMBER, openWorker, type WorkerContext } from "./worker.ts";

/** So many go into one transaction. More saves little, and holds rows for longer. */
const DELIVERIES_A_BATCH = 128;
/** While Postgres works on one batch, the payloads of another are read. */
const BATCHES_UNDER_WAY = 2;

/** How many deliveries a process should take up at once, so that each batch finds the next one waiting. */
const DELIVERIES_AT_ONCE = DELIVERIES_A_BATCH * BATCHES_UNDER_WAY;

/** Applies what is asked for one by one in batches. */
export class DeliveryBatches {
  readonly #batches: Batches<string, Applied>;

  constructor(ctx: Context) {
    this.#batches = new Batches(ctx, { size: DELIVERIES_A_BATCH, atOnce: BATCHES_UNDER_WAY }, async (ids) => {
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

/** Applies deliveries to the mirror. A delivery whose job has failed for good is settled as failed, with the reason. */
export function openDeliveriesWorker(
  ctx: WorkerContext,
  batches: DeliveryBatches = new DeliveryBatches(ctx),
): Worker<DeliveryJob> {
  ctx.metrics.activity.tellOf("applied", "ignored", "lagMs", "slowestMs");
  const options = { concurrency: DELIVERIES_AT_ONCE, mostTakeovers: ANY_NUMBER };
  const worker = openWorker<DeliveryJob>(ctx, QUEUE_NAMES.deliveries, options, (job) => batches.apply(job.data));
  worker.on("failed", (job, error) => {
    if (job?.finishedOn === undefined) return; // It will be tried again.
    const { deliveryId } = job.data;
    failDelivery(ctx, { deliveryId, reason: error.message, attempts: job.attemptsMade }).catch((cause: Error) => {
      // The delivery stays pending, so the dispatcher gives it out again.
      ctx.log.warn({ deliveryId, err: cause }, "A failed delivery could not be settled");
    });
  });
  return worker;
}

/**
 * Applies deliveries that share a job. Each that fails gets a job of its own, which tries it again or settles it as
 * failed.
 */
export function openBurstsWorker(ctx: WorkerContext, batches: DeliveryBatches): Worker<BurstJob> {
  const concurrency = DELIVERIES_AT_ONCE / BURST_SIZE;
  return openWorker<BurstJob>(ctx, QUEUE_NAMES.bursts, { concurrency }, async (job) => {
    // New jobs are queued before this job ends. If the worker dies in between, another worker repeats the whole job.
    await enqueueDeliveries(ctx, await batches.applyBurst(job.data));
  });
}
