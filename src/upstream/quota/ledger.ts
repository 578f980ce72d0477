import { Pace, type Toll } from "./pace.ts";

/**
 * The rules of the quota, as one process keeps them for itself. `quota-scripts.ts` says the same in Redis's words,
 * for all processes at once, and a test holds the two equal. All instants are milliseconds by our clock.
 *
 * A bucket of a credential is
 * - known: an answer's headers said what is left, which holds until `resetAt`;
 * - unmetered: an answer came without such headers, so upstream does not count; believed for a minute;
 * - unknown: before the first answer, after the window is over, and after Redis has lost its memory. It is never taken to
 *   be full: very few requests may be under way ("probes") until the headers of one of them say what is left.
 */
export interface BucketState {
  limit: number;
  /** What is left, less the leases given out. */
  remaining: number;
  /** The end of the window as upstream names it, in epoch seconds by upstream's clock: the window's identity. */
  reset: number;
  /** The same moment by our clock. */
  resetAt: number;
}

/** A bucket with what we ourselves have taken from its window, as far as we know; what we do not know counts as ours. */
export interface SharedBucketState extends BucketState {
  spent: number;
}

export interface CredentialState {
  /** Upstream asked us to be silent until then. 0: never. */
  blockedUntil: number;
  /** How many blocks without a `Retry-After` have followed one another. */
  strikes: number;
  /** The token was rejected and is not tried before then. 0: it is not rejected. */
  rejectedUntil: number;
}

export interface LeaseRequest {
  bucket: string;
  cost: number;
  toll: Toll;
  /** The share of the limit that stays untouched, for classes above. */
  floor: number;
  /** The share of the limit that we may use at all: `QUOTA_SHARE`. */
  share: number;
  /** How many requests to an unknown bucket may be under way for this one to begin, itself included. */
  probes: number;
  /** Fingerprints that may be used, and those that are to be used first if they can. */
  credentials: readonly string[];
  preferred: readonly string[];
  now: number;
}

/** What a lease was taken from: a known window, an unknown bucket, or one that upstream does not meter. */
export type Counted = "window" | "probe" | "unmetered";

/**
 * `window`: the `reset` of the window that was charged, 0 if none was. `sendAt`: not before then.
 * Denied: `retryAt` is the first moment with any prospect; `by` says whether upstream's own limit denies it or only our
 * pace, which soon passes. `retryAt` 0: every credential is rejected.
 */
export type Lease =
  | { credential: string; counted: Counted; window: number; sendAt: number }
  | { retryAt: number; by: "limit" | "pace" };

export interface Settlement {
  credential: string;
  bucket: string;
  /** The lease's `Toll.id`: its place is free now. */
  id: string;
  counted: Counted;
  window: number;
  /** How much of the lease upstream did not charge. */
  refund: number;
  /** Whether upstream answered in its own words: without `seen`, it does not meter. */
  answered: boolean;
  /** What the answer's headers say, if it had them. */
  seen: BucketState | null;
  now: number;
}

/** Headers of one window may name its end a second apart. The shortest windows last a minute. */
export const sameWindowS = 5;
/** GitHub docs: without a Retry-After wait at least a minute, then exponentially longer. */
export const firstBlockMs = 60_000;
export const longestBlockMs = 15 * 60_000;
/** A block that follows the last one within this time is a repetition. */
export const repetitionMs = 15 * 60_000;
/** How long the one request that tries a rejected token again may take before another may. */
export const trialMs = 60_000;
/** The same for one that asks an unknown bucket: GitHub gives up after 10 s, and a process that was killed never answers. */
export const probeMs = 10_000;
/** When to look again whether the requests that ask an unknown bucket have been answered. */
export const probeWaitMs = 100;
/** How long an answer without quota headers is believed. */
export const unmeteredMs = 60_000;

interface Probing {
  probes: number;
  /** Who has not come back by then never will. */
  probesUntil: number;
  unmeteredUntil: number;
}

export class Ledger {
  /** Whose quota a credential spends. Only whether it is rejected is each credential's own. */
  readonly #ledgerOf: (credential: string) => string;
  readonly #buckets = new Map<string, SharedBucketState>();
  readonly #probing = new Map<string, Probing>();
  readonly #credentials = new Map<string, CredentialState>();
  readonly pace = new Pace();

  constructor(ledgerOf: (credential: string) => string = (credential) => credential) {
    this.#ledgerOf = ledgerOf;
  }

  lease({ bucket, cost, toll, floor, share, probes, credentials, preferred, now }: LeaseRequest): Lease {
    let best: { credential: string; left: number; isPreferred: boolean } | null = null;
    let denied: { retryAt: number; by: "limit" | "pace" } = { retryAt: 0, by: "limit" };
    for (const credential of credentials) {
      if (this.credential(credential).rejectedUntil > now) continue;
      const ledger = this.#ledgerOf(credential);
      const { blockedUntil } = this.credential(ledger);
      const known = this.#known(credential, bucket, now);
      const left = known ? leftOf(known, floor, share) : Number.POSITIVE_INFINITY;
      const limitedUntil = Math.max(blockedUntil > now ? blockedUntil : 0, known && left < cost ? known.resetAt : 0);
      const { probes: asking, unmeteredUntil } = this.#probes(credential, bucket, now);
      const waits = !known && unmeteredUntil <= now && asking >= probes;
      const paced = Math.max(waits ? now + probeWaitMs : 0, this.pace.freeAt(ledger, toll, floor, now));
      const freeAt = Math.max(limitedUntil, paced);
      if (freeAt > 0) {
        if (denied.retryAt === 0 || freeAt < denied.retryAt) {
          denied = { retryAt: freeAt, by: limitedUntil > 0 ? "limit" : "pace" };
        }
        continue;
      }
      const isPreferred = preferred.includes(credential);
      if (!best || (isPreferred && !best.isPreferred) || (isPreferred === best.isPreferred && left > best.left)) {
        best = { credential, left, isPreferred };
      }
    }
    if (!best) return denied;

    const { credential } = best;
    const state = this.credential(credential);
    // Its time is over: this request tries the token, the others wait for how it ends.
    if (state.rejectedUntil > 0) this.#credentials.set(credential, { ...state, rejectedUntil: now + trialMs });
    const sendAt = this.enter(credential, toll, now);
    const known = this.#known(credential, bucket, now);
    if (known) {
      known.remaining -= cost;
      known.spent += cost;
      return { credential, counted: "window", window: known.reset, sendAt };
    }
    const probing = this.#probes(credential, bucket, now);
    if (probing.unmeteredUntil > now) return { credential, counted: "unmetered", window: 0, sendAt };
    const asked = { ...probing, probes: probing.probes + 1, probesUntil: now + probeMs };
    this.#probing.set(this.#key(credential, bucket), asked);
    return { credential, counted: "probe", window: 0, sendAt };
  }

  settle({ credential, bucket, id, counted, window, refund, answered, seen, now }: Settlement): void {
    this.pace.leave(this.#ledgerOf(credential), id);
    const state = this.#credentials.get(credential);
    if (state && state.rejectedUntil > 0) this.#credentials.set(credential, { ...state, rejectedUntil: 0 });
    const key = this.#key(credential, bucket);
    const known = this.#known(credential, bucket, now);
    const probing = this.#probes(credential, bucket, now);
    if (counted === "probe" && probing.probes > 0) {
      probing.probes -= 1;
      this.#probing.set(key, probing);
    }
    // What was taken from a window that is over is not given back to this one.
    const isOfWindow = known !== null && counted === "window" && window === known.reset;
    const back = isOfWindow ? refund : 0;
    if (!seen) {
      if (known && back !== 0) {
        known.remaining = Math.min(known.limit, known.remaining + back);
        known.spent = Math.max(0, known.spent - back);
      }
      if (!known && answered) this.#probing.set(key, { ...probing, unmeteredUntil: now + unmeteredMs });
    } else if (known && Math.abs(seen.reset - known.reset) <= sameWindowS) {
      // Answers overtake one another, and others may use the same token: the least that was seen is the truth.
      known.remaining = Math.min(known.remaining + back, seen.remaining);
      known.limit = seen.limit;
      known.resetAt = Math.min(known.resetAt, seen.resetAt);
      known.spent = isOfWindow ? Math.max(0, known.spent - back) : Math.max(known.spent, seen.limit - seen.remaining);
    } else if (seen.resetAt > now) {
      // The other requests that were sent without knowing: whether these figures hold them already, nobody can tell.
      const remaining = seen.remaining - probing.probes;
      this.#buckets.set(key, { ...seen, remaining, spent: seen.limit - remaining });
    }
    // Otherwise a late answer from a window that is over: it says nothing of the present one.
  }

  /**
   * Keeps silent: until the moment upstream named, or, when it named none, a minute and twice as long each time it repeats.
   * A request that `startedAt` before the present block is over belongs to the same incident, however many there are.
   */
  block(
    credential: string,
    { until, startedAt, now }: { until: number | null; startedAt: number; now: number },
  ): number {
    const ledger = this.#ledgerOf(credential);
    const state = this.credential(ledger);
    let { blockedUntil, strikes } = state;
    if (until === null) {
      if (startedAt >= blockedUntil) strikes = startedAt < blockedUntil + repetitionMs ? strikes + 1 : 1;
      until = now + Math.min(firstBlockMs * 2 ** (Math.max(strikes, 1) - 1), longestBlockMs);
    }
    blockedUntil = Math.max(blockedUntil, until);
    this.#credentials.set(ledger, { ...state, blockedUntil, strikes });
    return blockedUntil;
  }

  reject(credential: string, until: number): void {
    this.#credentials.set(credential, { ...this.credential(credential), rejectedUntil: until });
  }

  /** Takes over what is known of a bucket elsewhere. */
  learn(credential: string, bucket: string, state: SharedBucketState): void {
    this.#buckets.set(this.#key(credential, bucket), state);
  }

  /** A request that was leased elsewhere is under way: answers when it may be sent, as far as is known here. */
  enter(credential: string, toll: Toll, now: number): number {
    return this.pace.enter(this.#ledgerOf(credential), toll, now);
  }

  /** Until when upstream asked for silence. */
  blockedUntil(credential: string): number {
    return this.credential(this.#ledgerOf(credential)).blockedUntil;
  }

  /** Until when the bucket has not enough for the cost, as far as is known here; 0: it has, or nobody knows. */
  spentUntil(
    credential: string,
    bucket: string,
    { cost, floor, share, now }: Pick<LeaseRequest, "cost" | "floor" | "share" | "now">,
  ): number {
    const known = this.#known(credential, bucket, now);
    return known && leftOf(known, floor, share) < cost ? known.resetAt : 0;
  }

  credential(credential: string): CredentialState {
    return this.#credentials.get(credential) ?? { blockedUntil: 0, strikes: 0, rejectedUntil: 0 };
  }

  bucket(credential: string, bucket: string): SharedBucketState | null {
    return this.#buckets.get(this.#key(credential, bucket)) ?? null;
  }

  #key(credential: string, bucket: string): string {
    return `${this.#ledgerOf(credential)} ${bucket}`;
  }

  #known(credential: string, bucket: string, now: number): SharedBucketState | null {
    const state = this.bucket(credential, bucket);
    return state && state.resetAt > now ? state : null;
  }

  /** A copy. */
  #probes(credential: string, bucket: string, now: number): Probing {
    const { probes, probesUntil, unmeteredUntil } = this.#probing.get(this.#key(credential, bucket)) ?? {
      probes: 0,
      probesUntil: 0,
      unmeteredUntil: 0,
    };
    return { probes: probesUntil > now ? probes : 0, probesUntil, unmeteredUntil };
  }
}

/**
 * What a class may still take of a known window: of what is left, what it need not leave to those above it; and of our
 * share, what we have not yet used ourselves. Pure.
 */
export function leftOf({ limit, remaining, spent }: SharedBucketState, floor: number, share: number): number {
  const budget = Math.floor(limit * share);
  return Math.min(remaining - Math.ceil(limit * floor), budget - spent - Math.ceil(budget * floor));
}
