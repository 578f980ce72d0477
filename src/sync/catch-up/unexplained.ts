import { waitAtAgeMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";

/** What a sweep has found, and no catch-up has explained. */
export interface Unexplained {
  /** Since when, by our clock. Null: a catch-up has still to try, or all is explained. */
  unexplainedSince: string | null;
  /** When an audit was last asked for because of it. */
  auditAskedAt: string | null;
}

export const EXPLAINED: Unexplained = { unexplainedSince: null, auditAskedAt: null };

/**
 * Notes that it is still unexplained, and whether an audit is to be asked for now. One audit may explain nothing: a
 * replica that lags may have answered it, or it was past the place. So it is asked for again, ever more seldom. Pure.
 */
export function stillUnexplained(before: Unexplained | undefined, now: Date): Unexplained & { wantsAudit: boolean } {
  const unexplainedSince = before?.unexplainedSince ?? now.toISOString();
  const askedAt = before?.auditAskedAt ?? null;
  // The age at the last question, so that each wait is about twice as long as the one before.
  const ageMs = Date.parse(askedAt ?? unexplainedSince) - Date.parse(unexplainedSince);
  const wantsAudit = askedAt === null || Date.parse(askedAt) + waitAtAgeMs(ageMs, RETRIES.unexplained) <= now.getTime();
  return { unexplainedSince, auditAskedAt: wantsAudit ? now.toISOString() : askedAt, wantsAudit };
}
