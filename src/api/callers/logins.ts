import type { Context } from "../../context.ts";
import { Line, roomFor } from "../../work/line.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";
import type { CallerQuota, Payer } from "./quota.ts";

/** How many unknown credentials upstream is asked about at once. */
const LOGINS_AT_ONCE = 8;
/** How many credentials may wait for their turn. In a longer line, the last ones would be answered too late. */
const LONGEST_LINE = 64;
/** Bounds the question about a credential that is not known yet. Null: the credential is invalid. */
export type AsStranger = <T>(ask: () => Promise<T | null>) => Promise<T | null>;

/** The attempts of one address that are under way in this process. */
interface Attempts {
  count: number;
  /** Attempts that wait until another ends. */
  waiting: (() => void)[];
}

/**
 * Bounds the cost of credentials that this process does not know. Each one needs an attempt of its address before
 * anything is asked. One of upstream's also needs an attempt from a budget for all addresses. In the end only failures
 * count. Known callers never come here.
 */
export class Logins {
  readonly #ctx: Pick<Context, "config" | "clock">;
  readonly #quota: CallerQuota;
  readonly #attempts = new Map<string, Attempts>();
  readonly #line = new Line<null>(roomFor(LOGINS_AT_ONCE));

  constructor(ctx: Pick<Context, "config" | "clock">, quota: CallerQuota) {
    this.#ctx = ctx;
    this.#quota = quota;
  }

  /**
   * Looks for one of our own tokens. Null: there is none.
   * @throws ApiFault 403 for an address that has failed too often
   */
  async own<T>(address: string, ask: () => Promise<T | null>): Promise<T | null> {
    const payer = {
      kind: "user",
      quotaName: `a${address}`,
      hourlyLimit: this.#ctx.config.failedLoginsPerAddress,
    } as const;
    const attempts = await this.#admit(address, payer);
    let found: T | null | undefined;
    try {
      found = await ask();
      // An error says nothing about the token, so it counts as no failure.
      if (found === null) await this.#quota.spend(payer, "login", 1);
      return found;
    } finally {
      this.#end(address, attempts, found !== null);
    }
  }

  /**
   * Asks upstream about one of its tokens, when it is its turn. Null: upstream does not accept it.
   * @throws ApiFault 403 for an address that has failed too often, 503 while too many are asked about
   */
  upstreams<T>(address: string, ask: () => Promise<T | null>): Promise<T | null> {
    return this.own(address, async () => {
      if (this.#line.length >= LONGEST_LINE) throw busy(1);
      using _ = await this.#line.enter(null);
      return await this.#budgeted(ask);
    });
  }

  /** Counts one more attempt of the address. It waits while attempts under way may still turn out to be no failures. */
  async #admit(address: string, payer: Payer): Promise<Attempts> {
    for (;;) {
      const figures = await this.#quota.figures(payer, "login");
      const attempts = this.#attempts.getOrInsertComputed(address, () => ({ count: 0, waiting: [] }));
      if (figures === null || figures.remaining > attempts.count) {
        attempts.count += 1;
        return attempts;
      }
      if (attempts.count === 0) {
        this.#attempts.delete(address);
        throw this.#lockedOut(figures.reset);
      }
      await new Promise<void>((resolve) => attempts.waiting.push(resolve));
    }
  }

  /**
   * Ends an attempt. One that has not failed lets one other go on. After the last attempt, all see what quota is left.
   */
  #end(address: string, attempts: Attempts, isPlaceLeft: boolean): void {
    attempts.count -= 1;
    const { length } = attempts.waiting;
    for (const go of attempts.waiting.splice(0, attempts.count === 0 ? length : isPlaceLeft ? 1 : 0)) go();
    if (attempts.count === 0) this.#attempts.delete(address);
  }

  /** Asks within the budget for all addresses. An answer costs upstream work even if it says nothing of the token. */
  async #budgeted<T>(ask: () => Promise<T | null>): Promise<T | null> {
    const all: Payer = { kind: "user", quotaName: "everyone", hourlyLimit: this.#ctx.config.failedLogins };
    const { isSpent, figures } = await this.#quota.spend(all, "login", 1);
    if (isSpent) throw busy(this.#secondsUntil(figures?.reset));
    const found = await ask();
    if (found !== null) this.#quota.refund(all, "login", 1);
    return found;
  }

  /** The fault of an address that has failed too often, in the service's words. */
  #lockedOut(reset: number): ApiFault {
    return new ApiFault(403, "Maximum number of login attempts exceeded. Please try again later.", {
      documentationUrl: REST_DOCS,
      headers: { "Retry-After": String(this.#secondsUntil(reset)) },
    });
  }

  #secondsUntil(reset = 0): number {
    return Math.max(1, Math.ceil(reset - this.#ctx.clock.now().getTime() / 1_000));
  }
}

function busy(seconds: number): ApiFault {
  return new ApiFault(503, "Upstream cannot be asked whose token this is. Try again soon.", {
    documentationUrl: REST_DOCS,
    headers: { "Retry-After": String(seconds) },
  });
}
