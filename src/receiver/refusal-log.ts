import type { Logger } from "../operations/log.ts";
import type { DeliveryFault } from "./fault.ts";

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
