/**
 * How long one piece of work may hold the event loop before others get their turn. A step of it may take as long again.
 */
const SLICE_MS = 8;

/**
 * Cuts long work into slices. The work asks `isOver` at each step, and waits for `turn` where the slice is over. All
 * pieces of the work share a slice: however many go on at once, the event loop turns after it.
 */
export class Pace {
  readonly #sliceMs: number;
  /** When the present slice began; null: nothing was done since the loop turned. */
  #since: number | null = null;
  /**
   * Ends the slice. Timers are the first of a turn. Immediates are its last: what the sockets brought and what waited
   * for its turn would have a slice each.
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

// Long texts and bytes, made one piece by piece: whole, they would hold the event loop for as long as they are.

/** A millisecond's work, roughly. */
const CHARACTERS_AT_ONCE = 256 * 1024;

/** Texts and bytes as one, in UTF-8. */
export async function joinedBytes(parts: readonly (string | Buffer)[], pace: Pace): Promise<Buffer> {
  let size = 0;
  for (const part of parts) {
    // A text of many pieces becomes one when its bytes are counted.
    if (pace.isOver()) await pace.turn();
    size += Buffer.byteLength(part);
  }
  // Its memory is taken as it is filled: at once, 100 MB of it would take long.
  const whole = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const part of parts) {
    if (pace.isOver()) await pace.turn();
    at += typeof part === "string" ? whole.write(part, at) : part.copy(whole, at);
  }
  return whole;
}

/** A text in UTF-8. A short one stays a text. */
export async function sendable(text: string, pace: Pace): Promise<string | Buffer> {
  if (text.length <= CHARACTERS_AT_ONCE) return text;
  const pieces: string[] = [];
  for (let start = 0, end: number; start < text.length; start = end) {
    end = start + CHARACTERS_AT_ONCE;
    // The two units of one character stay together.
    if (isFirstOfTwo(text.charCodeAt(end - 1))) end += 1;
    pieces.push(text.slice(start, end));
  }
  return joinedBytes(pieces, pace);
}

function isFirstOfTwo(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
