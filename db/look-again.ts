import { setTimeout as delay } from "node:timers/promises";

/** When to look again. */
export interface Looks {
  firstWaitMs: number;
  /** Each wait is twice as long as the one before, up to this. */
  longestWaitMs: number;
  /** The look that ends after this time is the last. */
  withinMs: number;
}

/**
 * Looks at Postgres until it holds what is waited for: no statement tells of a change in the log, or of locks that are
 * given back. False: it did not in time. @throws what a look throws
 */
export async function lookUntil(
  look: () => Promise<boolean>,
  { firstWaitMs, longestWaitMs, withinMs }: Looks,
): Promise<boolean> {
  const end = performance.now() + withinMs;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    if (await look()) return true;
    const leftMs = end - performance.now();
    if (leftMs <= 0) return false;
    await delay(Math.min(waitMs, leftMs));
  }
}
