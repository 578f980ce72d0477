/**
 * Primary and secondary limits. Primary: fixed windows of an hour per caller and bucket, beginning with the first
 * request after the last one ended. Secondary: requests at once, points a minute, content created.
 */
import type { App } from "../world/apps.ts";
import type { Clock } from "../world/clock.ts";
import type { Random } from "../world/random.ts";
import type { Token } from "../world/tokens.ts";

export type Bucket = "core" | "graphql" | "search" | "integration_manifest";

/** Who spends: a user (all tokens of one share), a token with a limit of its own, an installation, an address. */
export interface Caller {
  readonly key: string;
  /** What the service calls it in its messages: `user ID 1`, `installation ID 2`, `1.2.3.4`. */
  readonly name: string;
  readonly anonymous: boolean;
  readonly limit: number | null;
  /** Beyond the base, for large installations; never above `INSTALLATION_CAP`. */
  readonly bonus: number;
}

// GitHub docs: "Rate limits for GitHub Apps".
const INSTALLATION_CAP = 12_500;

export function callerOf(token: Token | null, address: string): Caller {
  if (!token) return { key: `ip:${address}`, name: address, anonymous: true, limit: null, bonus: 0 };
  if (token.installationId !== null) {
    return {
      key: `installation:${token.installationId}`,
      name: `installation ID ${token.installationId}`,
      anonymous: false,
      limit: token.limit,
      bonus: token.grant?.bonus() ?? 0,
    };
  }
  const key = token.limit === null ? `user:${token.userId}` : `token:${token.value}`;
  return { key, name: `user ID ${token.userId}`, anonymous: false, limit: token.limit, bonus: 0 };
}

/** Calls with a JWT are not counted: their answers carry no rate-limit headers. */
export function appCaller(app: App): Caller {
  return {
    key: `app:${app.id}`,
    name: `app ID ${app.id}`,
    anonymous: false,
    limit: Number.POSITIVE_INFINITY,
    bonus: 0,
  };
}

function scaled(base: number, bonus: number): number {
  return bonus === 0 ? base : Math.max(base, Math.min(base + bonus, INSTALLATION_CAP));
}

export interface QuotaState {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** UTC epoch seconds. */
  readonly reset: number;
}

/** Each can be set to Infinity: off. */
export interface QuotaLimits {
  core: number;
  coreAnonymous: number;
  graphql: number;
  search: number;
  searchAnonymous: number;
  integrationManifest: number;
  concurrent: number;
  restPointsPerMinute: number;
  graphqlPointsPerMinute: number;
  contentPerMinute: number;
  contentPerHour: number;
}

// GitHub docs: "Rate limits for the REST API" and "…GraphQL API".
const SERVICE_LIMITS: QuotaLimits = {
  core: 5_000,
  coreAnonymous: 60,
  graphql: 5_000,
  search: 30,
  searchAnonymous: 10,
  integrationManifest: 5_000,
  concurrent: 100,
  restPointsPerMinute: 900,
  graphqlPointsPerMinute: 2_000,
  contentPerMinute: 80,
  contentPerHour: 500,
};

export interface QuotaOptions {
  readonly limits?: Partial<QuotaLimits>;
  /** Whether refusals for a secondary limit carry `Retry-After`. Default true; the service sometimes leaves it out. */
  readonly retryAfter?: boolean;
  /** Status of refusals. Default 403; the service may use 429. */
  readonly status?: 403 | 429;
  /**
   * Whether a GraphQL connection without `first` and `last` is charged a request per parent, like a paged one. Default
   * false. The service's rule is unconfirmed. GitHub docs say "assume every request will reach the `first` or `last`
   * argument limits", and nothing about a connection without them.
   */
  readonly chargeCounts?: boolean;
}

export type SecondaryLimit = "concurrency" | "points" | "content";

interface Window {
  used: number;
  /** UTC epoch seconds. */
  reset: number;
}

const HOUR = 3_600;
/** Two were seen to alternate for one token, with other ends and other remainders. */
const WINDOWS = 2;
const MINUTE_MS = 60_000;

export class Quota {
  readonly limits: QuotaLimits;
  retryAfter: boolean;
  status: 403 | 429;
  readonly chargeCounts: boolean;
  readonly #clock: Clock;
  readonly #windows = new Map<string, Window>();
  /**
   * Which of a caller's windows the present request falls into. Requests with one window each all fall into the first.
   */
  #present = 0;
  readonly #running = new Map<string, number>();
  /** Recent spending, oldest first, per caller and kind. */
  readonly #recent = new Map<string, { at: number; amount: number }[]>();

  constructor(clock: Clock, options: QuotaOptions = {}) {
    this.#clock = clock;
    this.limits = { ...SERVICE_LIMITS, ...options.limits };
    this.retryAfter = options.retryAfter ?? true;
    this.status = options.status ?? 403;
    this.chargeCounts = options.chargeCounts ?? false;
  }

  limitOf(caller: Caller, bucket: Bucket): number {
    switch (bucket) {
      case "core":
        return caller.anonymous ? this.limits.coreAnonymous : (caller.limit ?? scaled(this.limits.core, caller.bonus));
      case "graphql":
        return caller.anonymous ? 0 : (caller.limit ?? scaled(this.limits.graphql, caller.bonus));
      case "search":
        return caller.anonymous ? this.limits.searchAnonymous : this.limits.search;
      case "integration_manifest":
        return this.limits.integrationManifest;
      default:
        return bucket satisfies never;
    }
  }

  /** Another request begins. `random` draws its window where a caller has two. */
  draw(random: Random | null): void {
    this.#present = random === null ? 0 : random.int(0, WINDOWS - 1);
  }

  /** Looks without spending. An unused bucket shows a reset one window ahead. */
  state(caller: Caller, bucket: Bucket): QuotaState {
    const limit = this.limitOf(caller, bucket);
    const now = Math.floor(this.#clock.now() / 1_000);
    const window = this.#windows.get(this.#key(caller, bucket));
    const open = window && window.reset > now ? window : { used: 0, reset: now + lengthOf(bucket) };
    return { limit, used: open.used, remaining: Math.max(0, limit - open.used), reset: open.reset };
  }

  /**
   * Spends `amount` when anything is left (the service lets the last request through even when it costs more than
   * remains). False: exhausted, nothing was spent.
   */
  charge(caller: Caller, bucket: Bucket, amount: number): boolean {
    const before = this.state(caller, bucket);
    if (before.remaining <= 0) return false;
    this.#windows.set(this.#key(caller, bucket), { used: before.used + amount, reset: before.reset });
    return true;
  }

  /** Gives back what a 304 does not cost. */
  refund(caller: Caller, bucket: Bucket, amount: number): void {
    const window = this.#windows.get(this.#key(caller, bucket));
    if (window) window.used = Math.max(0, window.used - amount);
  }

  /** Sets what is left, for tests and demonstrations of an exhausted quota. */
  setRemaining(caller: Caller, bucket: Bucket, remaining: number): void {
    const { limit, reset } = this.state(caller, bucket);
    for (let number = 0; number < WINDOWS; number++)
      this.#windows.set(this.#key(caller, bucket, number), { used: Math.max(0, limit - remaining), reset });
  }

  #key(caller: Caller, bucket: Bucket, number = this.#present): string {
    return `${caller.key} ${bucket} ${number}`;
  }

  /** A request begins. Every call is answered by one of `leave`. */
  enter(caller: Caller): number {
    const running = (this.#running.get(caller.key) ?? 0) + 1;
    this.#running.set(caller.key, running);
    return running;
  }

  leave(caller: Caller): void {
    const running = (this.#running.get(caller.key) ?? 1) - 1;
    if (running === 0) this.#running.delete(caller.key);
    else this.#running.set(caller.key, running);
  }

  /**
   * Takes points (GET 1, write 5, query 1, mutation 5) and content creation into account. Names the limit that
   * refuses the request, and the whole seconds until it would be let through.
   */
  secondary(
    caller: Caller,
    request: { readonly api: "rest" | "graphql"; readonly points: number; readonly createsContent: boolean },
  ): { readonly limit: SecondaryLimit; readonly retryAfterSeconds: number } | null {
    if ((this.#running.get(caller.key) ?? 0) > this.limits.concurrent)
      return { limit: "concurrency", retryAfterSeconds: 1 };
    const perMinute = request.api === "rest" ? this.limits.restPointsPerMinute : this.limits.graphqlPointsPerMinute;
    const points = this.#left(`${caller.key} ${request.api}`, MINUTE_MS, perMinute, request.points);
    if (points > 0) return { limit: "points", retryAfterSeconds: points };
    if (request.createsContent) {
      const minute = this.#left(`${caller.key} content`, MINUTE_MS, this.limits.contentPerMinute, 1);
      const hour = this.#left(`${caller.key} content`, HOUR * 1_000, this.limits.contentPerHour, 1);
      if (minute > 0 || hour > 0) return { limit: "content", retryAfterSeconds: Math.max(minute, hour) };
      this.#spend(`${caller.key} content`, 1);
    }
    this.#spend(`${caller.key} ${request.api}`, request.points);
    return null;
  }

  /** Seconds until `amount` fits under `limit` within the span; 0 when it fits now. */
  #left(key: string, spanMs: number, limit: number, amount: number): number {
    if (limit === Number.POSITIVE_INFINITY) return 0;
    const now = this.#clock.now();
    const spent = (this.#recent.get(key) ?? []).filter((one) => one.at > now - spanMs);
    let excess = spent.reduce((sum, one) => sum + one.amount, amount) - limit;
    if (excess <= 0) return 0;
    for (const one of spent) {
      excess -= one.amount;
      if (excess <= 0) return Math.max(1, Math.ceil((one.at + spanMs - now) / 1_000));
    }
    return Math.ceil(spanMs / 1_000);
  }

  #spend(key: string, amount: number): void {
    const now = this.#clock.now();
    const spent = this.#recent.get(key) ?? [];
    const last = spent.at(-1);
    // One entry per second: the list stays short under any load.
    if (last && Math.floor(last.at / 1_000) === Math.floor(now / 1_000)) last.amount += amount;
    else spent.push({ at: now, amount });
    while (spent[0] && spent[0].at <= now - HOUR * 1_000) spent.shift();
    this.#recent.set(key, spent);
  }
}

function lengthOf(bucket: Bucket): number {
  return bucket === "search" ? 60 : HOUR;
}
