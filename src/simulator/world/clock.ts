/** Where the simulated service reads the time; tests bring their own. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
}

/** A clock that runs with real time from a settable point, or stands still until moved. */
export class SettableClock implements Clock {
  #offsetMs = 0;
  #frozenAt: number | null;

  /** With `frozenAt` (epoch milliseconds) it stands still until it is moved; without it, it runs. */
  constructor(frozenAt?: number) {
    this.#frozenAt = frozenAt ?? null;
  }

  now(): number {
    return this.#frozenAt ?? Date.now() + this.#offsetMs;
  }

  set(now: number): void {
    if (this.#frozenAt === null) this.#offsetMs = now - Date.now();
    else this.#frozenAt = now;
  }

  advance(ms: number): void {
    this.set(this.now() + ms);
  }
}
