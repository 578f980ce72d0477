import type { Worker } from "bullmq";
import { wakeTargets } from "../src/events/log.ts";
import { TargetClient } from "../src/events/post.ts";
import { sendTo } from "../src/events/turn.ts";
import type { TargetJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** A slow target holds one place for a few seconds at a time, so there are more places than slow targets. */
const TARGETS_AT_ONCE = 64;

/** Sends events to targets, each target by one job at a time. */
export function openTargetsWorker(ctx: WorkerContext): { close(): Promise<void> } {
  const client = new TargetClient(ctx);
  const worker: Worker<TargetJob> = openWorker<TargetJob>(
    ctx,
    QUEUE_NAMES.targets,
    { concurrency: TARGETS_AT_ONCE },
    async ({ data: { targetId } }, signal) => {
      if (await sendTo(ctx, client, targetId, signal)) await wakeTargets(ctx, [targetId]);
    },
  );
  return {
    async close() {
      await worker.close();
      await client.close();
    },
  };
}
