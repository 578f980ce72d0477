import { Line } from "./line.ts";
import { eitherOf } from "./signals.ts";

/** A caller's entry: those with fewer before it are admitted first. */
interface CallersPlace {
  caller: string;
  before: number;
}

/** The line takes no more of this caller's work, or none of anybody's. */
export class LineFullError extends Error {
  override name = "LineFullError";
  /** Whether the caller's own work fills the line. */
  readonly isOwn: boolean;

  constructor({ isOwn }: { isOwn: boolean }, message: string) {
    super(message);
    this.isOwn = isOwn;
  }
}

export interface CallersLineBounds {
  /** How much runs at once. */
  most: number;
  /** How much of it is one caller's. */
  mostEach: number;
  /** How many entries of one caller may wait. */
  mostWaitingEach: number;
  mostWaiting: number;
  /** An entry that was not admitted within this time is refused. */
  patienceMs: number;
}

/**
 * Bounds how much runs at once, for all callers and for each. Callers take turns: whoever waits with a hundred entries
 * delays another's first one by no more than what is running.
 */
export class CallersLine {
  readonly #bounds: CallersLineBounds;
  readonly #line: Line<CallersPlace>;
  readonly #running = new Map<string, number>();
  readonly #open = new Map<string, number>();

  constructor(bounds: CallersLineBounds) {
    this.#bounds = bounds;
    let running = 0;
    const add = ({ caller }: CallersPlace, one: 1 | -1) => {
      running += one;
      count(this.#running, caller, one);
    };
    const room = {
      fits: ({ caller }: CallersPlace) => running < bounds.most && (this.#running.get(caller) ?? 0) < bounds.mostEach,
      take: (entry: CallersPlace) => add(entry, 1),
      free: (entry: CallersPlace) => add(entry, -1),
    };
    this.#line = new Line(room, { rankOf: ({ before }) => before, mayOvertake: true });
  }

  /**
   * Waits for the caller's turn. Dispose of what is returned once the work is done.
   * @throws LineFullError; the signal's reason if it aborts first
   */
  async enter(caller: string, signal?: AbortSignal): Promise<Disposable> {
    const { mostEach, mostWaiting, mostWaitingEach, patienceMs } = this.#bounds;
    const before = this.#open.get(caller) ?? 0;
    if (before >= mostEach + mostWaitingEach)
      throw new LineFullError({ isOwn: true }, `${before} entries of this caller wait or run already`);
    if (this.#line.length >= mostWaiting)
      throw new LineFullError({ isOwn: false }, `${this.#line.length} entries wait already`);
    count(this.#open, caller, 1);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(this.#tooLate(caller)), patienceMs);
    try {
      const given = signal ? eitherOf(late.signal, signal) : late.signal;
      const entered = await this.#line.enter({ caller, before }, given);
      return {
        [Symbol.dispose]: () => {
          count(this.#open, caller, -1);
          entered[Symbol.dispose]();
        },
      };
    } catch (error) {
      count(this.#open, caller, -1);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #tooLate(caller: string): LineFullError {
    const { mostEach, patienceMs } = this.#bounds;
    const isOwn = (this.#running.get(caller) ?? 0) >= mostEach;
    return new LineFullError({ isOwn }, `No turn came within ${patienceMs} ms`);
  }
}

function count(of: Map<string, number>, caller: string, one: 1 | -1): void {
  const sum = (of.get(caller) ?? 0) + one;
  if (sum === 0) of.delete(caller);
  else of.set(caller, sum);
}
