import type { Worker } from "bullmq";
import { pruneWrites } from "../src/api/record/writes.ts";
import { pruneCursors } from "../src/events/cursors.ts";
import { wakeDue } from "../src/events/log.ts";
import { pruneSent } from "../src/events/sent.ts";
import { dispatchPending } from "../src/inbox/dispatch.ts";
import { pruneDeliveries } from "../src/inbox/prune.ts";
import { pruneActivity } from "../src/operations/activity-table.ts";
import { forgetFailedRuns } from "../src/queues/failed.ts";
import { MAINTENANCE_TASKS, type MaintenanceTask } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { scheduleAudits } from "../src/sync/audit/schedule.ts";
import { scheduleCatchUps } from "../src/sync/catch-up/catch-up.ts";
import { sweep } from "../src/sync/catch-up/sweep.ts";
import { moveSubscriptions } from "../src/sync/following/hook-subscriptions.ts";
import { resolveSelections } from "../src/sync/following/selection.ts";
import { putTimesRight } from "../src/sync/following/times.ts";
import { makeEvents, pruneFound } from "../src/sync/found/make.ts";
import { checkDeliveries } from "../src/sync/hook-deliveries/missed.ts";
import { dispatchMarks } from "../src/sync/marks/marks.ts";
import { fetchAndStoreNames } from "../src/sync/people/names.ts";
import { settleFailedJobs } from "../src/sync/problems/failed-jobs.ts";
import { wakeRested } from "../src/sync/problems/wake.ts";
import { WHOLES } from "../src/sync/refresh/wholes.ts";
import { inShards } from "../src/sync/turns/shards.ts";
import { markDue } from "../src/sync/wholes/whole.ts";
import { pruneBodies, pruneValidators } from "../src/upstream/conditional/validators.ts";
import { noteQuota } from "../src/upstream/quota/history.ts";
import { pruneAuditLog } from "../src/work/audit-log.ts";
import { allOf } from "./duties.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/**
 * Runs the tasks that the scheduler queues at intervals. A task may run twice at once, so each is written to allow
 * that.
 */
export function openMaintenanceWorker(ctx: WorkerContext): Worker<Record<string, never>, void, MaintenanceTask> {
  // As many jobs at once as there are tasks, so that a slow task does not hold up the dispatcher.
  return openWorker<Record<string, never>, MaintenanceTask>(
    ctx,
    QUEUE_NAMES.maintenance,
    { concurrency: MAINTENANCE_TASKS.length },
    async (job, signal) => {
      await maintain(ctx, job.name, signal);
      await forgetFailedRuns(ctx, "maintenance", job);
    },
  );
}

/** Does one task, once. */
export async function maintain(ctx: WorkerContext, task: MaintenanceTask, signal: AbortSignal): Promise<void> {
  switch (task) {
    case "dispatch":
      return await allOf(ctx.log, task, [
        dispatchPending(ctx),
        dispatchMarks(ctx),
        wakeRested(ctx, signal),
        wakeDue(ctx, signal),
        makeEvents(ctx, signal),
      ]);
    case "prune":
      return await allOf(ctx.log, task, [
        pruneDeliveries(ctx, signal),
        pruneValidators(ctx, signal),
        pruneBodies(ctx),
        pruneWrites(ctx, signal),
        pruneAuditLog(ctx, signal),
        pruneActivity(ctx),
        pruneSent(ctx, signal),
        pruneCursors(ctx, signal),
        pruneFound(ctx, signal),
        putTimesRight(ctx),
        settleFailedJobs(ctx, signal),
      ]);
    case "select":
      return await allOf(ctx.log, task, [
        resolveSelections(ctx, signal),
        ...WHOLES.map((whole) => markDue(ctx, whole)),
      ]);
    case "subscribe":
      return void (await moveSubscriptions(ctx, signal));
    case "schedule-catch-up":
      return void (await scheduleCatchUps(ctx));
    case "sweep":
      return await inShards(ctx, task, (shard) => sweep(ctx, { signal, shard }));
    case "check-deliveries":
      return await inShards(ctx, task, (shard) => checkDeliveries(ctx, { signal, shard }));
    case "schedule-audits":
      return await scheduleAudits(ctx);
    case "read-names":
      return await fetchAndStoreNames(ctx, signal);
    case "note-quota":
      return await noteQuota(ctx);
    default:
      throw new Error(`There is no maintenance task named ${task satisfies never}`);
  }
}
