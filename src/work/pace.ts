/**
 * How long work may hold the event loop before other callbacks get their turn. A single step of the work may take that
 * long once more.
 */
const SLICE_MS = 8;

/**
 * Cuts long work into slices. The work asks `isOver` at each step, and awaits `turn` when the slice is over. Parallel
 * pieces of the work share one slice, so the event loop turns after it however many they are.
 */
export class Pace {
  readonly #sliceMs: number;
  /** When the present slice began. Null: no work was done since the event loop last turned. */
  #since: number | null = null;
  /**
   * The timer that ends the slice. Timers run first in a turn of the event loop. With an immediate, which runs last,
   * new requests from sockets and waiting work would get a slice each in one turn.
   */
  #turned: NodeJS.Timeout | null = null;
  #waiting: (() => void)[] = [];

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  isOver(): boolean {
    // The monotonic clock, which also measures the event loop's delay.
    const now = performance.now();
    if (this.#since === null) {
      this.#since = now;
      if (this.#turned) this.#turned.refresh();
      else this.#turned = this.#endSlice();
      return false;
    }
    return now - this.#since >= this.#sliceMs;
  }

  /** Continues in a later turn of the event loop. Callers continue in the order in which they asked. */
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
    // Still in the turn in which the wait began. The next turn has a slice of its own.
    if (this.isOver()) {
      setImmediate(() => this.#resume());
      return;
    }
    const waiting = this.#waiting;
    for (let at = 0; at < waiting.length; at++) {
      if (at > 0 && this.isOver()) {
        // Callers that came meanwhile are at the end of this list.
        this.#waiting = waiting.slice(at);
        setImmediate(() => this.#resume());
        return;
      }
      waiting[at]?.();
      // Lets the resumed caller do a step before the next one is resumed.
      await undefined;
    }
    this.#waiting = [];
  }
}

// Long texts and bytes are joined piece by piece: in one go, they would hold the event loop in proportion to their
// length.

/** A millisecond's work, roughly. */
const CHARACTERS_AT_ONCE = 256 * 1024;

/** Joins texts and bytes to one buffer, in UTF-8. */
export async function joinedBytes(parts: readonly (string | Buffer)[], pace: Pace): Promise<Buffer> {
  let size = 0;
  for (const part of parts) {
    // Counting the bytes makes V8 flatten a text that was concatenated, which takes time.
    if (pace.isOver()) await pace.turn();
    size += Buffer.byteLength(part);
  }
  // Unlike `Buffer.alloc`, this does not fill the memory with zeros first, which would take long for 100 MB.
  const whole = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const part of parts) {
    if (pace.isOver()) await pace.turn();
    at += typeof part === "string" ? whole.write(part, at) : part.copy(whole, at);
  }
  return whole;
}

/** A long text as UTF-8 bytes. A short text is returned as it is. */
export async function sendable(text: string, pace: Pace): Promise<string | Buffer> {
  if (text.length <= CHARACTERS_AT_ONCE) return text;
  const pieces: string[] = [];
  for (let start = 0, end: number; start < text.length; start = end) {
    end = start + CHARACTERS_AT_ONCE;
    // A surrogate pair must not be split.
    if (isFirstOfTwo(text.charCodeAt(end - 1))) end += 1;
    pieces.push(text.slice(start, end));
  }
  return joinedBytes(pieces, pace);
}

function isFirstOfTwo(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
