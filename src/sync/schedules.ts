import type { Local } from "../context.ts";
import { MAINTENANCE_TASKS, type MaintenanceTask } from "../queues/jobs.ts";
import { askQueues } from "../queues/queues.ts";
import { SAMPLE_MS } from "../upstream/quota/history.ts";
import { AUDIT_TICK_MS } from "./audit/schedule.ts";

/** How often each task is asked for, in ms. */
export function intervals(config: Local["config"]): Record<MaintenanceTask, number> {
  return {
    dispatch: 2_000,
    // This asks upstream about every `owner/*`, so it is not free.
    select: 60_000,
    // Asked for at once when a target changes. Costs nothing at upstream while nothing has.
    subscribe: 60_000,
    "schedule-catch-up": config.catchUpIntervalMs,
    // Often enough for repositories that lately lost webhooks.
    sweep: Math.ceil(config.sweepIntervalMs / 4),
    "check-deliveries": config.deliveryCheckIntervalMs,
    "schedule-audits": AUDIT_TICK_MS,
    // New accounts wait this long for their names.
    "read-names": 60_000,
    "note-quota": SAMPLE_MS,
    prune: 60_000,
  };
}

/** If the next run of a schedule is this long overdue, the job that plans the later runs is lost. */
const RUN_OVERDUE_MS = 30_000;

/**
 * Brings every schedule that is missing, changed or stuck to its interval. Leaves the others alone, since writing a
 * schedule moves its next run. Any number of schedulers may do this at once: BullMQ keeps one schedule for each name.
 * @throws QueueUnavailableError
 */
export async function upsertSchedules(ctx: Pick<Local, "config" | "queues" | "redis">): Promise<MaintenanceTask[]> {
  const { maintenance } = ctx.queues;
  const mended: MaintenanceTask[] = [];
  const everyMs = intervals(ctx.config);
  for (const task of MAINTENANCE_TASKS) {
    const every = everyMs[task];
    const known = await askQueues(ctx, () => maintenance.getJobScheduler(task));
    // BullMQ plans by real time.
    if (known?.every === every && known.next !== undefined && known.next > Date.now() - every - RUN_OVERDUE_MS)
      continue;
    await askQueues(ctx, () => maintenance.upsertJobScheduler(task, { every }, { name: task, data: {} }));
    mended.push(task);
  }
  return mended;
}
