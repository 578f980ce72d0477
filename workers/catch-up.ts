import type { Worker } from "bullmq";
import type { RepositoryJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { catchUp } from "../src/sync/catch-up/catch-up.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Reads what changed in a repository since its watermarks. */
export function openCatchUpWorker(ctx: WorkerContext): Worker<RepositoryJob> {
  return openWorker<RepositoryJob>(ctx, QUEUE_NAMES.catchUp, { concurrency: 4 }, (job, signal) =>
    catchUp(ctx, job.data, signal),
  );
}
