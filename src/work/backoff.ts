/** How the waits between attempts grow. */
export interface Backoff {
  /** The average wait after the first attempt. */
  firstMs: number;
  /** The average of the longest waits. */
  longestMs: number;
}

/** How long to wait after the nth failed attempt: each wait is twice as long as the one before, up to a bound. Pure. */
export function waitAfterMs(attempt: number, { firstMs, longestMs }: Backoff, random: () => number): number {
  return jittered(Math.min(longestMs, firstMs * 2 ** (attempt - 1)), random);
}

/** Half of a wait is left to chance, so that what failed together does not come back together. Pure. */
export function jittered(ms: number, random: () => number): number {
  return Math.round(ms * (0.75 + random() * 0.5));
}
