import type { Worker } from "bullmq";
import { queueNames, type RefreshJob } from "../src/operations/queues.ts";
import { REFRESHES_AT_ONCE, Refreshes } from "../src/sync/refresh.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Reads single resources again. */
export function openRefreshWorker(ctx: WorkerContext): Worker<RefreshJob> {
  const refreshes = new Refreshes(ctx);
  return openWorker<RefreshJob>(ctx, queueNames.refresh, { concurrency: REFRESHES_AT_ONCE }, (job) =>
    refreshes.refresh(job.data),
  );
}
