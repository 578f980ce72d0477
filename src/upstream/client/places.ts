interface Waiter {
  name: string;
  admit: () => void;
}

/** Bounds the work under way: in all, and for each name. Further work waits for a place, in order. */
export class Places {
  readonly #inAll: number;
  readonly #perName: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  readonly #waiting = new Set<Waiter>();

  constructor({ inAll, perName }: { inAll: number; perName: number }) {
    this.#inAll = inAll;
    this.#perName = perName;
  }

  /**
   * Waits for a place. Dispose of the answer to leave it.
   * @throws the signal's reason when it is aborted first
   */
  async enter(name: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#isFree(name)) this.#take(name);
    else {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const waiting: Waiter = { name, admit: resolve };
      const giveUp = () => {
        if (this.#waiting.delete(waiting)) reject(signal.reason);
      };
      this.#waiting.add(waiting);
      signal.addEventListener("abort", giveUp, { once: true });
      await promise.finally(() => signal.removeEventListener("abort", giveUp));
    }
    let isInside = true;
    return {
      [Symbol.dispose]: () => {
        if (isInside) this.#leave(name);
        isInside = false;
      },
    };
  }

  #isFree(name: string): boolean {
    return this.#taken < this.#inAll && (this.#takenBy.get(name) ?? 0) < this.#perName;
  }

  #take(name: string): void {
    this.#taken += 1;
    this.#takenBy.set(name, (this.#takenBy.get(name) ?? 0) + 1);
  }

  #leave(name: string): void {
    const left = (this.#takenBy.get(name) ?? 1) - 1;
    this.#taken -= 1;
    if (left === 0) this.#takenBy.delete(name);
    else this.#takenBy.set(name, left);
    for (const waiting of this.#waiting) {
      if (!this.#isFree(waiting.name)) continue;
      this.#waiting.delete(waiting);
      this.#take(waiting.name);
      waiting.admit();
      return;
    }
  }
}
