import type { Worker } from "bullmq";
import { enqueueDeliveries } from "../src/queues/enqueue.ts";
import { BURST_SIZE, type BurstJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { DELIVERIES_AT_ONCE, type DeliveryBatches } from "../src/sync/deliveries/delivery-batches.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Applies deliveries that share a job. Each that fails gets a job of its own, which tries it again or settles it as failed. */
export function openBurstsWorker(ctx: WorkerContext, batches: DeliveryBatches): Worker<BurstJob> {
  const concurrency = DELIVERIES_AT_ONCE / BURST_SIZE;
  return openWorker<BurstJob>(ctx, QUEUE_NAMES.bursts, { concurrency }, async (job) => {
    // Before this job ends, so that a worker that dies in between leaves the whole of it to another.
    await enqueueDeliveries(ctx, await batches.applyBurst(job.data));
  });
}
