import { parseConfig } from "../src/config.ts";
import { type Local, openLocal } from "../src/context.ts";
import { serveMetrics } from "../src/health/metrics.ts";
import { runProcess } from "../src/operations/entry.ts";
import { openHeartbeat } from "../src/operations/heartbeat.ts";
import { guardSchema } from "../src/operations/schema-guard.ts";
import { openShutdown } from "../src/operations/shutdown.ts";
import { QueueUnavailableError } from "../src/queues/unavailable.ts";
import { upsertSchedules } from "../src/sync/schedules.ts";
import { waitUnlessAborted } from "../src/waits/repeated.ts";

/** How often the schedules are looked after: a Redis that lost its memory has them back within this time. */
const UPKEEP_MS = 2_000;

if (import.meta.main) await runProcess(runScheduler);

async function runScheduler(): Promise<void> {
  const config = parseConfig(process.env);
  await using resources = new AsyncDisposableStack();
  const ctx = await openLocal(config, resources, { name: "scheduler", isCentral: true });
  const shutdown = openShutdown({ log: ctx.log, timeoutMs: config.shutdownMs });
  const stopping = shutdown.signal;
  await guardSchema(ctx, shutdown, resources);
  ctx.metrics.observeProcess();
  await serveMetrics(ctx, resources);
  ctx.log.info("Scheduling");
  await schedule(ctx, stopping);
}

/** Looks after the schedules until it is to stop. */
export async function schedule(ctx: Local, stopping: AbortSignal): Promise<void> {
  await using _life = openHeartbeat(ctx, "scheduler");
  while (!stopping.aborted) {
    try {
      const mended = await upsertSchedules(ctx);
      if (mended.length > 0) ctx.log.info({ tasks: mended }, "Schedules set");
    } catch (error) {
      // The next round tries again, and the connection reports its own outages.
      if (!(error instanceof QueueUnavailableError)) throw error;
      ctx.log.debug({ err: error }, "The schedules could not be looked after");
    }
    await waitUnlessAborted(UPKEEP_MS, stopping);
  }
}
