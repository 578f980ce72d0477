/** How long one piece of work may hold the event loop before others get their turn. */
const SLICE_MS = 15;

/**
 * Cuts long work into slices. The work asks `isOver` at each step, and waits for `turn` where the slice is over. All pieces
 * of the work share a slice: however many go on at once, the event loop turns after it.
 */
export class Pace {
  readonly #sliceMs: number;
  /** When the present slice began; null: nothing was done since the loop turned. */
  #since: number | null = null;
  #waiting: (() => void)[] = [];

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  isOver(): boolean {
    // By the monotonic clock, as the event loop's own delay is measured.
    const now = performance.now();
    if (this.#since === null) {
      this.#since = now;
      setImmediate(() => {
        this.#since = null;
      });
      return false;
    }
    return now - this.#since >= this.#sliceMs;
  }

  /** Comes back in a later turn of the event loop, in the order of asking. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(() => this.#resume());
    });
  }

  async #resume(): Promise<void> {
    const waiting = this.#waiting;
    for (let at = 0; at < waiting.length; at++) {
      if (at > 0 && this.isOver()) {
        // Those that came meanwhile are among them.
        this.#waiting = waiting.slice(at);
        setImmediate(() => this.#resume());
        return;
      }
      waiting[at]?.();
      // What waits is resumed, and does a step, before the next is.
      await undefined;
    }
    this.#waiting = [];
  }
}
