/** How long one piece of work may hold the event loop before others get their turn. A step of it may take as long again. */
const SLICE_MS = 8;

/**
 * Cuts long work into slices. The work asks `isOver` at each step, and waits for `turn` where the slice is over. All pieces
 * of the work share a slice: however many go on at once, the event loop turns after it.
 */
export class Pace {
  readonly #sliceMs: number;
  /** When the present slice began; null: nothing was done since the loop turned. */
  #since: number | null = null;
  /**
   * Ends the slice. Timers are the first of a turn. Immediates are its last: what the sockets brought and what waited for its
   * turn would have a slice each.
   */
  #turned: NodeJS.Timeout | null = null;
  #waiting: (() => void)[] = [];

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  isOver(): boolean {
    // By the monotonic clock, as the event loop's own delay is measured.
    const now = performance.now();
    if (this.#since === null) {
      this.#since = now;
      if (this.#turned) this.#turned.refresh();
      else this.#turned = this.#endSlice();
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

  #endSlice(): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#since = null;
    }, 0);
    return timer.unref();
  }

  async #resume(): Promise<void> {
    // In the turn in which it began to wait: the next one has a slice of its own.
    if (this.isOver()) {
      setImmediate(() => this.#resume());
      return;
    }
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
