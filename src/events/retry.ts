import { type Backoff, waitAfterMs } from "../work/backoff.ts";
import type { HeldCursor, Step } from "./cursors.ts";
import type { SendOutcome } from "./post.ts";

/** After some eleven failures an event is tried once an hour. */
const BACKOFF: Backoff = { firstMs: 2_000, longestMs: 3_600_000 };

/**
 * The step after a target has not accepted an event. The event is tried again for `retryForMs`. Then it is given up if
 * the target has accepted others meanwhile. If the target has accepted nothing, it is at fault and rests. Pure.
 */
export function afterFailure(
  { attempts, firstTriedAt }: Pick<HeldCursor, "attempts" | "firstTriedAt">,
  { retryAfterMs }: Pick<SendOutcome, "retryAfterMs">,
  at: { eventId: number; now: Date; acceptedAt: Date | null; retryForMs: number; random: () => number },
): Step {
  const { now, acceptedAt, retryForMs } = at;
  if (firstTriedAt !== null && now.getTime() - firstTriedAt.getTime() >= retryForMs)
    return acceptedAt !== null && acceptedAt > firstTriedAt ? { to: "next", doneId: at.eventId } : { to: "rest" };
  const askedMs = Math.min(retryAfterMs ?? 0, retryForMs);
  const waitMs = Math.max(waitAfterMs(attempts + 1, BACKOFF, at.random), askedMs);
  return { to: "again", retryAt: new Date(now.getTime() + waitMs) };
}
