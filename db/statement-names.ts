import { createHash } from "node:crypto";

/** A connection keeps each named statement, and filters combine without end: so the names are bounded. */
export const MAX_NAMED = 300;

/** The names of prepared statements, by their texts. */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Undefined: too many statements have names already. */
  of(text: string): string | undefined {
    let name = this.#names.get(text);
    if (name === undefined && this.#names.size < this.#most) {
      name = createHash("sha256").update(text).digest("hex").slice(0, 16);
      this.#names.set(text, name);
    }
    return name;
  }
}
