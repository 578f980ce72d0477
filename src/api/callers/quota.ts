import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Context } from "../../context.ts";
import { levelOf } from "../../failure.ts";
import { networkOf } from "../../http/addresses.ts";
import type { RedisClient } from "../../operations/redis.ts";
import { RETRIES } from "../../waits/retries.ts";
import { mostEntries } from "../../work/bounded.ts";

/** A caller with a token, as far as quota is concerned. */
export interface Payer {
  kind: "user";
  /** Names the quota that they draw on: their user's, or their token's own. */
  quotaName: string;
  /**
   * How much one window of the quota holds, mostly an hour's. 0: there is no limit. Null: the settings say how much.
   */
  hourlyLimit: number | null;
}

/** A caller without a token. Strangers are told apart by their addresses. */
export interface Stranger {
  kind: "anonymous";
  address: string;
}

/** Names whose quota it is: a user's, a token's own, or that of all strangers in one network. */
export function payerName(caller: Payer | Stranger): string {
  return caller.kind === "user" ? caller.quotaName : `a${networkOf(caller.address)}`;
}

/** A payer, and the class that decides what they are shown. */
export interface Recognised extends Payer {
  /** Callers of one class are shown the same of every repository. */
  class: string;
  /**
   * The scopes of upstream's classic tokens and OAuth Apps' tokens, as upstream names them. Null for all other tokens.
   */
  scopes: string | null;
}

/** Names a class by its rights: two tokens with the same rights are of one class. */
export function classOfRights(of: "own" | "upstream", rights: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([of, rights]))
    .digest("base64");
}

/** What our callers spend: REST requests (`core`), searches by REST, or GraphQL points. */
export type Bucket = "core" | "search" | "graphql";

/**
 * A bucket, or what a caller's requests cost others: reads of upstream at the mirror's cost, and attempts to log in.
 */
export type Purse = Bucket | "upstream" | "login";

/** A caller's figures in one bucket and window, as the service shows them. */
export interface QuotaFigures {
  limit: number;
  used: number;
  remaining: number;
  /** When the window ends, in seconds since 1970. */
  reset: number;
}

/** What came of spending. `isSpent`: the request must not be served. Null figures: the bucket has no limit. */
export interface QuotaSpending {
  isSpent: boolean;
  figures: QuotaFigures | null;
}

/** GitHub docs: limits are counted by the hour, limits of searches by the minute. */
const PURSE_WINDOW_MS: Readonly<Record<Purse, number>> = {
  core: 3_600_000,
  search: 60_000,
  graphql: 3_600_000,
  upstream: 3_600_000,
  login: 60_000,
};
const MAX_CALLERS = 20_000;
/** A lease is at most this part of the limit. The unused part of a process's lease is missing in the others. */
const LEASE_PART = 1 / 200;
/** A lease that was not touched for this long is given back. */
const IDLE_MS = 5_000;

/**
 * Leases quota. KEYS[1]: the window. ARGV: now, wanted (negative: given back), limit, window length (ms), used here
 * while Redis was away. Answers what was granted, what is used in all, and the window's end.
 */
const LEASE_SCRIPT = `
local window = redis.call('HMGET', KEYS[1], 'used', 'reset')
local now, wanted, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used, reset = tonumber(window[1] or '0'), tonumber(window[2] or '0')
if reset <= now then
  if wanted < 0 then return {0, 0, 0} end
  used, reset = 0, now + tonumber(ARGV[4])
end
used = used + tonumber(ARGV[5])
local granted = math.max(math.min(wanted, limit - used), wanted < 0 and wanted or 0)
used = math.max(used + granted, 0)
redis.call('HSET', KEYS[1], 'used', used, 'reset', reset)
redis.call('PEXPIRE', KEYS[1], math.max(reset - now, 1) + 60000)
return {granted, used, reset}`;

/** One caller's window in one bucket, as this process knows it. */
interface Window {
  key: string;
  limit: number;
  windowMs: number;
  /** What all processes have used, including all leases, as of the last lease. */
  used: number;
  /** What this process has leased and not spent yet. */
  left: number;
  /** When the window ends, in ms. 0: that is not known yet. */
  resetAt: number;
  /** What was spent here while Redis could not be asked. */
  owed: number;
  touchedAt: number;
  /** When the last lease was asked for. */
  askedAt: number;
  pending: Promise<void> | null;
}

/** Quota that was taken without asking Redis. It can be given back. */
export interface TakenQuota {
  /** Null: there is no limit. */
  readonly window: Window | null;
  readonly cost: number;
}

type QuotaContext = Pick<Context, "config" | "redis" | "clock" | "log">;

/**
 * The quota of our own callers: one window per caller and bucket, beginning with its first request, kept in Redis
 * and shared by all processes. Each process leases a small part of it at a time, so most requests ask nothing of Redis. The total
 * never exceeds the limit; what idle processes hold goes back within seconds.
 *
 * With Redis away each process counts by itself and reports what was used once Redis is back.
 */
export class CallerQuota {
  readonly #ctx: QuotaContext;
  /** How long Redis is not asked again, after it did not answer. */
  readonly #redisAway: { firstMs: number };
  readonly #windows: LRUCache<string, Window>;
  readonly #timer: NodeJS.Timeout;
  readonly #returns = new Set<Promise<void>>();
  #redisAwayUntil = 0;

  constructor(ctx: QuotaContext, { redisAway = RETRIES.redisForCallers }: { redisAway?: { firstMs: number } } = {}) {
    this.#redisAway = redisAway;
    this.#ctx = ctx;
    this.#windows = new LRUCache({ ...mostEntries(MAX_CALLERS), dispose: (window) => this.#giveBack(window) });
    this.#timer = setInterval(() => this.#giveBackIdle(), IDLE_MS);
    this.#timer.unref();
  }

  /** Takes `cost` from what this process has leased; null where Redis has to be asked. */
  take(caller: Payer | Stranger, bucket: Bucket, cost: number): TakenQuota | null {
    const window = this.#window(caller, bucket);
    return window && !this.#takeFrom(window, cost) ? null : { window, cost };
  }

  /** Gives back what was taken. */
  undo({ window, cost }: TakenQuota): void {
    if (window?.resetAt) window.left = Math.min(window.left + cost, window.used);
  }

  /** The figures of the window that it was taken from; null where there is no limit. */
  windowFigures({ window }: TakenQuota): QuotaFigures | null {
    return window && figuresOf(window);
  }

  #takeFrom(window: Window, cost: number): boolean {
    this.#touch(window);
    if (window.left < cost) return false;
    window.left -= cost;
    return true;
  }

  /** Takes `cost` from the caller's quota, unless there is not that much left. */
  async spend(caller: Payer | Stranger, bucket: Purse, cost: number): Promise<QuotaSpending> {
    const window = this.#window(caller, bucket);
    if (!window) return { isSpent: false, figures: null };
    // Each turn is a lease. Another request may take what this one has leased, hence the bound.
    for (let turn = 0; turn < 100; turn++) {
      if (this.#takeFrom(window, cost)) return { isSpent: false, figures: figuresOf(window) };
      if (
        window.resetAt > 0 &&
        window.used >= window.limit &&
        window.touchedAt < window.askedAt + RETRIES.spentQuota.firstMs
      )
        break;
      window.pending ??= this.#lease(window, cost - window.left).finally(() => {
        window.pending = null;
      });
      await window.pending;
    }
    return { isSpent: true, figures: figuresOf(window) };
  }

  /** Gives back what a request turned out not to cost. */
  refund(caller: Payer | Stranger, bucket: Purse, cost: number): QuotaFigures | null {
    const window = this.#window(caller, bucket);
    if (!window) return null;
    this.#touch(window);
    if (window.resetAt > 0) window.left = Math.min(window.left + cost, window.used);
    return figuresOf(window);
  }

  /** The caller's figures, asked of Redis if this process knows none. Asking costs the caller nothing. */
  async figures(caller: Payer | Stranger, bucket: Purse): Promise<QuotaFigures | null> {
    const window = this.#window(caller, bucket);
    if (!window) return null;
    this.#touch(window);
    if (window.resetAt === 0) {
      window.pending ??= this.#lease(window, 0).finally(() => {
        window.pending = null;
      });
      await window.pending;
    }
    return figuresOf(window);
  }

  /** Gives all leases back. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#windows.clear();
    await Promise.all(this.#returns);
  }

  #window(caller: Payer | Stranger, bucket: Purse): Window | null {
    const limit = this.#limit(caller, bucket);
    if (limit === 0) return null;
    const name = `${bucket}:${payerName(caller)}`;
    let window = this.#windows.get(name);
    if (!window) {
      const key = `${this.#ctx.config.redisPrefix}:api-quota:${name}`;
      window = {
        key,
        limit,
        windowMs: PURSE_WINDOW_MS[bucket],
        used: 0,
        left: 0,
        resetAt: 0,
        owed: 0,
        touchedAt: 0,
        askedAt: 0,
        pending: null,
      };
      this.#windows.set(name, window);
    }
    return window;
  }

  #limit(caller: Payer | Stranger, bucket: Purse): number {
    const { rateLimitUser, rateLimitAnonymous, rateLimitGraphql, rateLimitSearchUser, rateLimitSearchAnonymous } =
      this.#ctx.config;
    if (bucket === "search") return caller.kind === "user" ? rateLimitSearchUser : rateLimitSearchAnonymous;
    if (caller.kind === "user" && caller.hourlyLimit !== null) return caller.hourlyLimit;
    if (bucket === "graphql") return rateLimitGraphql;
    return caller.kind === "user" ? rateLimitUser : rateLimitAnonymous;
  }

  #touch(window: Window): void {
    window.touchedAt = this.#ctx.clock.now().getTime();
    if (window.resetAt > 0 && window.resetAt <= window.touchedAt && !window.pending) {
      Object.assign(window, { used: 0, left: 0, resetAt: 0, owed: 0 });
    }
  }

  async #lease(window: Window, needed: number): Promise<void> {
    const now = this.#ctx.clock.now().getTime();
    window.askedAt = now;
    const wanted = needed === 0 ? 0 : Math.max(needed, Math.floor(window.limit * LEASE_PART));
    if (now >= this.#redisAwayUntil && this.#ctx.redis.status === "ready") {
      try {
        const [granted, used, resetAt] = await leaseScript(this.#ctx.redis, window, now, wanted, window.owed);
        if (window.resetAt !== 0 && window.resetAt !== resetAt) window.left = 0;
        window.owed = 0;
        window.left += granted;
        window.used = used;
        window.resetAt = resetAt;
        return;
      } catch (error) {
        // Meanwhile requests are counted here, and not delayed by Redis.
        this.#redisAwayUntil = now + this.#redisAway.firstMs;
        this.#ctx.log[levelOf(error, "warn")](
          { err: error },
          "Redis cannot be asked about callers' quota; this process counts by itself",
        );
      }
    }
    const granted = Math.max(Math.min(wanted, window.limit - window.used), 0);
    window.left += granted;
    window.used += granted;
    window.owed += granted;
    if (window.resetAt === 0) window.resetAt = now + window.windowMs;
  }

  #giveBackIdle(): void {
    const idleSince = this.#ctx.clock.now().getTime() - IDLE_MS;
    for (const window of this.#windows.values()) if (window.touchedAt <= idleSince) this.#giveBack(window);
  }

  #giveBack(window: Window): void {
    const { left, resetAt } = window;
    // Quota that only this process counts takes nothing from other processes.
    if (left === 0 || window.owed > 0 || window.pending || this.#ctx.redis.status !== "ready") return;
    const now = this.#ctx.clock.now().getTime();
    if (resetAt <= now) return;
    window.left = 0;
    window.used -= left;
    const giving: Promise<void> = leaseScript(this.#ctx.redis, window, now, -left, 0)
      .then(
        () => {},
        (error: unknown) =>
          this.#ctx.log[levelOf(error, "warn")]({ err: error }, "A caller's unused quota could not be given back"),
      )
      .finally(() => this.#returns.delete(giving));
    this.#returns.add(giving);
  }
}

async function leaseScript(
  redis: RedisClient,
  { key, limit, windowMs }: Pick<Window, "key" | "limit" | "windowMs">,
  now: number,
  wanted: number,
  owed: number,
): Promise<[number, number, number]> {
  // No type can say what a script replies: this is what the script's own comment says.
  return (await redis.eval(LEASE_SCRIPT, 1, key, now, wanted, limit, windowMs, owed)) as [number, number, number];
}

function figuresOf(window: Window): QuotaFigures {
  const used = Math.min(Math.max(window.used - window.left, 0), window.limit);
  return { limit: window.limit, used, remaining: window.limit - used, reset: Math.ceil(window.resetAt / 1_000) };
}

/** The headers of a caller's quota, by their names. */
export function quotaHeaders(figures: QuotaFigures | null, resource: Bucket): Record<string, string> {
  if (!figures) return {};
  return {
    "X-RateLimit-Limit": String(figures.limit),
    "X-RateLimit-Remaining": String(figures.remaining),
    "X-RateLimit-Reset": String(figures.reset),
    "X-RateLimit-Used": String(figures.used),
    "X-RateLimit-Resource": resource,
  };
}
