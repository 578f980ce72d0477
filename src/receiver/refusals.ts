import type { Context } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { json, type Reply } from "../http/reply.ts";
import { InboxUnavailableError } from "../inbox/accept.ts";
import type { Logger } from "../operations/log.ts";
import { Outage } from "../operations/outage.ts";
import { DeliveryFault } from "./fault.ts";

/** How long upstream's redelivery should wait when neither store can keep a delivery, or there is no room for it. */
const RETRY_AFTER = { "Retry-After": "30" };

/** Words and logs why a delivery was not kept. Deliveries come by the hundred, so an outage is logged once. */
export class Refusals {
  readonly #log: Context["log"];
  readonly #refused: RefusalLog;
  readonly #postgres: Outage;
  readonly #stores: Outage;

  constructor({ log }: Pick<Context, "log">) {
    this.#log = log;
    this.#refused = new RefusalLog(log);
    this.#postgres = new Outage(log, "warn", {
      begins: "Postgres cannot take deliveries; they wait in Redis",
      ends: "Postgres takes deliveries again",
    });
    this.#stores = new Outage(log, "error", {
      begins: "Deliveries cannot be kept and are not acknowledged",
      ends: "Deliveries can be kept again",
    });
  }

  /** @param postgresError why the delivery had to be kept in Redis */
  kept(postgresError: Error | null): void {
    this.#stores.met();
    if (postgresError) this.#postgres.missed(postgresError);
    else this.#postgres.met();
  }

  reply(error: unknown, { address }: Exchange): Reply {
    if (error instanceof DeliveryFault) {
      this.#refused.note(address, error);
      return json(error.status, { message: error.message }, error.status === 503 ? RETRY_AFTER : {});
    }
    if (error instanceof InboxUnavailableError) {
      this.#stores.missed(error);
      const message = "The delivery cannot be kept at the moment: send it again later";
      return json(503, { message }, RETRY_AFTER);
    }
    this.#log.error({ err: error }, "The receiver failed");
    return json(500, { message: "The delivery was not taken because of a fault of ours: send it again later" });
  }
}

const WINDOW_MS = 60_000;
/** So many addresses are told apart at a time; all others share a line. */
const MOST_ADDRESSES = 100;

/**
 * Logs refused requests by the address that they come from: the first at once, and those that follow as one line a
 * minute with their number. So thousands of bad requests fill neither the log nor the memory.
 */
export class RefusalLog {
  readonly #log: Logger;
  /** Since the last line of the address. */
  readonly #since = new Map<string, { count: number; last: DeliveryFault }>();
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  note(address: string, fault: DeliveryFault): void {
    const isTold = this.#since.has(address) || this.#since.size < MOST_ADDRESSES;
    const from = isTold ? address : "further addresses";
    const known = this.#since.get(from);
    this.#since.set(from, { count: known ? known.count + 1 : 0, last: fault });
    if (!known) this.#log.warn({ status: fault.status, from, reason: fault.message }, "A delivery was refused");
    this.#timer ??= this.#later();
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => this.#tell(), WINDOW_MS).unref();
  }

  #tell(): void {
    for (const [from, { count, last }] of this.#since) {
      if (count === 0) this.#since.delete(from);
      else {
        this.#log.warn({ count, status: last.status, from, reason: last.message }, "Deliveries were refused");
        this.#since.set(from, { count: 0, last });
      }
    }
    this.#timer = this.#since.size > 0 ? this.#later() : null;
  }
}
