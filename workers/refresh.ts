import { DelayedError, type Worker } from "bullmq";
import { queueNames, type RefreshJob, refreshNotBefore } from "../src/operations/queues.ts";
import { refresh } from "../src/sync/refresh.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Reads single resources again, not before the last one who asked wanted it. */
export function openRefreshWorker(ctx: WorkerContext): Worker<RefreshJob> {
  return openWorker<RefreshJob>(ctx, queueNames.refresh, { concurrency: 8 }, async (job, _signal, token) => {
    const notBefore = await refreshNotBefore(ctx, job.data);
    if (notBefore && notBefore.getTime() > Date.now()) {
      await job.moveToDelayed(notBefore.getTime(), token);
      throw new DelayedError();
    }
    await refresh(ctx, job.data);
  });
}
