import type { Worker } from "bullmq";
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
  return openWorker<Shard, ShardedTask>(ctx, QUEUE_NAMES.shards, options, ({ name, data: shard }, signal) => {
    switch (name) {
      case "sweep":
        return sweep(ctx, { signal, shard });
      case "check-deliveries":
        return checkDeliveries(ctx, { signal, shard });
      default:
        throw new Error(`No task named ${name satisfies never} is divided`);
    }
  });
}
