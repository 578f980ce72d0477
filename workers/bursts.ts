import type { Worker } from "bullmq";
import { BURST, type BurstJob, enqueueDeliveries, queueNames } from "../src/queues/queues.ts";
import { DELIVERIES_AT_ONCE, type DeliveryBatches } from "../src/sync/deliveries/delivery-batches.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Applies deliveries that share a job. Each that fails gets a job of its own, which tries it again or settles it as failed. */
export function openBurstsWorker(ctx: WorkerContext, batches: DeliveryBatches): Worker<BurstJob> {
  const concurrency = DELIVERIES_AT_ONCE / BURST;
  return openWorker<BurstJob>(ctx, queueNames.bursts, { concurrency }, async (job) => {
    // Before this job ends, so that a worker that dies in between leaves the whole of it to another.
    await enqueueDeliveries(ctx, await batches.applyBurst(job.data));
  });
}
