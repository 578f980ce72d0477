/** How the waits between attempts grow. The figures of each policy stand in `retries.ts`. */
export interface Backoff {
  /** The average wait after the first attempt. */
  firstMs: number;
  /** The average of the longest waits. */
  longestMs: number;
}

/** What ends the attempts. */
export interface Limits {
  /** The most attempts, the first included. */
  attempts?: number;
  /** Counts from the start. The attempt at the end of this time is the last. */
  withinMs?: number;
  /** Counts from the start. A wait that would outlast this time is not begun. */
  patienceMs?: number;
}

/** How long to wait after the nth failed attempt: each wait is twice as long as the one before, up to a bound. Pure. */
export function waitAfterMs(attempt: number, { firstMs, longestMs }: Backoff, random: () => number): number {
  return jittered(Math.min(longestMs, firstMs * 2 ** (attempt - 1)), random);
}

/**
 * The same for a thing that counts no attempts: its age stands for them, and the wait is `times` as long. Without
 * chance: such things are due together, so that one question covers many. Pure.
 */
export function waitAtAgeMs(ageMs: number, { firstMs, longestMs }: Backoff, times = 1): number {
  return Math.max(firstMs, Math.min(times * ageMs, longestMs));
}

/** Half of a wait is left to chance, so that what failed together does not come back together. Pure. */
export function jittered(ms: number, random: () => number): number {
  return Math.round(ms * (0.75 + random() * 0.5));
}

/** Never earlier than a server asked, and up to a second later, so that all that it asked do not wake at once. Pure. */
export function afterAskedMs(askedMs: number, random: () => number): number {
  return Math.max(0, askedMs) + Math.round(random() * 1_000);
}
