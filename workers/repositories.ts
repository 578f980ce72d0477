import type { Worker } from "bullmq";
import type { RepositoryJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { auditPart } from "../src/sync/audit/schedule.ts";
import { backfill } from "../src/sync/backfill/backfill.ts";
import { catchUp } from "../src/sync/catch-up/catch-up.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** The workers for jobs on whole repositories. The numbers say how many jobs of a kind run at once. */
export function openRepositoryWorkers(ctx: WorkerContext): Worker<RepositoryJob>[] {
  const open = (queue: "catchUp" | "audit" | "backfill", concurrency: number, run: typeof catchUp) =>
    openWorker<RepositoryJob>(ctx, QUEUE_NAMES[queue], { concurrency }, (job, signal) => run(ctx, job.data, signal));
  // The schedule bounds the pace of audits, and quota bounds all of these jobs together.
  return [open("catchUp", 4, catchUp), open("audit", 2, auditPart), open("backfill", 2, backfill)];
}
