import type { Worker } from "bullmq";
import { failDelivery } from "../src/inbox/settle.ts";
import { BURST_SIZE, type BurstJob, type DeliveryJob } from "../src/queues/jobs.ts";
import { enqueueDeliveries, QUEUE_NAMES } from "../src/queues/queues.ts";
import { DELIVERIES_AT_ONCE, DeliveryBatches } from "../src/sync/deliveries/delivery-batches.ts";
import { ANY_NUMBER, openWorker, type WorkerContext } from "./worker.ts";

/** Applies deliveries to the mirror. A delivery whose job has failed for good is settled as failed, with the reason. */
export function openDeliveriesWorker(
  ctx: WorkerContext,
  batches: DeliveryBatches = new DeliveryBatches(ctx),
): Worker<DeliveryJob> {
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
