import type { Context } from "../context.ts";
import { reasonOf } from "../failure.ts";
import { enqueueTargets, enqueueTask } from "../queues/enqueue.ts";
import { QueueUnavailableError } from "../queues/queues.ts";
import { dueTargets } from "./cursors.ts";
import { placeHeld } from "./log.ts";

/** Wakes targets. Without Redis nothing is lost: waiting events are in Postgres, and `wakeDue` finds them. */
export async function wake(
  ctx: Pick<Context, "queues" | "redis" | "log">,
  targetIds: readonly number[],
): Promise<void> {
  if (targetIds.length === 0) return;
  try {
    await enqueueTargets(ctx, targetIds);
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
    ctx.log.debug({ targetIds, reason: reasonOf(error) }, "Targets could not be woken; they will be found");
  }
}

/** Wakes every target that has something to send now, unless `signal` is aborted. Answers how many. */
export async function wakeDue(
  ctx: Pick<Context, "db" | "clock" | "queues" | "redis">,
  signal?: AbortSignal,
): Promise<number> {
  await placeHeld(ctx, signal);
  if (signal?.aborted) return 0;
  const due = await dueTargets(ctx);
  await enqueueTargets(ctx, due);
  return due.length;
}

/**
 * Targets want other events now, so our hooks at upstream may have to send others. The scheduler asks within a minute
 * anyway.
 */
export async function wantsChanged(ctx: Pick<Context, "queues" | "redis">): Promise<void> {
  try {
    await enqueueTask(ctx, "subscribe");
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
  }
}
