import { setTimeout as delay } from "node:timers/promises";
import { type Backoff, waitAfterMs } from "./backoff.ts";

/** Time, a signal, or both: no work is repeated for ever. */
type RepeatedUntil = { patienceMs: number; signal?: AbortSignal } | { patienceMs?: number; signal: AbortSignal };

type Repeating = RepeatedUntil & {
  backoff: Backoff;
  random: () => number;
  /** Whether the same work may soon succeed. */
  isPassing: (error: unknown) => boolean;
  /** Told of each failure that is waited for. */
  onWait: (error: unknown, waitMs: number) => void;
};

/**
 * The outcome of `work`, which is run again after each passing failure. A failure is thrown if the wait after it would
 * outlast `patienceMs`, which counts from the start.
 * @throws AbortError when `signal` aborts during a wait
 */
export async function repeated<Value>(
  work: () => Promise<Value>,
  { patienceMs = Number.POSITIVE_INFINITY, signal, backoff, random, isPassing, onWait }: Repeating,
): Promise<Value> {
  // The monotonic clock tells how long the caller really waits.
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error)) throw error;
      const waitMs = waitAfterMs(attempt, backoff, random);
      if (performance.now() - startedAt + waitMs > patienceMs) throw error;
      onWait(error, waitMs);
      await delay(waitMs, undefined, signal ? { signal } : {});
    }
  }
}
