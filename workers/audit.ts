import type { Worker } from "bullmq";
import type { RepositoryJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { auditPart } from "../src/sync/audit/schedule.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Compares repositories with upstream, a part at a time: the schedule says how fast. */
export function openAuditWorker(ctx: WorkerContext): Worker<RepositoryJob> {
  return openWorker<RepositoryJob>(ctx, QUEUE_NAMES.audit, { concurrency: 2 }, (job, signal) =>
    auditPart(ctx, job.data, signal),
  );
}
