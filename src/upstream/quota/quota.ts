import { randomUUID } from "node:crypto";
import type { Stores } from "../../stores.ts";
import { wait } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { CredentialRejectedError, QuotaSpentError, QuotaUnknownError } from "../protocol/errors.ts";
import {
  type BucketState,
  bucketName,
  type Limit,
  least,
  readQuotaHeaders,
  readRetryAfter,
  type UpstreamHeaders,
} from "../protocol/headers.ts";
import type { Priority } from "../protocol/upstream.ts";
import { FLOORS } from "./bucket.ts";
import { READ_POINTS, type UpstreamApi, WRITE_POINTS } from "./limits.ts";
import { type Counted, type Lease, type LeaseRequest, SharedBudget } from "./shared-budget.ts";

/** How many requests may be under way while the bucket is unknown. A caller need not wait for a slow page's answer. */
const PROBES: Readonly<Record<Priority, number>> = { caller: 2, refresh: 1, "catch-up": 1, audit: 1, backfill: 1 };

/** How long a lease waits for our own pace, in all. A longer wait is better spent in the queue. */
const PACE_PATIENCE_MS = 2_000;

export interface Demand {
  bucket: string;
  api: UpstreamApi;
  cost: number;
  isWrite: boolean;
  /** Set if the method does not decide it: a POST that creates nothing visible need not wait in the line of writes. */
  points?: number;
  priority: Priority;
  /** The caller for whom the request is sent, by the name of their quota. */
  caller?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** A permission to send one request with `credential`. Settle it once, when the answer is there or will never be. */
export interface GrantedLease {
  readonly credential: string;
  readonly bucket: string;
  readonly cost: number;
  readonly id: string;
  readonly counted: Counted;
  readonly window: number;
}

/** The outcome of a request. `headers` is null when no answer came, or none of upstream's own. */
export interface RequestOutcome {
  headers: UpstreamHeaders | null;
  /** The charge, if it is not the lease's cost: 0 for a 304, and for a request that never reached upstream. */
  charged?: number | undefined;
  /** Figures from the body. */
  alsoSeen?: BucketState | undefined;
}

/** `waitMs`: how long to wait before the request is sent. */
type Granted = { granted: GrantedLease; waitMs: number };
type Denied = Exclude<Lease, { credential: string }>;

/**
 * Leases requests from the budget of all processes, which Redis keeps. While Redis does not answer, nothing is leased.
 * Commands alone go on, uncounted: an operator needs their few questions just then.
 */
export class Quota {
  readonly #ctx: Pick<Stores, "config" | "clock">;
  readonly #shared: SharedBudget;
  /** Whether what callers ask for is sent uncounted while Redis does not answer. */
  readonly #goesOn: boolean;
  /** The credentials that upstream has rejected, and until when it limits others, for going on without Redis. */
  readonly #rejected = new Set<string>();
  readonly #limitedUntil = new Map<string, number>();
  /** A prefix for the ids of this process's requests, so that no other process has the same ids. */
  readonly #process = randomUUID().slice(0, 8);
  #leases = 0;

  /**
   * @param options.ledgerOf the quota that a credential spends: the tokens of one user share theirs
   * @param options.isCommand an operator waits, also while Redis does not answer
   */
  constructor(
    ctx: Pick<Stores, "config" | "redis" | "clock" | "log">,
    { ledgerOf, isCommand }: { ledgerOf: (credential: string) => string; isCommand: boolean },
  ) {
    this.#ctx = ctx;
    this.#shared = new SharedBudget(ctx, ledgerOf);
    this.#goesOn = isCommand;
  }

  /**
   * Takes the cost from the bucket of the credential with the most left; `preferred` ones go first if they have enough.
   * If only our own pace denies it (writes go a second apart), this waits for seconds at most.
   * @throws QuotaSpentError with the first moment at which one of them may have enough
   * @throws QuotaUnknownError when Redis does not answer
   * @throws CredentialRejectedError when upstream rejects them all
   * @throws the signal's reason when it is aborted while waiting
   */
  async lease(
    credentials: readonly string[],
    demand: Demand,
    preferred: readonly string[] = [],
  ): Promise<GrantedLease> {
    // By the monotonic clock, since this bounds how long the calling code really waits.
    const patientUntil = performance.now() + PACE_PATIENCE_MS;
    for (;;) {
      const outcome = await this.#tryLease(credentials, demand, preferred);
      if ("granted" in outcome) {
        await this.#standInLine(outcome.granted, outcome.waitMs, demand.signal);
        return outcome.granted;
      }
      const { retryAt, by } = outcome;
      if (retryAt === 0) throw new CredentialRejectedError(credentials);
      const waitMs = retryAt - this.#now();
      if (by === "limit" || performance.now() + waitMs > patientUntil)
        throw new QuotaSpentError(demand.bucket, new Date(retryAt));
      // The cause of the wait may end earlier, in another process; this process cannot see that.
      await wait(Math.max(1, waitMs), demand.signal);
    }
  }

  async #tryLease(
    credentials: readonly string[],
    { bucket, api, cost, isWrite, priority, points = isWrite ? WRITE_POINTS : READ_POINTS }: Demand,
    preferred: readonly string[],
  ): Promise<Granted | Denied> {
    const request: LeaseRequest = {
      id: `${this.#process}:${++this.#leases}`,
      ...{ bucket, api, cost, points, isWrite },
      ...{ floor: FLOORS[priority], share: this.#ctx.config.quotaShare, probes: PROBES[priority] },
      ...{ credentials, preferred, now: this.#now() },
    };
    const lease = await this.#shared.lease(request);
    if (lease && "retryAt" in lease) return lease;
    const { id, now } = request;
    if (lease) {
      const { sendAt, ...taken } = lease;
      // By the same look at the clock: it may be put right meanwhile.
      return { granted: { ...taken, bucket, cost, id }, waitMs: sendAt - now };
    }
    if (!(this.#goesOn && priority === "caller"))
      throw new QuotaUnknownError(bucket, new Date(now + RETRIES.withoutBudget.firstMs));
    const accepted = credentials.filter((one) => !this.#rejected.has(one));
    const usable = accepted.filter((one) => this.#limitOf(one) <= now);
    const credential = usable.find((one) => preferred.includes(one)) ?? usable[0];
    if (credential === undefined) {
      const retryAt = accepted.length > 0 ? Math.min(...accepted.map((one) => this.#limitOf(one))) : 0;
      return { retryAt, by: "limit" };
    }
    // The shared budget never leased this request, so only its answer's headers count there.
    return { granted: { credential, bucket, cost, id, counted: "unmetered", window: 0 }, waitMs: 0 };
  }

  #limitOf(credential: string): number {
    return this.#limitedUntil.get(credential) ?? 0;
  }

  /** Writes are a second apart, so this one may have to wait. Meanwhile upstream may ask for silence. */
  async #standInLine(lease: GrantedLease, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (waitMs <= 0) return;
    const { credential, bucket } = lease;
    try {
      await wait(waitMs, signal);
      const blockedUntil = (await this.#shared.blockedUntil(credential)) ?? 0;
      if (blockedUntil > this.#now()) throw new QuotaSpentError(bucket, new Date(blockedUntil));
    } catch (error) {
      await this.settle(lease, { headers: null, charged: 0 });
      throw error;
    }
  }

  /** Corrects the budget by a request's outcome. Any answer but a 401 also shows that the token is accepted. */
  async settle(lease: GrantedLease, { headers, charged = lease.cost, alsoSeen }: RequestOutcome): Promise<void> {
    const seen = headers && least(readQuotaHeaders(headers, this.#now()), alsoSeen);
    const named = headers && bucketName(headers);
    const answered = headers !== null;
    // GitHub names the bucket that it charged, which is not always the expected one.
    if (named && named !== lease.bucket) {
      await this.#settle(lease, { refund: lease.cost, answered: false, seen: null });
      await this.#settle({ ...lease, bucket: named, counted: "unmetered" }, { refund: 0, answered, seen });
    } else {
      await this.#settle(lease, { refund: lease.cost - charged, answered, seen });
    }
  }

  /**
   * Takes note that upstream refused for a limit, and answers when to come back. A spent bucket waits for its reset.
   * Anything else silences the credential in every bucket, until Retry-After or for a minute that doubles on
   * repetition.
   * @param startedAt when the refused request was sent
   */
  async refuse(
    lease: GrantedLease,
    limit: Limit,
    headers: UpstreamHeaders,
    startedAt: Date,
    alsoSeen?: BucketState,
  ): Promise<Date> {
    const now = this.#now();
    const retryAt = readRetryAfter(headers, now);
    const seen = least(readQuotaHeaders(headers, now), alsoSeen);
    if (limit.kind === "primary" && seen) {
      // By our clock the window may seem over already, but upstream's word counts.
      const spent = { ...seen, remaining: 0, resetAt: Math.max(seen.resetAt, now + 1_000) };
      const bucket = bucketName(headers) ?? lease.bucket;
      await this.#settle({ ...lease, bucket }, { refund: 0, answered: true, seen: spent });
      if (retryAt === null) return this.#limit(lease, spent.resetAt);
    }
    // Blocked before the lease is settled, so that as few requests as possible follow.
    const block = { until: retryAt, startedAt: startedAt.getTime(), now };
    const blockedUntil = await this.#shared.block(lease.credential, block);
    // A refusal without figures may come from a proxy, so it does not prove that upstream does not meter.
    if (limit.kind !== "primary" || !seen) await this.settle(lease, { headers: seen && headers, alsoSeen });
    return this.#limit(lease, blockedUntil ?? retryAt ?? now + RETRIES.throttled.firstMs);
  }

  #limit({ credential }: GrantedLease, until: number): Date {
    this.#limitedUntil.set(credential, until);
    return new Date(until);
  }

  /** Upstream does not accept the credential: it is left alone for five minutes. `why`: in words, for the status. */
  async reject(lease: GrantedLease, why = ""): Promise<void> {
    const { credential } = lease;
    await this.settle(lease, { headers: null });
    const now = this.#now();
    this.#rejected.add(credential);
    await this.#shared.reject(credential, { until: now + RETRIES.rejectedToken.firstMs, why, now });
  }

  /** Lets a rejected credential be used again, since upstream may accept it by now. */
  async accept(credential: string): Promise<void> {
    this.#rejected.delete(credential);
    await this.#shared.accept(credential);
  }

  async #settle(
    lease: GrantedLease,
    ended: { refund: number; answered: boolean; seen: BucketState | null },
  ): Promise<void> {
    this.#rejected.delete(lease.credential);
    await this.#shared.settle({ ...lease, ...ended, now: this.#now() });
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}
