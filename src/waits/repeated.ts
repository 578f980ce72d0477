import { setTimeout as delay } from "node:timers/promises";
import { afterAskedMs, type Backoff, type Limits, waitAfterMs } from "./backoff.ts";

/** A figure, a signal, or both: nothing is tried for ever. */
type Ended =
  | { policy: Backoff & Limits & ({ attempts: number } | { withinMs: number } | { patienceMs: number }) }
  | { policy: Backoff & Limits; signal: AbortSignal };

/** How something is tried again. */
export type Waiting = Ended & { random: () => number; signal?: AbortSignal | undefined };

interface Wait {
  /** The wait that a server asked for. This one is never shorter. */
  askedMs?: number | null;
  /** Told of the wait before it begins. */
  onWait?: (waitMs: number) => void;
}

/** The waits between the attempts at one thing. Every loop that tries again in this process waits here. */
export class Waits {
  readonly #policy: Backoff & Limits;
  readonly #random: () => number;
  readonly #signal: AbortSignal | undefined;
  /** By the monotonic clock, which tells how long the caller really waits. */
  #startedAt = performance.now();
  #failures = 0;

  constructor({ policy, random, signal }: Waiting) {
    this.#policy = policy;
    this.#random = random;
    this.#signal = signal;
  }

  /** How many attempts have failed. */
  get failures(): number {
    return this.#failures;
  }

  /** Something was achieved: from now on, waits and limits count as at the start. */
  reset(): void {
    this.#startedAt = performance.now();
    this.#failures = 0;
  }

  /**
   * Waits before the next attempt. False, at once: the last one was the last.
   * @throws AbortError when the signal aborts
   */
  async next({ askedMs = null, onWait }: Wait = {}): Promise<boolean> {
    const waitMs = this.#waitMs(askedMs);
    if (waitMs === null) return false;
    onWait?.(waitMs);
    await wait(waitMs, this.#signal);
    return true;
  }

  /** As `next`, for work that may simply end: false also when the signal aborts. */
  async nextUnlessAborted(how: Wait = {}): Promise<boolean> {
    try {
      return await this.next(how);
    } catch (error) {
      if (this.#signal?.aborted) return false;
      throw error;
    }
  }

  #waitMs(askedMs: number | null): number | null {
    this.#failures += 1;
    const { attempts = Number.POSITIVE_INFINITY, withinMs, patienceMs = Number.POSITIVE_INFINITY } = this.#policy;
    if (this.#failures >= attempts) return null;
    const leastMs = askedMs === null ? 0 : afterAskedMs(askedMs, this.#random);
    const waitMs = Math.max(waitAfterMs(this.#failures, this.#policy, this.#random), leastMs);
    const spentMs = performance.now() - this.#startedAt;
    if (spentMs + waitMs > patienceMs) return null;
    if (withinMs === undefined) return waitMs;
    const leftMs = withinMs - spentMs;
    return leftMs <= 0 || leftMs < leastMs ? null : Math.min(waitMs, leftMs);
  }
}

type Repeating = Waiting & {
  /** Whether the same work may soon succeed. */
  isPassing: (error: unknown) => boolean;
  /** Told of each failure that is waited for. */
  onWait?: (error: unknown, waitMs: number) => void;
};

/**
 * The outcome of `work`, which is run again after each passing failure. The last failure is thrown.
 * @throws AbortError when the signal aborts during a wait
 */
export async function repeated<Value>(
  work: () => Promise<Value>,
  { isPassing, onWait, ...waiting }: Repeating,
): Promise<Value> {
  const waits = new Waits(waiting);
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error)) throw error;
      if (!(await waits.next({ onWait: (waitMs) => onWait?.(error, waitMs) }))) throw error;
    }
  }
}

/**
 * Looks until what is waited for holds. No event tells of such a change: Postgres' log has moved on, or a lock was given
 * back. False: it did not hold in time.
 * @throws what a look throws; AbortError when the signal aborts during a wait
 */
export async function lookUntil(look: () => Promise<boolean>, waiting: Waiting): Promise<boolean> {
  const waits = new Waits(waiting);
  for (;;) {
    if (await look()) return true;
    if (!(await waits.next())) return false;
  }
}

/** @throws AbortError when the signal aborts first */
export async function wait(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {});
}

/** Waits, for as long as the signal does not abort. */
export async function waitUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await wait(ms, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
