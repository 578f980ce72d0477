import { fold, type Observation, type Stored } from "../../src/mirror/store/merge-rule.ts";

export const START = Date.parse("2026-01-01T00:00:00Z");

/** What is stored once these were seen. */
export const run = (observations: Observation[]) =>
  observations.reduce<Stored | undefined>((stored, seen) => next(stored, seen), undefined);

/** What is stored once this was seen, too. */
export function next(stored: Stored | undefined, seen: Observation): Stored | undefined {
  const folded = fold(stored, seen);
  return folded.outcome === "known" ? stored : (folded.next ?? stored);
}
