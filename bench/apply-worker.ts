import { parseConfig } from "../src/config.ts";
import { openContext } from "../src/context.ts";
import { runProcess } from "../src/operations/entry.ts";
import { openWorkerRedis } from "../src/operations/redis.ts";
import { openDeliveriesWorker } from "../workers/deliveries.ts";
import { announce } from "./processes.ts";

/** A worker process that only applies deliveries, as `workers/main.ts` does beside everything else. */
await runProcess(async () => {
  const config = parseConfig(process.env);
  const resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "bench-apply" });
  const jobs = openWorkerRedis(ctx, "bench-apply");
  resources.defer(() => jobs.disconnect());
  const stopping = new AbortController();
  const worker = openDeliveriesWorker({ ...ctx, jobs, stopping: stopping.signal });
  resources.defer(() => worker.close());
  const over = Promise.withResolvers<void>();
  announce("the queue", async () => {
    stopping.abort();
    await resources.disposeAsync();
    over.resolve();
  });
  await over.promise;
});
