import { Line, roomFor } from "../work/line.ts";

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
  readonly #quickMs: number;
  readonly #line: Line<null>;

  constructor({ slots = SLOTS, quickMs = QUICK_MS } = {}) {
    this.#quickMs = quickMs;
    this.#line = new Line<null>(roomFor(slots));
  }

  async take(): Promise<SendSlot> {
    let counted: Disposable | null = await this.#line.enter(null);
    const leave = () => {
      counted?.[Symbol.dispose]();
      counted = null;
    };
    const timer = setTimeout(leave, this.#quickMs);
    return {
      answered: () => {
        clearTimeout(timer);
        counted ??= this.#line.goIn(null);
      },
      [Symbol.dispose]: () => {
        clearTimeout(timer);
        leave();
      },
    };
  }
}
