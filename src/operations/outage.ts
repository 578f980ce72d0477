import type { Logger } from "./log.ts";

/** Logs an outage: one line when something is first missing, and one line when it is back. */
export class Outage {
  readonly #log: Logger;
  readonly #level: "warn" | "error";
  readonly #words: { begins: string; ends: string };
  #missed = 0;

  constructor(log: Logger, level: "warn" | "error", words: { begins: string; ends: string }) {
    this.#log = log;
    this.#level = level;
    this.#words = words;
  }

  /** The thing was needed and was missing. */
  missed(reason: unknown): void {
    this.#missed += 1;
    if (this.#missed === 1) this.#log[this.#level]({ err: reason }, this.#words.begins);
  }

  /** The thing was needed, and was there. */
  met(): void {
    if (this.#missed === 0) return;
    this.#log.info({ missed: this.#missed }, this.#words.ends);
    this.#missed = 0;
  }
}
