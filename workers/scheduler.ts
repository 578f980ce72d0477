import { setTimeout as delay } from "node:timers/promises";
import { parseConfig } from "../src/config.ts";
import { type Local, openLocal } from "../src/context.ts";
import { runProcess } from "../src/operations/entry.ts";
import { shutdownSignal } from "../src/operations/shutdown.ts";
import type { MaintenanceTask } from "../src/queues/jobs.ts";
import { AUDIT_TICK_MS } from "../src/sync/audit/schedule.ts";

/** How often each task is asked for, in ms. */
function intervals({
  catchUpIntervalMs,
  sweepIntervalMs,
  deliveryCheckIntervalMs,
}: Local["config"]): Record<MaintenanceTask, number> {
  return {
    dispatch: 2_000,
    // Asks upstream about every `owner/*`, so it is not free.
    select: 60_000,
    "schedule-catch-up": catchUpIntervalMs,
    // As often as the repositories whose webhooks were lost lately are to be asked.
    sweep: Math.ceil(sweepIntervalMs / 4),
    "check-deliveries": deliveryCheckIntervalMs,
    "schedule-audits": AUDIT_TICK_MS,
    prune: 60_000,
  };
}

/** How often the schedules are looked after: a Redis that lost its memory has them back within this time. */
const UPKEEP_MS = 2_000;
/** A schedule whose next run lies this far in the past has lost the job that would have planned the one after. */
const OVERDUE_MS = 30_000;

/**
 * Brings every schedule that is missing, changed or stuck to its interval. Leaves the others alone, since writing a schedule
 * moves its next run. Any number of schedulers may do this at once: BullMQ keeps one schedule for each name.
 */
export async function upsertSchedules({
  config,
  queues,
  redis,
}: Pick<Local, "config" | "queues" | "redis">): Promise<MaintenanceTask[]> {
  if (redis.status !== "ready") return [];
  const mended: MaintenanceTask[] = [];
  for (const [task, every] of Object.entries(intervals(config)) as [MaintenanceTask, number][]) {
    const known = await queues.maintenance.getJobScheduler(task);
    if (known?.every === every && known.next !== undefined && known.next > Date.now() - every - OVERDUE_MS) continue;
    await queues.maintenance.upsertJobScheduler(task, { every }, { name: task, data: {} });
    mended.push(task);
  }
  return mended;
}

if (import.meta.main) await runProcess(run);

async function run(): Promise<void> {
  const config = parseConfig(process.env);
  await using resources = new AsyncDisposableStack();
  const ctx = await openLocal(config, resources, { name: "scheduler" });
  const stopping = shutdownSignal({ log: ctx.log, timeoutMs: config.shutdownMs });
  ctx.log.info("Scheduling");
  while (!stopping.aborted) {
    try {
      const mended = await upsertSchedules(ctx);
      if (mended.length > 0) ctx.log.info({ tasks: mended }, "Schedules set");
    } catch (error) {
      // Redis is away or slow; the next round tries again, and the connection reports its own outages.
      ctx.log.debug({ err: error }, "The schedules could not be looked after");
    }
    await delay(UPKEEP_MS, undefined, { signal: stopping }).catch(() => {});
  }
}
