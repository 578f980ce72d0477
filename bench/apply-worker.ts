import { parseConfig } from "../src/config.ts";
import { openContext } from "../src/context.ts";
import { runProcess } from "../src/operations/entry.ts";
import { openWorkerRedis } from "../src/operations/redis.ts";
import { aborted, shutdownSignal } from "../src/operations/shutdown.ts";
import { openDeliveriesWorker } from "../workers/deliveries.ts";

/** A worker process that only applies deliveries, as `workers/main.ts` does beside everything else. */
await runProcess(async () => {
  const config = parseConfig(process.env);
  await using resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "bench-apply" });
  const stopping = shutdownSignal({ log: ctx.log, timeoutMs: config.shutdownMs });
  const jobs = openWorkerRedis(ctx, "bench-apply");
  resources.defer(() => jobs.disconnect());
  const worker = openDeliveriesWorker({ ...ctx, jobs, stopping });
  resources.defer(() => worker.close());
  await aborted(stopping);
});
