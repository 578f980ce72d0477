import { RedisSilentError, withPatience } from "../../operations/redis.ts";
import type { Stores } from "../../stores.ts";
import { RETRIES } from "../../waits/retries.ts";
import type { BucketState } from "../protocol/headers.ts";
import { POINTS_PER_MINUTE, type UpstreamApi } from "./limits.ts";
import { BLOCK, LEASE, REJECT, type Script, SETTLE } from "./scripts.ts";

export interface LeaseRequest {
  /** Names the request among all processes. */
  id: string;
  bucket: string;
  api: UpstreamApi;
  cost: number;
  points: number;
  isWrite: boolean;
  /** The share of the limit that stays untouched, for classes above. */
  floor: number;
  /** The share of the limit that we may use at all: `QUOTA_SHARE`. */
  share: number;
  /** How many requests to an unknown bucket may be under way, this one included. */
  probes: number;
  /** The credentials that may be used, and those that are tried first. */
  credentials: readonly string[];
  preferred: readonly string[];
  now: number;
}

/** The source of a lease: a known window, an unknown bucket, or a bucket that upstream does not meter. */
export type Counted = "window" | "probe" | "unmetered";

/**
 * `window`: the `reset` of the charged window, or of the last known one for a probe; 0: none. `sendAt`: not before then.
 * Denied: `retryAt` is the first moment with any prospect. `by` is upstream's own limit, or our pace, which soon
 * passes. `retryAt` 0: every credential is rejected.
 */
export type Lease =
  | { credential: string; counted: Counted; window: number; sendAt: number }
  | { retryAt: number; by: "limit" | "pace" };

export interface Settlement {
  credential: string;
  bucket: string;
  /** The lease's id, whose place becomes free. */
  id: string;
  counted: Counted;
  window: number;
  /** How much of the lease upstream did not charge. */
  refund: number;
  /** Whether upstream itself answered. An answer without `seen` means that it does not meter. */
  answered: boolean;
  /** The bucket as the answer's headers show it. Null: it had no such headers. */
  seen: BucketState | null;
  now: number;
}

/** The keys of one credential's budget in Redis. A credential spends the quota of its ledger. */
export class BudgetKeys {
  readonly #space: string;

  constructor({ redisPrefix }: { redisPrefix: string }) {
    this.#space = `${redisPrefix}:quota`;
  }

  /** The key of a ledger's silence and line of writes, or of a credential's rejection. */
  credential(name: string): string {
    return `${this.#space}:${name}`;
  }

  bucket(ledger: string, bucket: string): string {
    return `${this.#space}:${ledger}:${bucket}`;
  }

  underWay(ledger: string): string {
    return `${this.#space}:${ledger}:under-way`;
  }

  points(ledger: string, api: UpstreamApi): string {
    return `${this.#space}:${ledger}:points:${api}`;
  }
}

/** The budget of all processes, in Redis. While Redis is away, each method answers null within half a second. */
export class SharedBudget {
  readonly #ctx: Pick<Stores, "redis" | "log">;
  readonly #ledgerOf: (credential: string) => string;
  readonly #keys: BudgetKeys;
  #awayUntil = 0;

  constructor(ctx: Pick<Stores, "config" | "redis" | "log">, ledgerOf: (credential: string) => string) {
    this.#ctx = ctx;
    this.#ledgerOf = ledgerOf;
    this.#keys = new BudgetKeys(ctx.config);
  }

  async lease(request: LeaseRequest): Promise<Lease | null> {
    const { id, bucket, api, cost, points, isWrite, floor, share, probes, credentials, preferred, now } = request;
    const keys = credentials.flatMap((credential) => {
      const ledger = this.#ledgerOf(credential);
      return [
        ...[this.#keys.credential(ledger), this.#keys.bucket(ledger, bucket)],
        ...[this.#keys.underWay(ledger), this.#keys.points(ledger, api)],
        this.#keys.credential(credential),
      ];
    });
    const shared = await this.#run<[number, number, 0 | 1] | [number, Counted, number, number]>(LEASE, keys, [
      ...[now, cost, floor, share, probes, id, points, POINTS_PER_MINUTE[api], isWrite ? 1 : 0],
      ...credentials.map((credential) => (preferred.includes(credential) ? 1 : 0)),
    ]);
    if (!shared) return null;
    const { reply } = shared;
    if (reply.length === 3) return { retryAt: reply[1], by: reply[2] === 1 ? "pace" : "limit" };
    const [index, counted, window, sendAt] = reply;
    const credential = credentials[index - 1];
    if (credential === undefined) throw new Error(`The budget leased credential ${index} of ${credentials.length}`);
    return { credential, counted, window, sendAt };
  }

  async settle(settlement: Settlement): Promise<void> {
    const { credential, bucket, id, counted, window, refund, answered, seen, now } = settlement;
    const ledger = this.#ledgerOf(credential);
    await this.#run(
      SETTLE,
      [this.#keys.credential(credential), this.#keys.bucket(ledger, bucket), this.#keys.underWay(ledger)],
      [
        ...[now, id, counted, window, refund, answered ? 1 : 0],
        ...(seen ? [seen.limit, seen.remaining, seen.reset, seen.resetAt] : []),
      ],
    );
  }

  /** Answers until when the credential keeps silent. `until` null: upstream named no moment. */
  async block(
    credential: string,
    { until, startedAt, now }: { until: number | null; startedAt: number; now: number },
  ): Promise<number | null> {
    const keys = [this.#keys.credential(this.#ledgerOf(credential))];
    return (await this.#run<number>(BLOCK, keys, [now, startedAt, until ?? ""]))?.reply ?? null;
  }

  /** `why`: in words, for the status. */
  async reject(credential: string, { until, why, now }: { until: number; why: string; now: number }): Promise<void> {
    await this.#run(REJECT, [this.#keys.credential(credential)], [now, until, why]);
  }

  async accept(credential: string): Promise<void> {
    await this.#ask(() => this.#ctx.redis.hdel(this.#keys.credential(credential), "rejectedUntil", "rejection"));
  }

  /** Until when upstream asked the credential to be silent. */
  async blockedUntil(credential: string): Promise<number | null> {
    const key = this.#keys.credential(this.#ledgerOf(credential));
    const shared = await this.#ask(() => this.#ctx.redis.hget(key, "blockedUntil"));
    return shared && Number(shared.reply);
  }

  async #run<Reply>(script: Script, keys: string[], values: (string | number)[]): Promise<{ reply: Reply } | null> {
    // `Reply` is the type that the script's comment describes. TypeScript cannot check that.
    return await this.#ask(async () => (await evaluate(this.#ctx.redis, script, keys, values)) as Reply);
  }

  async #ask<T>(run: () => Promise<T>): Promise<{ reply: T } | null> {
    // By the monotonic clock, since this is about how long Redis is really away.
    if (performance.now() < this.#awayUntil) return null;
    try {
      return { reply: await withPatience(this.#ctx.redis, run) };
    } catch (error) {
      // An error that no outage explains is logged as a bug of ours.
      const level = error instanceof RedisSilentError ? "warn" : "error";
      this.#awayUntil = performance.now() + RETRIES.redisForBudget.firstMs;
      this.#ctx.log[level]({ err: error }, "Redis does not answer: no quota is leased meanwhile");
      return null;
    }
  }
}

/** Runs a script by its hash. After a restart or flush, Redis gets the script again. */
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
