import type { Worker } from "bullmq";
import type { RefreshJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { REFRESHES_AT_ONCE, Refreshes } from "../src/sync/refresh/refresh.ts";
import { DeliveriesFirst } from "../src/sync/turns/give-way.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Reads single resources again. It waits while many deliveries are pending. */
export function openRefreshWorker(ctx: WorkerContext): Worker<RefreshJob> {
  const refreshes = new Refreshes(ctx);
  const first = new DeliveriesFirst(ctx);
  return openWorker<RefreshJob>(ctx, QUEUE_NAMES.refresh, { concurrency: REFRESHES_AT_ONCE }, async (job, signal) => {
    await first.giveWay(signal);
    await refreshes.refresh(job.data);
  });
}
