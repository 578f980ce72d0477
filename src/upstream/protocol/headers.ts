import { isNotYet } from "./doubts.ts";
import { isSecondaryMessage, isSpentMessage } from "./wording.ts";

/** Names in lower case. */
export type UpstreamHeaders = Record<string, string | string[] | undefined>;

/** One bucket of a credential, as upstream's headers show it. Times are milliseconds by our clock. */
export interface BucketState {
  limit: number;
  /** The points left in the window, less the leases given out. */
  remaining: number;
  /** The end of the window as upstream names it, in epoch seconds by upstream's clock: the window's identity. */
  reset: number;
  /** The same moment by our clock. */
  resetAt: number;
}

/** A limit that an answer says we have met. */
export type Limit = { kind: "primary" } | { kind: "secondary" };

/** A header that names a later moment than this is taken for a mistake. */
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** GitHub docs: the longest window is an hour. */
const LONGEST_WINDOW_MS = 3_600_000;
/** How far a window's end may lie outside of it by clocks and delays. */
const WINDOW_SLACK_MS = 60_000;

/**
 * Reads the window from the headers, its end translated to our clock by the answer's Date. Pure.
 * Date counts whole seconds, so the translation is up to a second late and never early. If no window ends as that says,
 * and one may by our clock, the Date is wrong.
 */
export function readQuotaHeaders(headers: UpstreamHeaders, now: number): BucketState | null {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    integer(headers[`x-ratelimit-${name}`]),
  );
  if (limit == null || remaining == null || reset == null) return null;
  const date = Date.parse(firstValue(headers.date) ?? "");
  const ends = reset * 1_000;
  const translated = Number.isNaN(date) ? ends : ends + now - date;
  const resetAt = !isWindowEnd(translated, now) && isWindowEnd(ends, now) ? ends : translated;
  return { limit, remaining, reset, resetAt: Math.min(resetAt, now + LONGEST_WAIT_MS) };
}

function isWindowEnd(at: number, now: number): boolean {
  return at > now - WINDOW_SLACK_MS && at <= now + LONGEST_WINDOW_MS + WINDOW_SLACK_MS;
}

/** The moment that Retry-After names, in seconds or as a date, by our clock. Pure. */
export function readRetryAfter(headers: UpstreamHeaders, now: number): number | null {
  const text = firstValue(headers["retry-after"])?.trim();
  if (!text) return null;
  const seconds = integer(text);
  const sentAt = Date.parse(firstValue(headers.date) ?? "");
  const waitMs = seconds !== null ? seconds * 1_000 : Date.parse(text) - (Number.isNaN(sentAt) ? now : sentAt);
  return Number.isNaN(waitMs) ? null : now + Math.min(Math.max(waitMs, 1_000), LONGEST_WAIT_MS);
}

/** The limit that an answer reports; null: none. A 403 without a limit is about permissions. Pure. */
export function limitOf(status: number, headers: UpstreamHeaders, message: string): Limit | null {
  // A mirror that cannot answer this request yet may still be asked others.
  if (isNotYet(headers)) return null;
  // With this header a 503 means "come back later"; without it, a passing failure.
  if (status === 503 && headers["retry-after"] !== undefined) return { kind: "secondary" };
  if (status !== 403 && status !== 429) return null;
  if (isSecondaryMessage(message)) return { kind: "secondary" };
  if (isSpentMessage(message) || integer(headers["x-ratelimit-remaining"]) === 0) return { kind: "primary" };
  return status === 429 || headers["retry-after"] !== undefined ? { kind: "secondary" } : null;
}

export function least(a: BucketState | null, b: BucketState | undefined): BucketState | null {
  if (!a || !b) return a ?? b ?? null;
  return { ...a, remaining: Math.min(a.remaining, b.remaining) };
}

export function bucketName(headers: UpstreamHeaders): string | null {
  const name = firstValue(headers["x-ratelimit-resource"]);
  return name && /^[a-z_]{1,40}$/.test(name) ? name : null;
}

function integer(value: string | string[] | undefined): number | null {
  const text = firstValue(value)?.trim();
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * An answer's meaning for the quota. `charged`: the charge, if it is not the lease's cost. `alsoSeen`: figures from the
 * body, in the form of headers.
 */
export interface Judgement {
  limit: Limit | null;
  charged?: number;
  alsoSeen?: UpstreamHeaders;
}
