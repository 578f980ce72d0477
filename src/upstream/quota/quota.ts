import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { withPatience } from "../../operations/redis.ts";
import type { Stores } from "../../stores.ts";
import { CredentialRejectedError, QuotaSpentError } from "../client/errors.ts";
import type { Priority } from "../client/upstream.ts";
import { type KnownCredential, loadCredentials } from "../credentials/credentials.ts";
import { bucketName, type Headers, type Limit, least, readQuotaHeaders, readRetryAfter } from "./headers.ts";
import { type BucketState, type Counted, type Lease, Ledger, leftOf } from "./ledger.ts";
import { type Api, pointsPerMinute, READ_POINTS, type Toll, WRITE_POINTS } from "./pace.ts";
import { blockScript, leaseScript, rejectScript, type Script, settleScript } from "./scripts.ts";

/** The share of every limit that a class leaves untouched, for the classes above it. */
const floors: Record<Priority, number> = {
  caller: 0,
  refresh: 0.02,
  "catch-up": 0.05,
  audit: 0.1,
  backfill: 0.1,
};
/** How many requests may be under way while nobody knows what is left. A caller need not wait for a slow page's answer. */
const probes: Record<Priority, number> = { caller: 2, refresh: 1, "catch-up": 1, audit: 1, backfill: 1 };

/** A rejected token is tried once more after this time: it may have been a passing fault of upstream's. */
const rejectionMs = 5 * 60_000;
/** For how long Redis is not asked again once it did not answer. */
const redisAbsenceMs = 1_000;
/** What only our own pace holds up is waited for here, this long in all; then the job had better wait in its queue. */
const pacePatienceMs = 2_000;

/** What a request asks of the quota. */
export interface Demand {
  bucket: string;
  api: Api;
  cost: number;
  isWrite: boolean;
  /** When it is not what the method says: a POST that creates nothing that people see need not stand in the line of writes. */
  points?: number;
  priority: Priority;
  signal?: AbortSignal | undefined;
}

/** A permission to send one request with `credential`. Settle it once, when the answer is there or will never be. */
export interface GrantedLease {
  readonly credential: string;
  readonly bucket: string;
  readonly cost: number;
  readonly id: string;
  /** Whose budget the cost was taken from: that of all processes, or this process's own. */
  readonly keeper: "shared" | "own";
  readonly counted: Counted;
  readonly window: number;
}

/** How a request ended. `headers` is null when no answer came, or none of upstream's own. */
export interface Outcome {
  headers: Headers | null;
  /** What upstream took for it, when that is not the lease's cost: 0 for a 304 and for a request that never reached it. */
  charged?: number | undefined;
  /** Figures that stand in the body. */
  alsoSeen?: BucketState | undefined;
}

/**
 * The budget of all processes, in Redis. When Redis does not answer, the process goes on with what it remembers of the
 * last headers it saw itself: less exact, since it does not know what others spend, but upstream's headers soon say.
 * Nothing here waits for Redis longer than half a second.
 */
export class Quota {
  readonly #ctx: Pick<Stores, "config" | "redis" | "clock" | "log">;
  readonly #own: Ledger;
  readonly #ledgerOf: (credential: string) => string;
  /** Tells this process's requests from all others'. */
  readonly #process = randomUUID().slice(0, 8);
  #leases = 0;
  #redisAwayUntil = 0;

  /** @param ledgerOf whose quota a credential spends: the tokens of one user share one */
  constructor(
    ctx: Pick<Stores, "config" | "redis" | "clock" | "log">,
    ledgerOf: (credential: string) => string = (credential) => credential,
  ) {
    this.#ctx = ctx;
    this.#ledgerOf = ledgerOf;
    this.#own = new Ledger(ledgerOf);
  }

  /**
   * Takes the cost from the bucket of the credential that has the most left; `preferred` ones go first if they have enough.
   * What only our own pace holds up (writes stand in line, a second apart) is waited for, for seconds at most.
   * @throws QuotaSpentError with the first moment at which one of them may have enough
   * @throws CredentialRejectedError when upstream rejects them all
   * @throws the signal's reason when it is aborted while waiting
   */
  async lease(
    credentials: readonly string[],
    demand: Demand,
    preferred: readonly string[] = [],
  ): Promise<GrantedLease> {
    const patientUntil = performance.now() + pacePatienceMs;
    for (;;) {
      const outcome = await this.#tryLease(credentials, demand, preferred);
      if ("granted" in outcome) {
        await this.#standInLine(outcome.granted, outcome.sendAt, demand.signal);
        return outcome.granted;
      }
      const { retryAt, by } = outcome;
      const waitMs = retryAt - this.#now();
      if (by === "limit" || performance.now() + waitMs > patientUntil) {
        throw retryAt === 0
          ? new CredentialRejectedError(credentials)
          : new QuotaSpentError(demand.bucket, new Date(retryAt));
      }
      // What is waited for may end in another process, which nobody here can tell.
      await sleep(Math.max(1, waitMs), undefined, demand.signal ? { signal: demand.signal } : {});
    }
  }

  async #tryLease(
    credentials: readonly string[],
    { bucket, api, cost, isWrite, priority, points }: Demand,
    preferred: readonly string[],
  ): Promise<{ granted: GrantedLease; sendAt: number } | Exclude<Lease, { credential: string }>> {
    const now = this.#now();
    const floor = floors[priority];
    const share = this.#ctx.config.quotaShare;
    const toll: Toll = {
      id: `${this.#process}:${++this.#leases}`,
      api,
      points: points ?? (isWrite ? WRITE_POINTS : READ_POINTS),
      isWrite,
    };
    const shared = await this.#shared(
      leaseScript,
      credentials.flatMap((credential) => {
        const ledger = this.#ledgerOf(credential);
        return [
          ...[credentialKey(this.#prefix, ledger), bucketKey(this.#prefix, ledger, bucket)],
          ...[underWayKey(this.#prefix, ledger), pointsKey(this.#prefix, ledger, api)],
          credentialKey(this.#prefix, credential),
        ];
      }),
      [
        ...[now, cost, floor, share, probes[priority], toll.id, toll.points, pointsPerMinute[api], isWrite ? 1 : 0],
        ...credentials.map((credential) => (preferred.includes(credential) ? 1 : 0)),
      ],
    );
    if (!shared) {
      const request = { bucket, cost, toll, floor, share, probes: probes[priority], credentials, preferred, now };
      const own = this.#own.lease(request);
      if ("retryAt" in own) return own;
      const { credential, counted, window, sendAt } = own;
      return { granted: { credential, bucket, cost, id: toll.id, keeper: "own", counted, window }, sendAt };
    }
    const [index, ...rest] = shared.reply as [number, ...unknown[]];
    const credential = credentials[index - 1];
    if (!credential) return { retryAt: Number(rest[0]), by: rest[1] === 1 ? "pace" : "limit" };
    const [counted, window, sendAt] = rest as [Counted, number, number];
    this.#own.enter(credential, toll, now);
    const granted: GrantedLease = { credential, bucket, cost, id: toll.id, keeper: "shared", counted, window };
    const remembered = counted === "probe" ? this.#own.spentUntil(credential, bucket, { cost, floor, share, now }) : 0;
    if (remembered > 0) {
      // Redis has lost its memory, we have not: what was spent a moment ago is spent still.
      await this.settle(granted, { headers: null, charged: 0 });
      return { retryAt: remembered, by: "limit" };
    }
    return { granted, sendAt };
  }

  /** Writes are a second apart, so this one may have to wait; and meanwhile upstream may have asked for silence. */
  async #standInLine(lease: GrantedLease, sendAt: number, signal: AbortSignal | undefined): Promise<void> {
    const waitMs = sendAt - this.#now();
    if (waitMs <= 0) return;
    try {
      await sleep(waitMs, undefined, signal ? { signal } : {});
      const key = credentialKey(this.#prefix, this.#ledgerOf(lease.credential));
      const shared = await this.#redis(() => this.#ctx.redis.hget(key, "blockedUntil"));
      const blockedUntil = Number(shared?.reply ?? this.#own.blockedUntil(lease.credential));
      if (blockedUntil > this.#now()) throw new QuotaSpentError(lease.bucket, new Date(blockedUntil));
    } catch (error) {
      await this.settle(lease, { headers: null, charged: 0 });
      throw error;
    }
  }

  /** Corrects the budget by how a request ended. Any answer but a 401 also shows that the token is accepted. */
  async settle(lease: GrantedLease, { headers, charged = lease.cost, alsoSeen }: Outcome): Promise<void> {
    const seen = headers && least(readQuotaHeaders(headers, this.#now()), alsoSeen);
    const named = headers && bucketName(headers);
    const answered = headers !== null;
    // GitHub names the bucket it charged; it is not always the one that the path suggests.
    if (named && named !== lease.bucket) {
      await this.#settle(lease, lease.bucket, { refund: lease.cost, answered: false, seen: null });
      await this.#settle({ ...lease, counted: "unmetered" }, named, { refund: 0, answered, seen });
    } else {
      await this.#settle(lease, lease.bucket, { refund: lease.cost - charged, answered, seen });
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
    const block = { until: retryAt, startedAt: startedAt.getTime(), now };
    if (limit.kind === "primary" && seen) {
      // By our clock the window may seem over already. Upstream knows better.
      const spent = { ...seen, remaining: 0, resetAt: Math.max(seen.resetAt, now + 1_000) };
      await this.#settle(lease, bucketName(headers) ?? lease.bucket, { refund: 0, answered: true, seen: spent });
      if (retryAt === null) return new Date(spent.resetAt);
    }
    // First of all, so that as few as possible follow it.
    const own = this.#own.block(lease.credential, block);
    const shared = await this.#shared(
      blockScript,
      [credentialKey(this.#prefix, this.#ledgerOf(lease.credential))],
      [now, block.startedAt, retryAt ?? ""],
    );
    // A refusal without figures may come from something on the way: it does not say that upstream does not meter.
    if (limit.kind !== "primary" || !seen) await this.settle(lease, { headers: seen && headers, alsoSeen });
    return new Date(shared ? Number(shared.reply) : own);
  }

  /** Upstream does not accept the credential: it is left alone for five minutes. `why`: in words, for the status. */
  async reject(lease: GrantedLease, why = ""): Promise<void> {
    const { credential } = lease;
    await this.settle(lease, { headers: null });
    const now = this.#now();
    this.#own.reject(credential, now + rejectionMs);
    await this.#shared(rejectScript, [credentialKey(this.#prefix, credential)], [now, now + rejectionMs, why]);
  }

  /** There is reason to think that a rejected credential is accepted by now. */
  async accept(credential: string): Promise<void> {
    this.#own.reject(credential, 0);
    const key = credentialKey(this.#prefix, credential);
    await this.#redis(() => this.#ctx.redis.hdel(key, "rejectedUntil", "rejection"));
  }

  async #settle(
    lease: GrantedLease,
    bucket: string,
    { refund, answered, seen }: { refund: number; answered: boolean; seen: BucketState | null },
  ): Promise<void> {
    const now = this.#now();
    const { credential, id, keeper, counted, window } = lease;
    const countedBy = (who: GrantedLease["keeper"]) => (who === keeper ? counted : "unmetered");
    this.#own.settle({ credential, bucket, id, counted: countedBy("own"), window, refund, answered, seen, now });
    const shared = await this.#shared(
      settleScript,
      [
        credentialKey(this.#prefix, credential),
        bucketKey(this.#prefix, this.#ledgerOf(credential), bucket),
        underWayKey(this.#prefix, this.#ledgerOf(credential)),
      ],
      [
        ...[now, id, countedBy("shared"), window, refund, answered ? 1 : 0],
        ...(seen ? [seen.limit, seen.remaining, seen.reset, seen.resetAt] : []),
      ],
    );
    const standing = shared?.reply as [number, number, number, number, number] | null | undefined;
    if (!standing) return;
    // Should Redis lose its memory, this process still knows what all of them have spent.
    const [limit, remaining, reset, resetAt, spent] = standing;
    this.#own.learn(credential, bucket, { limit, remaining, reset, resetAt, spent });
  }

  /** Runs a script, or answers null when Redis is away. */
  #shared(script: Script, keys: string[], values: (string | number)[]): Promise<{ reply: unknown } | null> {
    return this.#redis(() => evaluate(this.#ctx.redis, script, keys, values));
  }

  async #redis<T>(run: () => Promise<T>): Promise<{ reply: T } | null> {
    if (performance.now() < this.#redisAwayUntil) return null;
    try {
      return { reply: await withPatience(this.#ctx.redis, run) };
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
  /** The token's fingerprint, or `installation-ID`. */
  credential: string;
  /** In words: `token 1a2b…` or `installation on octo`. */
  name: string;
  /** Fingerprints of other tokens of the same user, whose quota this is too. */
  sharedWith: string[];
  bucket: string;
  /** null where no answer has said so yet, or where the window is over. */
  limit: number | null;
  remaining: number | null;
  resetAt: Date | null;
  /** What a first copy may take, those above it and QUOTA_SHARE considered: of this window, and of each that comes. */
  copying: { left: number; perWindow: number } | null;
  /** Upstream asked for silence until then. */
  blockedUntil: Date | null;
  /** Upstream rejects it; it is not tried before then. */
  rejectedUntil: Date | null;
  /** Why it cannot be used, and what to do; null while it can. */
  problem: string | null;
}

/**
 * What is left, for `/-/status`: each credential with each bucket we use. While Redis does not answer, the figures are
 * unknown, and so null: the status has to be readable just then. The tokens of one user are told of once.
 */
export async function quotaReport(ctx: Pick<Stores, "config" | "db" | "redis" | "clock">): Promise<QuotaReport[]> {
  const now = ctx.clock.now().getTime();
  const { redisPrefix } = ctx.config;
  const later = (value: string | undefined) => (Number(value ?? 0) > now ? new Date(Number(value)) : null);
  const read = (key: string) =>
    withPatience(ctx.redis, () => ctx.redis.hgetall(key)).catch((): Record<string, string> => ({}));
  const reportOf = async (each: KnownCredential, others: KnownCredential[], bucket: string): Promise<QuotaReport> => {
    const [own, token, state] = await Promise.all(
      [
        credentialKey(redisPrefix, each.id),
        credentialKey(redisPrefix, each.ledger),
        bucketKey(redisPrefix, each.ledger, bucket),
      ].map(read),
    );
    const resetAt = later(state?.resetAt);
    const rejectedUntil = later(own?.rejectedUntil);
    return {
      credential: each.id,
      name: each.name,
      sharedWith: others.map(({ id }) => id),
      bucket,
      limit: resetAt && Number(state?.limit),
      remaining: resetAt && Number(state?.remaining),
      resetAt,
      copying: resetAt && each.problem === null ? copyingOf(state ?? {}, ctx.config.quotaShare) : null,
      blockedUntil: later(token?.blockedUntil),
      rejectedUntil,
      problem: each.problem ?? (rejectedUntil && (own?.rejection || rejectedToken)),
    };
  };
  const known = await loadCredentials(ctx);
  const rows = [...Map.groupBy(known, ({ ledger }) => ledger).values()].flatMap((sharing) =>
    sharing.flatMap(async (each, index) => {
      const others = sharing.filter((other) => other !== each);
      const reports = await Promise.all(["core", "graphql", "search"].map((bucket) => reportOf(each, others, bucket)));
      // The second of one user's tokens has nothing of its own to tell but that it is rejected.
      return index === 0
        ? reports
        : reports
            .filter(({ rejectedUntil }) => rejectedUntil)
            .slice(0, 1)
            .map(alone);
    }),
  );
  return (await Promise.all(rows)).flat();
}

const rejectedToken =
  "upstream rejects it: it is revoked, expired or wrong; put a valid one in its place in UPSTREAM_TOKEN and restart";

/** Without the figures that another token of the same user tells already. */
function alone(report: QuotaReport): QuotaReport {
  return { ...report, limit: null, remaining: null, resetAt: null, copying: null };
}

function copyingOf(state: Record<string, string>, share: number): QuotaReport["copying"] {
  const [limit, remaining, spent] = [Number(state.limit), Number(state.remaining), Number(state.spent ?? 0)];
  const known = { limit, reset: 0, resetAt: 0 };
  return {
    left: leftOf({ ...known, remaining, spent }, floors.backfill, share),
    perWindow: leftOf({ ...known, remaining: limit, spent: 0 }, floors.backfill, share),
  };
}

function credentialKey(prefix: string, credential: string): string {
  return `${prefix}:quota:${credential}`;
}

function bucketKey(prefix: string, credential: string, bucket: string): string {
  return `${prefix}:quota:${credential}:${bucket}`;
}

function underWayKey(prefix: string, credential: string): string {
  return `${prefix}:quota:${credential}:under-way`;
}

function pointsKey(prefix: string, credential: string, api: Api): string {
  return `${prefix}:quota:${credential}:points:${api}`;
}

/** Runs a script by its hash; a Redis that has lost it (restart, flush) is given it once more. */
async function evaluate(
  redis: Stores["redis"],
  { text, sha1 }: Script,
  keys: string[],
  values: (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha1, keys.length, ...keys, ...values);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return await redis.eval(text, keys.length, ...keys, ...values);
  }
}
