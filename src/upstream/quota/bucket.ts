import type { BucketState } from "../protocol/headers.ts";
import type { Priority } from "../protocol/upstream.ts";

/** A bucket with our own spending in its window, as far as known; unknown spending counts as ours. */
export interface SharedBucketState extends BucketState {
  spent: number;
}

/**
 * The points of a known window that a class may still take: those above its floor, and within our share. Pure.
 * @param floor the share of the limit that stays untouched, for classes above
 * @param share the share of the limit that we may use at all: `QUOTA_SHARE`
 */
export function leftOf({ limit, remaining, spent }: SharedBucketState, floor: number, share: number): number {
  const budget = Math.floor(limit * share);
  return Math.min(remaining - Math.ceil(limit * floor), budget - spent - Math.ceil(budget * floor));
}

/** The share of every limit that a class leaves untouched, for the classes above it. */
export const FLOORS: Readonly<Record<Priority, number>> = {
  caller: 0,
  refresh: 0.02,
  "catch-up": 0.05,
  audit: 0.1,
  backfill: 0.1,
};
