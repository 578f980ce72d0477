import type { BucketState } from "../../src/upstream/protocol/headers.ts";
import { leftOf, type SharedBucketState } from "../../src/upstream/quota/bucket.ts";
import { SAME_WINDOW_S, TRIAL_MS } from "../../src/upstream/quota/limits.ts";

/** A request for a lease: the buckets and limits that it is taken from. */
interface ModelRequest {
  bucket: string;
  cost: number;
  /** `QUOTA_SHARE` */
  share: number;
  credentials: readonly string[];
  /** The credentials that are tried first. */
  preferred: readonly string[];
  now: number;
}

/**
 * The rules of `src/upstream/quota/scripts.ts` once more, of callers' requests to known buckets alone: upstream's last
 * words on each bucket, and which credentials are silenced or rejected.
 */
export class BudgetModel {
  readonly #buckets = new Map<string, SharedBucketState>();
  readonly #blockedUntil = new Map<string, number>();
  readonly #rejectedUntil = new Map<string, number>();

  /** `retryAt` 0: every credential is rejected. */
  lease(request: ModelRequest): { credential: string } | { retryAt: number } {
    const { bucket, cost, share, credentials, preferred, now } = request;
    let best: { credential: string; left: number; isPreferred: boolean } | null = null;
    let retryAt = 0;
    for (const credential of credentials) {
      if ((this.#rejectedUntil.get(credential) ?? 0) > now) continue;
      const known = this.bucket(credential, bucket, now);
      const left = known ? leftOf(known, 0, share) : Number.POSITIVE_INFINITY;
      const blockedUntil = this.blockedUntil(credential);
      const freeAt = Math.max(blockedUntil > now ? blockedUntil : 0, known && left < cost ? known.resetAt : 0);
      const isPreferred = preferred.includes(credential);
      if (freeAt > 0) retryAt = retryAt === 0 ? freeAt : Math.min(retryAt, freeAt);
      else if (!best || (isPreferred && !best.isPreferred) || (isPreferred === best.isPreferred && left > best.left))
        best = { credential, left, isPreferred };
    }
    if (!best) return { retryAt };
    const { credential } = best;
    // The rejection has ended: this request tries the token, and others wait for its outcome.
    if (this.#rejectedUntil.has(credential)) this.#rejectedUntil.set(credential, now + TRIAL_MS);
    const known = this.bucket(credential, bucket, now);
    if (known) {
      const left = { remaining: known.remaining - cost, spent: known.spent + cost };
      this.#learn(credential, bucket, { ...known, ...left });
    }
    return { credential };
  }

  /** Notes an answer's headers. Leased but uncharged points are given back only when headers show them. */
  see(credential: string, bucket: string, seen: BucketState, now: number): void {
    const known = this.bucket(credential, bucket, now);
    const spent = seen.limit - seen.remaining;
    if (known && Math.abs(seen.reset - known.reset) <= SAME_WINDOW_S) {
      this.#learn(credential, bucket, {
        ...{ limit: seen.limit, reset: known.reset, resetAt: Math.min(known.resetAt, seen.resetAt) },
        // Answers overtake one another, and others may use the same token. So the smallest seen value counts.
        ...{ remaining: Math.min(known.remaining, seen.remaining), spent: Math.max(known.spent, spent) },
      });
    } else if (seen.resetAt > now) {
      this.#learn(credential, bucket, { ...seen, spent });
    }
    // Otherwise the answer is from an earlier window, and says nothing about the present one.
  }

  /** Answers until when the credential keeps silent, never earlier than before. */
  block(credential: string, until: number): number {
    const later = Math.max(this.blockedUntil(credential), until);
    this.#blockedUntil.set(credential, later);
    return later;
  }

  reject(credential: string, until: number): void {
    this.#rejectedUntil.set(credential, until);
  }

  /** The credential is accepted. */
  accept(credential: string): void {
    this.#rejectedUntil.delete(credential);
  }

  blockedUntil(credential: string): number {
    return this.#blockedUntil.get(credential) ?? 0;
  }

  /** The bucket's present window; null: nothing is known of it. */
  bucket(credential: string, bucket: string, now: number): SharedBucketState | null {
    const state = this.#buckets.get(`${credential} ${bucket}`);
    return state && state.resetAt > now ? state : null;
  }

  #learn(credential: string, bucket: string, state: SharedBucketState): void {
    this.#buckets.set(`${credential} ${bucket}`, state);
  }
}
