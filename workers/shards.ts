import type { Worker } from "bullmq";
import { forgetFailedRuns } from "../src/queues/failed.ts";
import type { Shard, ShardedTask } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { sweep } from "../src/sync/catch-up/sweep.ts";
import { checkDeliveries } from "../src/sync/hook-deliveries/missed.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** Few, so that all workers have some; each holds a connection. */
const SHARDS_AT_ONCE = 2;

/** Does for a part of a large fleet what the scheduler asks for. */
export function openShardsWorker(ctx: WorkerContext): Worker<Shard, void, ShardedTask> {
  const options = { concurrency: SHARDS_AT_ONCE };
  return openWorker<Shard, ShardedTask>(ctx, QUEUE_NAMES.shards, options, async ({ name, data: shard }, signal) => {
    await doShard(ctx, name, shard, signal);
    await forgetFailedRuns(ctx, "shards", { name, at: shard.at });
  });
}

async function doShard(ctx: WorkerContext, task: ShardedTask, shard: Shard, signal: AbortSignal): Promise<unknown> {
  switch (task) {
    case "sweep":
      return await sweep(ctx, { signal, shard });
    case "check-deliveries":
      return await checkDeliveries(ctx, { signal, shard });
    default:
      throw new Error(`No task named ${task satisfies never} is divided`);
  }
}
