import { setTimeout as delay } from "node:timers/promises";
import { PATIENCE_MS } from "./bounds.ts";

/** Asks again and again, because the awaited change happens in other processes, which send no event here. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const began = Date.now();
  while (!(await holds())) {
    if (Date.now() - began > withinMs) throw new Error(`Waited ${withinMs / 1_000} s in vain until ${what}`);
    await delay(pauseAfter(Date.now() - began));
  }
}

/**
 * A twentieth of the time that was waited so far. Each question takes processor time from the processes that it waits
 * for.
 */
function pauseAfter(waitedMs: number): number {
  return Math.min(100, Math.max(10, waitedMs / 20));
}

/**
 * Like `until`, for a check that throws while it does not hold. Answers the check's value, or throws its last error.
 */
export async function eventually<T>(holds: () => T | Promise<T>): Promise<T> {
  for (const began = Date.now(); ; await delay(pauseAfter(Date.now() - began))) {
    try {
      return await holds();
    } catch (error) {
      if (Date.now() - began > PATIENCE_MS) throw error;
    }
  }
}
