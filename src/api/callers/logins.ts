import type { Context } from "../../context.ts";
import { networkOf } from "../../http/addresses.ts";
import type { RefusalCounts } from "../../work/audit-log.ts";
import { Line, roomFor } from "../../work/line.ts";
import { ApiFault, REST_DOCS, retryAt } from "../dialect/fault.ts";
import { AcceptedNetworks } from "./accepted-networks.ts";
import type { CallerQuota, Payer } from "./quota.ts";

/** How many credentials may wait for their turn. In a longer line, the last ones would be answered too late. */
const LONGEST_LINE = 64;

/** Unknown credentials of one kind, which take no place and no budget from others. */
interface LoginDoor {
  line: Line<unknown>;
  /** Names the budget for all addresses together. */
  budget: string;
}

/** @param atOnce how many credentials upstream is asked about at once */
function door(budget: string, atOnce: number): LoginDoor {
  return { line: new Line(roomFor(atOnce)), budget };
}

/** Bounds the question about a credential that is not known yet. Null: the credential is invalid. */
export type AsStranger = <T>(ask: () => Promise<T | null>) => Promise<T | null>;

/** The attempts of one network that are under way in this process. */
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
  readonly #refusals: Pick<RefusalCounts, "count">;
  readonly #attempts = new Map<string, Attempts>();
  readonly #accepted: AcceptedNetworks;
  readonly #doors = {
    strangers: door("everyone", 8),
    /** The reserve for networks where a token was accepted lately: invented tokens from elsewhere do not use it up. */
    accepted: door("accepted", 4),
    /** An App's question lasts as long as upstream's answer to it. */
    apps: door("apps", 4),
  };

  constructor(
    ctx: Pick<Context, "config" | "clock" | "redis" | "log">,
    quota: CallerQuota,
    refusals: Pick<RefusalCounts, "count">,
  ) {
    this.#accepted = new AcceptedNetworks(ctx);
    this.#refusals = refusals;
    this.#ctx = ctx;
    this.#quota = quota;
  }

  /**
   * Looks for one of our own tokens. Null: there is none.
   * @throws ApiFault 403 for a network that has failed too often
   */
  own<T>(address: string, ask: () => Promise<T | null>): Promise<T | null> {
    return this.#counted({ purse: "a", refused: "refusal.token" }, address, ask);
  }

  /** The same for the sign-in of the operator, whose failures are counted apart: neither door closes the other. */
  operators<T>(address: string, ask: () => Promise<T | null>): Promise<T | null> {
    return this.#counted({ purse: "operator:a", refused: "refusal.sign_in" }, address, ask);
  }

  /** @param door.refused how the audit log calls a failure */
  async #counted<T>(
    { purse, refused }: { purse: string; refused: string },
    address: string,
    ask: () => Promise<T | null>,
  ): Promise<T | null> {
    const quotaName = purse + networkOf(address);
    const payer = { kind: "user", quotaName, hourlyLimit: this.#ctx.config.failedLoginsPerAddress } as const;
    const attempts = await this.#admit(payer).catch((error: unknown) => {
      this.#refusals.count(refused, address);
      throw error;
    });
    let found: T | null | undefined;
    try {
      found = await ask();
      // An error says nothing about the token, so it counts as no failure.
      if (found === null) {
        this.#refusals.count(refused, address);
        await this.#quota.spend(payer, "login", 1);
      }
      return found;
    } finally {
      this.#end(payer, attempts, found !== null);
    }
  }

  /**
   * Asks upstream about one of its tokens, when it is its turn. Null: upstream does not accept it.
   * @throws ApiFault 403 for an address that has failed too often, 503 while too many are asked about
   */
  upstreams<T>(address: string, ask: () => Promise<T | null>): Promise<T | null> {
    return this.own(address, async () => {
      const network = networkOf(address);
      const isAccepted = await this.#accepted.has(network);
      const found = await this.#through(this.#doors[isAccepted ? "accepted" : "strangers"], ask);
      if (found !== null) await this.#accepted.note(network);
      return found;
    });
  }

  /** The same for what an App asks about itself, which is counted apart: Apps keep no callers out, nor callers Apps. */
  apps<T>(address: string, ask: () => Promise<T | null>): Promise<T | null> {
    const counted = { purse: "app:a", refused: "refusal.token" };
    return this.#counted(counted, address, () => this.#through(this.#doors.apps, ask));
  }

  async #through<T>({ line, budget }: LoginDoor, ask: () => Promise<T | null>): Promise<T | null> {
    if (line.length >= LONGEST_LINE) throw busy({ "Retry-After": "1" });
    using _ = await line.enter(null);
    return await this.#budgeted(budget, ask);
  }

  /** Counts one more attempt of the network. It waits while attempts under way may still turn out to be no failures. */
  async #admit(payer: Payer): Promise<Attempts> {
    for (;;) {
      const figures = await this.#quota.figures(payer, "login");
      const attempts = this.#attempts.getOrInsertComputed(payer.quotaName, () => ({ count: 0, waiting: [] }));
      if (figures === null || figures.remaining > attempts.count) {
        attempts.count += 1;
        return attempts;
      }
      if (attempts.count === 0) {
        this.#attempts.delete(payer.quotaName);
        throw this.#lockedOut(figures.reset);
      }
      await new Promise<void>((resolve) => attempts.waiting.push(resolve));
    }
  }

  /**
   * Ends an attempt. One that has not failed lets one other go on. After the last attempt, all see what quota is left.
   */
  #end({ quotaName }: Payer, attempts: Attempts, isPlaceLeft: boolean): void {
    attempts.count -= 1;
    const { length } = attempts.waiting;
    for (const go of attempts.waiting.splice(0, attempts.count === 0 ? length : isPlaceLeft ? 1 : 0)) go();
    if (attempts.count === 0) this.#attempts.delete(quotaName);
  }

  /** Asks within the budget for all addresses. An answer costs upstream work even if it says nothing of the token. */
  async #budgeted<T>(budget: string, ask: () => Promise<T | null>): Promise<T | null> {
    const all: Payer = { kind: "user", quotaName: budget, hourlyLimit: this.#ctx.config.failedLogins };
    const { isSpent, figures } = await this.#quota.spend(all, "login", 1);
    if (isSpent) throw busy(retryAt(figures?.reset, this.#ctx.clock.now()));
    const found = await ask();
    if (found !== null) this.#quota.refund(all, "login", 1);
    return found;
  }

  /** The fault of a network that has failed too often, in the service's words. */
  #lockedOut(reset: number): ApiFault {
    return new ApiFault(403, "Maximum number of login attempts exceeded. Please try again later.", {
      documentationUrl: REST_DOCS,
      headers: retryAt(reset, this.#ctx.clock.now()),
    });
  }
}

function busy(headers: Record<string, string>): ApiFault {
  const message = "Upstream cannot be asked whose token this is. Try again soon.";
  return new ApiFault(503, message, { documentationUrl: REST_DOCS, headers });
}
