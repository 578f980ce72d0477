import { isMistake } from "../failure.ts";
import type { Logger } from "./log.ts";

/** Logs an outage: one line when something is first missing, and one line when it is back. */
export class Outage {
  readonly #log: Logger;
  readonly #level: "warn" | "error";
  readonly #words: { begins: string; ends: string };
  #missed = 0;
  #isMistakeTold = false;

  constructor(log: Logger, level: "warn" | "error", words: { begins: string; ends: string }) {
    this.#log = log;
    this.#level = level;
    this.#words = words;
  }

  /** The thing was needed and was missing, or a mistake of ours makes it seem so. */
  missed(reason: unknown): void {
    if (isMistake(reason)) {
      if (!this.#isMistakeTold)
        this.#log.error({ err: reason }, `A mistake of ours looks like this: ${this.#words.begins}`);
      this.#isMistakeTold = true;
      return;
    }
    this.#missed += 1;
    if (this.#missed === 1) this.#log[this.#level]({ err: reason }, this.#words.begins);
  }

  /** The thing was needed, and was there. */
  met(): void {
    this.#isMistakeTold = false;
    if (this.#missed === 0) return;
    this.#log.info({ missed: this.#missed }, this.#words.ends);
    this.#missed = 0;
  }
}
