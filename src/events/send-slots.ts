/** More at once would gain nothing in a busy process, since each request would take longer. */
const SLOTS = 16;
/** A target that takes longer lends its slot to others until it answers, so that it delays nobody. */
const QUICK_MS = 50;

/** The slot of one request, from before it is sent until its outcome is noted. */
export interface SendSlot extends Disposable {
  /** The answer is here: the request takes a slot again, however long it took. */
  answered(): void;
}

/**
 * Bounds the requests of a process without a noted outcome, since these are sent again if the process is killed. Slots
 * are given in the order of asking. While answers wait to be noted, few requests are sent.
 */
export class SendSlots {
  readonly #slots: number;
  readonly #quickMs: number;
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  constructor({ slots = SLOTS, quickMs = QUICK_MS } = {}) {
    this.#slots = slots;
    this.#quickMs = quickMs;
  }

  async take(): Promise<SendSlot> {
    if (this.#taken < this.#slots) this.#taken += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let isCounted = true;
    const leave = () => {
      if (!isCounted) return;
      isCounted = false;
      this.#taken -= 1;
      this.#admit();
    };
    const timer = setTimeout(leave, this.#quickMs);
    return {
      answered: () => {
        clearTimeout(timer);
        if (!isCounted) this.#taken += 1;
        isCounted = true;
      },
      [Symbol.dispose]: () => {
        clearTimeout(timer);
        leave();
      },
    };
  }

  #admit(): void {
    while (this.#taken < this.#slots && this.#waiting.length > 0) {
      // The slot is counted before the waiter goes on, so that no other takes it.
      this.#taken += 1;
      this.#waiting.shift()?.();
    }
  }
}
