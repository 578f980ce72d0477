import type { Worker } from "bullmq";
import { queueNames, type RefreshJob } from "../src/operations/queues.ts";
import { refresh } from "../src/sync/refresh.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Reads single resources again. */
export function openRefreshWorker(ctx: WorkerContext): Worker<RefreshJob> {
  return openWorker<RefreshJob>(ctx, queueNames.refresh, { concurrency: 8 }, (job) => refresh(ctx, job.data));
}
