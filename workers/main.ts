import { parseConfig } from "../src/config.ts";
import { type Context, openContext } from "../src/context.ts";
import { serveMetrics } from "../src/health/metrics.ts";
import { ActivityWriter } from "../src/operations/activity-table.ts";
import { runProcess } from "../src/operations/entry.ts";
import { openHeartbeat } from "../src/operations/heartbeat.ts";
import { openWorkerRedis } from "../src/operations/redis.ts";
import { guardSchema } from "../src/operations/schema-guard.ts";
import { aborted, openShutdown } from "../src/operations/shutdown.ts";
import { enqueueTask, orLater } from "../src/queues/queues.ts";
import { openCommandsWorker } from "./commands.ts";
import { DeliveryBatches, openBurstsWorker, openDeliveriesWorker } from "./deliveries.ts";
import { openInboxWorker } from "./inbox.ts";
import { openMaintenanceWorker } from "./maintenance.ts";
import { openRefreshWorker } from "./refresh.ts";
import { openRepositoryWorkers } from "./repositories.ts";
import { openShardsWorker } from "./shards.ts";
import { openTargetsWorker } from "./targets.ts";
import type { WorkerContext } from "./worker.ts";

/**
 * Opens the worker of every queue. When `resources` closes them, running jobs finish, or stop at a point where they can
 * resume. Waiting jobs stay queued.
 */
export function openWorkers(ctx: WorkerContext, resources: AsyncDisposableStack): void {
  // It ends after the running jobs.
  resources.use(openHeartbeat(ctx, "worker"));
  const batches = new DeliveryBatches(ctx);
  const workers: { close(): Promise<void> }[] = [
    openInboxWorker(ctx),
    openDeliveriesWorker(ctx, batches),
    openBurstsWorker(ctx, batches),
    openRefreshWorker(ctx),
    ...openRepositoryWorkers(ctx),
    openTargetsWorker(ctx),
    openCommandsWorker(ctx),
    openMaintenanceWorker(ctx),
    openShardsWorker(ctx),
  ];
  resources.defer(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
  });
}

/** Works until `stopping` aborts; `resources` wait for the jobs that run then. */
export async function startWorkers(
  ctx: Context,
  stopping: AbortSignal,
  resources: AsyncDisposableStack,
): Promise<void> {
  const jobs = openWorkerRedis(ctx, "worker");
  resources.defer(() => jobs.disconnect());
  openWorkers({ ...ctx, jobs, stopping }, resources);
  ctx.log.info("Working");
  // These two tasks run at the start, because REPOSITORIES or the inbox may have changed while no worker ran.
  for (const task of ["dispatch", "select"] as const) await orLater(ctx, { task }, () => enqueueTask(ctx, task));
}

if (import.meta.main) await runProcess(runWorkers);

async function runWorkers(): Promise<void> {
  const config = parseConfig(process.env);
  await using resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "worker", isTraced: true, isCentral: true });
  const shutdown = openShutdown({ log: ctx.log, timeoutMs: config.shutdownMs });
  await guardSchema(ctx, shutdown, resources);
  ctx.metrics.observeProcess();
  await serveMetrics(ctx, resources);
  resources.use(new ActivityWriter(ctx)).begin();
  await startWorkers(ctx, shutdown.signal, resources);
  await aborted(shutdown.signal);
}
