/**
 * The rules of the quota, as one process keeps them for itself. `quota-scripts.ts` says the same in Redis's words,
 * for all processes at once, and a test holds the two equal. All instants are milliseconds by our clock.
 *
 * What is known of a bucket holds until `resetAt`. After that, and before the first answer, it is unknown: requests
 * are allowed, because only an answer can tell, and how many may be under way meanwhile is bounded by the client's
 * connections. A bucket is never taken to be full because its window is over.
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
  /** The share of the limit that stays untouched, for classes above. */
  floor: number;
  /** Fingerprints that may be used, and those that are to be used first if they can. */
  credentials: readonly string[];
  preferred: readonly string[];
  now: number;
}

/** `counted`: the cost was taken from a known remainder, so it can be given back. `retryAt` 0: every credential is rejected. */
export type Lease = { credential: string; counted: boolean } | { retryAt: number };

export interface Settlement {
  credential: string;
  bucket: string;
  /** How much of the lease upstream did not charge. */
  refund: number;
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

export class Ledger {
  readonly #buckets = new Map<string, BucketState>();
  readonly #credentials = new Map<string, CredentialState>();

  lease({ bucket, cost, floor, credentials, preferred, now }: LeaseRequest): Lease {
    let best: { credential: string; left: number; isPreferred: boolean } | null = null;
    let retryAt = 0;
    for (const credential of credentials) {
      const { blockedUntil, rejectedUntil } = this.credential(credential);
      if (rejectedUntil > now) continue;
      const known = this.#known(credential, bucket, now);
      const left = known ? known.remaining - Math.ceil(known.limit * floor) : Number.POSITIVE_INFINITY;
      const freeAt = Math.max(blockedUntil > now ? blockedUntil : 0, known && left < cost ? known.resetAt : 0);
      if (freeAt > 0) {
        retryAt = retryAt === 0 ? freeAt : Math.min(retryAt, freeAt);
        continue;
      }
      const isPreferred = preferred.includes(credential);
      if (!best || (isPreferred && !best.isPreferred) || (isPreferred === best.isPreferred && left > best.left)) {
        best = { credential, left, isPreferred };
      }
    }
    if (!best) return { retryAt };

    const state = this.credential(best.credential);
    // Its time is over: this request tries the token, the others wait for how it ends.
    if (state.rejectedUntil > 0) this.#credentials.set(best.credential, { ...state, rejectedUntil: now + trialMs });
    const known = this.#known(best.credential, bucket, now);
    if (known) known.remaining -= cost;
    return { credential: best.credential, counted: known !== null };
  }

  settle({ credential, bucket, refund, seen, now }: Settlement): void {
    const state = this.#credentials.get(credential);
    if (state && state.rejectedUntil > 0) this.#credentials.set(credential, { ...state, rejectedUntil: 0 });
    const key = `${credential} ${bucket}`;
    const known = this.#known(credential, bucket, now);
    if (!seen) {
      if (known) known.remaining = Math.min(known.limit, known.remaining + refund);
    } else if (!known) {
      this.#buckets.set(key, { ...seen });
    } else if (Math.abs(seen.reset - known.reset) <= sameWindowS) {
      // Answers overtake one another, and others may use the same token: the least that was seen is the truth.
      known.remaining = Math.min(known.remaining + refund, seen.remaining);
      known.limit = seen.limit;
      known.resetAt = Math.min(known.resetAt, seen.resetAt);
    } else if (seen.resetAt > now) {
      this.#buckets.set(key, { ...seen });
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
    const state = this.credential(credential);
    let { blockedUntil, strikes } = state;
    if (until === null) {
      if (startedAt >= blockedUntil) strikes = startedAt < blockedUntil + repetitionMs ? strikes + 1 : 1;
      until = now + Math.min(firstBlockMs * 2 ** (Math.max(strikes, 1) - 1), longestBlockMs);
    }
    blockedUntil = Math.max(blockedUntil, until);
    this.#credentials.set(credential, { ...state, blockedUntil, strikes });
    return blockedUntil;
  }

  reject(credential: string, until: number): void {
    this.#credentials.set(credential, { ...this.credential(credential), rejectedUntil: until });
  }

  credential(credential: string): CredentialState {
    return this.#credentials.get(credential) ?? { blockedUntil: 0, strikes: 0, rejectedUntil: 0 };
  }

  bucket(credential: string, bucket: string): BucketState | null {
    return this.#buckets.get(`${credential} ${bucket}`) ?? null;
  }

  #known(credential: string, bucket: string, now: number): BucketState | null {
    const state = this.bucket(credential, bucket);
    return state && state.resetAt > now ? state : null;
  }
}
