import { randomBytes } from "node:crypto";

/** Requests share all but the last digits. Drawing each id anew would take longer than the rest of a 304. */
const SERIES_LENGTH = 0x10000;

/** Names requests, in the service's form. */
export class RequestIds {
  #series = "";
  #last = SERIES_LENGTH;

  next(): string {
    this.#last += 1;
    if (this.#last >= SERIES_LENGTH) {
      const drawn = randomBytes(14).toString("hex").toUpperCase();
      this.#series = `${drawn.slice(0, 4)}:${drawn.slice(4, 10)}:${drawn.slice(10, 16)}:${drawn.slice(16, 24)}:${drawn.slice(24)}`;
      this.#last = 0;
    }
    const digits = this.#last.toString(16).toUpperCase();
    return this.#series + "000".slice(digits.length - 1) + digits;
  }
}
