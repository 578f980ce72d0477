import { fold, type Observation, type Stored } from "../../src/mirror/store/merge-rule.ts";

export const START = Date.parse("2026-01-01T00:00:00Z");

/** The stored row after these observations. */
export const run = (observations: Observation[]) =>
  observations.reduce<Stored | undefined>((stored, seen) => next(stored, seen), undefined);

/** The stored row after one more observation. */
export function next(stored: Stored | undefined, seen: Observation): Stored | undefined {
  const folded = fold(stored, seen);
  return folded.outcome === "known" ? stored : (folded.next ?? stored);
}
