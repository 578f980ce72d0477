import { createHash } from "node:crypto";
import type { Context } from "../context.ts";
import { redisReady } from "../operations/redis.ts";
import type { Priority } from "./client.ts";
import { parseCredentials } from "./credentials.ts";
import { CredentialRejectedError, QuotaSpentError } from "./errors.ts";
import { type BucketState, Ledger } from "./ledger.ts";
import { blockScript, leaseScript, rejectScript, settleScript } from "./quota-scripts.ts";

/** The share of a bucket's limit that a class leaves untouched, for the classes above it. */
const floors: Record<Priority, number> = {
  caller: 0,
  refresh: 0.02,
  "catch-up": 0.05,
  audit: 0.1,
  backfill: 0.1,
};

/** A rejected token is tried once more after this time: it may have been a passing fault of upstream's. */
const rejectionMs = 5 * 60_000;
/** How long Redis may take before the process goes on by itself, and for how long it then does not ask again. */
const redisPatienceMs = 500;
const redisAbsenceMs = 1_000;
/** A header that names a later moment than this is a mistake. */
const longestWaitMs = 24 * 3_600_000;

/** A permission to send one request with `credential`. Settle it once the answer is there. */
export interface GrantedLease {
  readonly credential: string;
  readonly bucket: string;
  readonly cost: number;
  /** Whether the cost was taken from the shared budget, from this process's own memory, or from nothing known. */
  readonly counted: "shared" | "own" | "no";
}

/** What an answer says of the quota, apart from its figures. */
export type Limit = { kind: "primary" } | { kind: "secondary" };
export type Headers = Record<string, string | string[] | undefined>;

/**
 * The budget of all processes, in Redis. When Redis does not answer, the process goes on with what it remembers of the
 * last headers it saw itself: less exact, since it does not know what others spend, but upstream's headers soon say.
 * Nothing here waits for Redis longer than half a second.
 */
export class Quota {
  readonly #ctx: Pick<Context, "config" | "redis" | "clock" | "log">;
  readonly #own = new Ledger();
  #redisAwayUntil = 0;

  constructor(ctx: Pick<Context, "config" | "redis" | "clock" | "log">) {
    this.#ctx = ctx;
  }

  /**
   * Takes `cost` from the bucket of the credential that has the most left; `preferred` ones go first if they have enough.
   * @throws QuotaSpentError with the first moment at which one of them may have enough
   * @throws CredentialRejectedError when upstream rejects them all
   */
  async lease(
    credentials: readonly string[],
    bucket: string,
    cost: number,
    priority: Priority,
    preferred: readonly string[] = [],
  ): Promise<GrantedLease> {
    const now = this.#now();
    const floor = floors[priority];
    const shared = await this.#shared(
      leaseScript,
      credentials.flatMap((credential) => [
        credentialKey(this.#prefix, credential),
        bucketKey(this.#prefix, credential, bucket),
      ]),
      [now, cost, floor, ...credentials.map((credential) => (preferred.includes(credential) ? 1 : 0))],
    );
    if (shared) {
      const [index, rest] = shared.reply as [number, number];
      const credential = credentials[index - 1];
      if (credential) return { credential, bucket, cost, counted: rest === 1 ? "shared" : "no" };
      throw this.#denied(credentials, bucket, rest);
    }
    const own = this.#own.lease({ bucket, cost, floor, credentials, preferred, now });
    if ("retryAt" in own) throw this.#denied(credentials, bucket, own.retryAt);
    return { credential: own.credential, bucket, cost, counted: own.counted ? "own" : "no" };
  }

  /**
   * Corrects the budget by an answer. `charged` is what upstream took for it, when that is not the lease's cost: 0 for a 304
   * and for a request that never reached it. Any answer but a 401 also shows that the token is accepted.
   */
  async settle(
    lease: GrantedLease,
    headers: Headers,
    charged: number = lease.cost,
    alsoSeen?: BucketState,
  ): Promise<void> {
    const seen = least(readQuotaHeaders(headers, this.#now()), alsoSeen);
    const named = bucketName(headers);
    // GitHub names the bucket it charged; it is not always the one that the path suggests.
    if (named && named !== lease.bucket) {
      await this.#settle(lease, lease.bucket, lease.cost, null);
      await this.#settle(lease, named, 0, seen);
    } else {
      await this.#settle(lease, lease.bucket, lease.cost - charged, seen);
    }
  }

  /**
   * Takes note that upstream refused for a limit, and answers when to come back. A spent bucket waits for its reset.
   * Anything else silences the credential in every bucket, until Retry-After or for a minute that doubles on repetition.
   * @param startedAt when the refused request was sent
   */
  async refuse(
    lease: GrantedLease,
    limit: Limit,
    headers: Headers,
    startedAt: Date,
    alsoSeen?: BucketState,
  ): Promise<Date> {
    const now = this.#now();
    const retryAt = readRetryAfter(headers, now);
    const seen = least(readQuotaHeaders(headers, now), alsoSeen);
    if (limit.kind === "primary" && seen) {
      // By our clock the window may seem over already. Upstream knows better.
      const spent = { ...seen, remaining: 0, resetAt: Math.max(seen.resetAt, now + 1_000) };
      await this.#settle(lease, bucketName(headers) ?? lease.bucket, 0, spent);
      if (retryAt === null) return new Date(spent.resetAt);
    } else {
      await this.settle(lease, headers);
    }
    const block = { until: retryAt, startedAt: startedAt.getTime(), now };
    const own = this.#own.block(lease.credential, block);
    const shared = await this.#shared(
      blockScript,
      [credentialKey(this.#prefix, lease.credential)],
      [now, block.startedAt, retryAt ?? ""],
    );
    return new Date(shared ? Number(shared.reply) : own);
  }

  /** Upstream does not accept the token: it is left alone for five minutes. */
  async reject(credential: string): Promise<void> {
    const now = this.#now();
    this.#own.reject(credential, now + rejectionMs);
    await this.#shared(rejectScript, [credentialKey(this.#prefix, credential)], [now, now + rejectionMs]);
  }

  async #settle(lease: GrantedLease, bucket: string, refund: number, seen: BucketState | null): Promise<void> {
    const now = this.#now();
    const { credential, counted } = lease;
    this.#own.settle({ credential, bucket, refund: counted === "own" ? refund : 0, seen, now });
    await this.#shared(
      settleScript,
      [credentialKey(this.#prefix, credential), bucketKey(this.#prefix, credential, bucket)],
      [now, counted === "shared" ? refund : 0, ...(seen ? [seen.limit, seen.remaining, seen.reset, seen.resetAt] : [])],
    );
  }

  #denied(credentials: readonly string[], bucket: string, retryAt: number): Error {
    return retryAt === 0 ? new CredentialRejectedError(credentials) : new QuotaSpentError(bucket, new Date(retryAt));
  }

  /** Runs a script, or answers null when Redis is away. */
  async #shared(script: string, keys: string[], values: (string | number)[]): Promise<{ reply: unknown } | null> {
    if (performance.now() < this.#redisAwayUntil) return null;
    try {
      return { reply: await withPatience(this.#ctx.redis, () => evaluate(this.#ctx.redis, script, keys, values)) };
    } catch (error) {
      this.#redisAwayUntil = performance.now() + redisAbsenceMs;
      this.#ctx.log.warn({ err: error }, "Redis does not answer: this process keeps the quota by itself meanwhile");
      return null;
    }
  }

  get #prefix(): string {
    return this.#ctx.config.redisPrefix;
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}

export interface QuotaReport {
  /** The token's fingerprint. */
  credential: string;
  bucket: string;
  /** null where no answer has said so yet, or where the window is over. */
  limit: number | null;
  remaining: number | null;
  resetAt: Date | null;
  /** Upstream asked for silence until then. */
  blockedUntil: Date | null;
  /** Upstream rejects the token; it is not tried before then. */
  rejectedUntil: Date | null;
}

/**
 * What is left, for `/-/status`: each credential with each bucket we use. While Redis does not answer, the figures are
 * unknown, and so null: the status has to be readable just then.
 */
export async function quotaReport(ctx: Pick<Context, "config" | "redis" | "clock">): Promise<QuotaReport[]> {
  const now = ctx.clock.now().getTime();
  const { redisPrefix, upstreamTokens } = ctx.config;
  const later = (value: string | undefined) => (Number(value ?? 0) > now ? new Date(Number(value)) : null);
  const rows = [...parseCredentials(upstreamTokens).keys()].flatMap((credential) =>
    ["core", "graphql", "search"].map(async (bucket): Promise<QuotaReport> => {
      const keys = [credentialKey(redisPrefix, credential), bucketKey(redisPrefix, credential, bucket)];
      const [token = {}, state = {}] = await withPatience(ctx.redis, () =>
        Promise.all(keys.map((key) => ctx.redis.hgetall(key))),
      ).catch(() => []);
      const resetAt = later(state.resetAt);
      return {
        credential,
        bucket,
        limit: resetAt && Number(state.limit),
        remaining: resetAt && Number(state.remaining),
        resetAt,
        blockedUntil: later(token.blockedUntil),
        rejectedUntil: later(token.rejectedUntil),
      };
    }),
  );
  return Promise.all(rows);
}

/**
 * What the headers say of the window, its end translated to our clock by the answer's Date. Pure.
 * Date counts whole seconds, so the translation is up to a second late and never early.
 */
export function readQuotaHeaders(headers: Headers, now: number): BucketState | null {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    integer(headers[`x-ratelimit-${name}`]),
  );
  if (limit == null || remaining == null || reset == null) return null;
  const date = Date.parse(single(headers.date) ?? "");
  const ahead = Number.isNaN(date) ? 0 : now - date;
  return { limit, remaining, reset, resetAt: Math.min(reset * 1_000 + ahead, now + longestWaitMs) };
}

/** The moment that Retry-After names, in seconds or as a date, by our clock. Pure. */
function readRetryAfter(headers: Headers, now: number): number | null {
  const text = single(headers["retry-after"])?.trim();
  if (!text) return null;
  const seconds = integer(text);
  const sentAt = Date.parse(single(headers.date) ?? "");
  const waitMs = seconds !== null ? seconds * 1_000 : Date.parse(text) - (Number.isNaN(sentAt) ? now : sentAt);
  return Number.isNaN(waitMs) ? null : now + Math.min(Math.max(waitMs, 1_000), longestWaitMs);
}

/** Whether an answer means a limit, and which. A 403 that means none is a matter of permissions. Pure. */
export function limitOf(status: number, headers: Headers, message: string): Limit | null {
  // "Come back later" in so many words; without the header a 503 is a passing failure.
  if (status === 503 && headers["retry-after"] !== undefined) return { kind: "secondary" };
  if (status !== 403 && status !== 429) return null;
  if (isSecondaryMessage(message)) return { kind: "secondary" };
  if (isSpentMessage(message) || integer(headers["x-ratelimit-remaining"]) === 0) return { kind: "primary" };
  return status === 429 || headers["retry-after"] !== undefined ? { kind: "secondary" } : null;
}

export function isSpentMessage(message: string): boolean {
  return /API rate limit (already )?exceeded/i.test(message);
}

export function isSecondaryMessage(message: string): boolean {
  return /secondary rate limit|abuse detection/i.test(message);
}

function least(a: BucketState | null, b: BucketState | undefined): BucketState | null {
  if (!a || !b) return a ?? b ?? null;
  return { ...a, remaining: Math.min(a.remaining, b.remaining) };
}

function bucketName(headers: Headers): string | null {
  const name = single(headers["x-ratelimit-resource"]);
  return name && /^[a-z_]{1,40}$/.test(name) ? name : null;
}

function integer(value: string | string[] | undefined): number | null {
  const text = single(value)?.trim();
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function credentialKey(prefix: string, credential: string): string {
  return `${prefix}:quota:${credential}`;
}

function bucketKey(prefix: string, credential: string, bucket: string): string {
  return `${prefix}:quota:${credential}:${bucket}`;
}

/** Runs a script by its hash; a Redis that has lost it (restart, flush) is given it once more. */
async function evaluate(
  redis: Context["redis"],
  script: string,
  keys: string[],
  values: (string | number)[],
): Promise<unknown> {
  const hash = createHash("sha1").update(script).digest("hex");
  try {
    return await redis.evalsha(hash, keys.length, ...keys, ...values);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return await redis.eval(script, keys.length, ...keys, ...values);
  }
}

/** A client without a connection may keep commands for later, perhaps for ever. We do not wait for that. */
async function withPatience<T>(redis: Context["redis"], run: () => Promise<T>): Promise<T> {
  // One that is being opened is worth the wait: without it a fresh process would know nothing of the budget.
  const isOpening = redis.status === "connecting" || redis.status === "connect";
  if (
    ["reconnecting", "close", "end"].includes(redis.status) ||
    (isOpening && !(await redisReady(redis, redisPatienceMs)))
  ) {
    throw new Error(`Redis is not connected (${redis.status})`);
  }
  const { promise: outOfTime, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Error(`Redis has not answered within ${redisPatienceMs} ms`)),
    redisPatienceMs,
  );
  try {
    return await Promise.race([run(), outOfTime]);
  } finally {
    clearTimeout(timer);
  }
}
