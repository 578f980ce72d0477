import type { Worker } from "bullmq";
import { queueNames, type RepositoryJob } from "../src/queues/queues.ts";
import { backfill } from "../src/sync/backfill/backfill.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Copies repositories for the first time. Few at once: each is long, and quota is what bounds them together. */
export function openBackfillWorker(ctx: WorkerContext): Worker<RepositoryJob> {
  return openWorker<RepositoryJob>(ctx, queueNames.backfill, { concurrency: 2 }, (job, signal) =>
    backfill(ctx, job.data, signal),
  );
}
