/** More at once would bring nothing to a process that is busy: each would take longer. */
const SLOTS = 16;
/** A target that takes longer to answer gives its slot to others until it does: it holds nobody up. */
const QUICK_MS = 50;

/** For one request, from before it is sent until what came of it is noted. */
export interface SendSlot extends Disposable {
  /** From now on it counts again, however long the answer took. */
  answered(): void;
}

/**
 * Bounds how many requests of a process have no noted outcome yet: if the process is killed, they are sent again. Slots are given
 * in the order of asking. While answers wait to be noted, few requests are sent.
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
      // Counted before it goes on, so that nobody comes in between.
      this.#taken += 1;
      this.#waiting.shift()?.();
    }
  }
}
