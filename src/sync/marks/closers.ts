import { type Mark, nextRound } from "../../mirror/store/marks.ts";
import type { Merged } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";

/**
 * Marks for issues that are now held without who closed them, so that the next common question asks. Neither a search
 * nor a webhook says it. Only the webhook of the opening says that nobody did, and it may be lost.
 */
export function marksForClosers(merged: readonly Merged[], askedAt: Date): Mark[] {
  const notBefore = nextRound(askedAt, REPLICA_LAG_MS);
  return merged
    .filter(({ kind, outcome, stored }) => kind === "issue" && outcome === "merged" && lacksCloser(stored))
    .map(({ kind, repositoryId, key }) => ({ kind, repositoryId, key, keys: ["closed_by"], askedAt, notBefore }));
}

/** A pull request whose issue side is still lacking has no id among the issues. */
function lacksCloser(stored: Merged["stored"]): boolean {
  if (!stored || stored.deletedAt !== null) return false;
  return Object.hasOwn(stored.fields, "id") && !Object.hasOwn(stored.fields, "closed_by");
}
