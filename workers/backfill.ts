import type { Worker } from "bullmq";
import type { RepositoryJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { backfill } from "../src/sync/backfill/backfill.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Copies repositories for the first time. Few at once: each is long, and quota is what bounds them together. */
export function openBackfillWorker(ctx: WorkerContext): Worker<RepositoryJob> {
  return openWorker<RepositoryJob>(ctx, QUEUE_NAMES.backfill, { concurrency: 2 }, (job, signal) =>
    backfill(ctx, job.data, signal),
  );
}
