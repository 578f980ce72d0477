import { setTimeout as delay } from "node:timers/promises";
import { vi } from "vitest";

/**
 * How long a test waits for what must happen: many times longer than it takes on a busy machine, since nothing but what
 * hangs should fail by it.
 */
export const PATIENCE_MS = 300_000;

/** Asks again and again, since what is waited for happens in other processes and tells nobody here. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const end = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`Waited ${withinMs / 1_000} s in vain until ${what}`);
    await delay(20);
  }
}

/** As `until`, for what throws as long as it does not hold; answers what it answers then, throws what it threw last. */
export async function eventually<T>(holds: () => T | Promise<T>): Promise<T> {
  return await vi.waitFor(holds, { timeout: PATIENCE_MS, interval: 20 });
}
