import { parseConfig } from "../src/config.ts";
import { openContext } from "../src/context.ts";
import { runProcess } from "../src/operations/entry.ts";
import { openWorkerRedis } from "../src/operations/redis.ts";
import { DeliveryBatches, openBurstsWorker, openDeliveriesWorker } from "../workers/deliveries.ts";
import { announce } from "./processes.ts";

/** A worker process that only applies deliveries, as `workers/main.ts` does beside everything else. */
await runProcess(async () => {
  const config = parseConfig(process.env);
  const resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "bench-apply" });
  const jobs = openWorkerRedis(ctx, "bench-apply");
  resources.defer(() => jobs.disconnect());
  const stopping = new AbortController();
  const working = { ...ctx, jobs, stopping: stopping.signal };
  const batches = new DeliveryBatches(working);
  const workers = [openDeliveriesWorker(working, batches), openBurstsWorker(working, batches)];
  resources.defer(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
  });
  const over = Promise.withResolvers<void>();
  announce("the queue", async () => {
    stopping.abort();
    await resources.disposeAsync();
    over.resolve();
  });
  await over.promise;
});
