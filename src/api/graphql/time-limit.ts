/** Aborts the work on a request that takes too long, or whose caller has gone. */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** Whether the request has taken too long. */
  isOver = false;

  /** @param gone null: the work goes on without its caller */
  constructor(timeoutMs: number, gone: AbortSignal | null) {
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, timeoutMs);
    gone?.addEventListener("abort", () => this.#controller.abort(), { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the limit, since the request is answered. */
  lift(): void {
    clearTimeout(this.#timer);
  }
}
