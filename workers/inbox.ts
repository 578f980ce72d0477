import { DelayedError, UnrecoverableError, type Worker } from "bullmq";
import { storeWaitingDelivery } from "../src/inbox/accept.ts";
import { Outage } from "../src/operations/outage.ts";
import type { InboxJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { backoffMs } from "./retry-policy.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/**
 * Moves the deliveries that waited in Redis to Postgres. They were acknowledged, so no number of attempts ends this: only what
 * Postgres says it can never store fails, and is kept for a person to see.
 */
export function openInboxWorker(ctx: WorkerContext): Worker<InboxJob> {
  // Each delivery that waits tries again by itself; the outage is one event.
  const postgres = new Outage(ctx.log, "warn", {
    begins: "Deliveries in Redis wait for Postgres",
    ends: "Deliveries move from Redis to Postgres again",
  });
  return openWorker<InboxJob>(ctx, QUEUE_NAMES.inbox, { concurrency: 4 }, async (job, _signal, token) => {
    try {
      await storeWaitingDelivery(ctx, job.data);
      postgres.met();
    } catch (error) {
      if (isRefusal(error)) throw new UnrecoverableError((error as Error).message);
      const delayMs = backoffMs(Math.min(job.attemptsStarted, 5), ctx.random);
      postgres.missed(error);
      ctx.log.debug({ guid: job.data.guid, delayMs }, "A delivery still waits in Redis");
      await job.moveToDelayed(Date.now() + delayMs, token);
      throw new DelayedError();
    }
  });
}

/** Class 22 is a value that the column cannot hold, class 23 a broken constraint. */
function isRefusal(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown }).code)) || error instanceof SyntaxError;
}
