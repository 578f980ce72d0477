import type { Worker } from "bullmq";
import { InboxUnavailableError, openDispatch, storeWaitingDelivery } from "../src/inbox/inbox.ts";
import { Outage } from "../src/operations/outage.ts";
import type { InboxJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { ANY_NUMBER, openWorker, type WorkerContext } from "./worker.ts";

/**
 * Moves the deliveries that waited in Redis to Postgres. The job of a delivery that Postgres can never store is kept,
 * so that a person can look at it.
 */
export function openInboxWorker(ctx: WorkerContext): Worker<InboxJob> {
  // Each waiting delivery has its own job and retries. The outage is logged only once.
  const postgres = new Outage(ctx.log, "warn", {
    begins: "Deliveries in Redis wait for Postgres",
    ends: "Deliveries move from Redis to Postgres again",
  });
  const dispatch = openDispatch(ctx);
  return openWorker<InboxJob>(ctx, QUEUE_NAMES.inbox, { concurrency: 4, mostTakeovers: ANY_NUMBER }, async (job) => {
    try {
      await storeWaitingDelivery(ctx, dispatch, job.data);
      postgres.met();
    } catch (error) {
      if (error instanceof InboxUnavailableError) postgres.missed(error);
      throw error;
    }
  });
}
