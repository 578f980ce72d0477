import type { Worker } from "bullmq";
import type { RepositoryJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { auditPart } from "../src/sync/audit/schedule.ts";
import { backfill } from "../src/sync/backfill/backfill.ts";
import { catchUp } from "../src/sync/catch-up/catch-up.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** The work on whole repositories, of each kind a few at once. */
export function openRepositoryWorkers(ctx: WorkerContext): Worker<RepositoryJob>[] {
  const open = (queue: "catchUp" | "audit" | "backfill", concurrency: number, run: typeof catchUp) =>
    openWorker<RepositoryJob>(ctx, QUEUE_NAMES[queue], { concurrency }, (job, signal) => run(ctx, job.data, signal));
  // The schedule says how fast audits go. A backfill is long, and quota is what bounds all of them together.
  return [open("catchUp", 4, catchUp), open("audit", 2, auditPart), open("backfill", 2, backfill)];
}
