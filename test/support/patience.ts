import { setTimeout as delay } from "node:timers/promises";
import { PATIENCE_MS } from "./bounds.ts";

/** Asks again and again: the awaited change happens in other processes, and sends no event here. */
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

/** As `until`, for a check that throws while it does not hold. Answers what the check answers in the end, or throws its last error. */
export async function eventually<T>(holds: () => T | Promise<T>): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; ; await delay(20)) {
    try {
      return await holds();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}
