/** Ends what is done for a request once that has taken too long, or its caller has gone. */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** It has taken too long. */
  isOver = false;

  /** @param gone null: it goes on without its caller */
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

  /** The request is answered. */
  lift(): void {
    clearTimeout(this.#timer);
  }
}
