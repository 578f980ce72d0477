/**
 * Aborts once one of them does, for its reason. For the signals of one request, since the listeners stay on those that never
 * abort. `AbortSignal.any` registers each signal to be cleaned up after, which costs time and memory (bench/NOTES.md, graphql).
 */
export function eitherOf(...signals: readonly AbortSignal[]): AbortSignal {
  const either = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) either.abort(signal.reason);
    else signal.addEventListener("abort", () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}

/** Aborts the work on a request that takes too long, or whose caller has gone. */
export class TimeLimit {
  readonly signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  /** Whether the request has taken too long. */
  isOver = false;

  /** @param gone null: the work goes on without its caller */
  constructor(timeoutMs: number, gone: AbortSignal | null) {
    const late = new AbortController();
    this.#timer = setTimeout(() => {
      this.isOver = true;
      late.abort();
    }, timeoutMs);
    // The caller may have gone already.
    this.signal = gone ? eitherOf(late.signal, gone) : late.signal;
  }

  /** Ends the limit, since the request is answered. */
  lift(): void {
    clearTimeout(this.#timer);
  }
}

/**
 * The outcome of work that others may wait for, too.
 * @throws what the work does; the signal's reason if it aborts first. The work goes on, and its outcome is dropped
 */
export function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}
