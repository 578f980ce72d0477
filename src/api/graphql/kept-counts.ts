import { Kept } from "../../mirror/unchanged/unchanged.ts";

/** How many rows a list has, and the sum of what was measured of them. */
export interface Count {
  count: number;
  sum: number;
}

/** Enough for 10,000 counts, roughly. */
const MAX_COUNT_BYTES = 8 * 1024 * 1024;
const BYTES_PER_COUNT = 50;

/** Sizes of connections that were counted before. */
export function openCounts(): Kept<Count> {
  return new Kept({ maxBytes: MAX_COUNT_BYTES, bytesOf: () => BYTES_PER_COUNT });
}
