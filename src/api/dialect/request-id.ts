import { randomBytes } from "node:crypto";

/** Requests that share all but the last digits. To draw each anew would take longer than the rest of a 304. */
const SERIES = 0x10000;
let series = "";
let last = SERIES;

/** Names a request, in the service's form. */
export function newRequestId(): string {
  last += 1;
  if (last >= SERIES) {
    const drawn = randomBytes(14).toString("hex").toUpperCase();
    series = `${drawn.slice(0, 4)}:${drawn.slice(4, 10)}:${drawn.slice(10, 16)}:${drawn.slice(16, 24)}:${drawn.slice(24)}`;
    last = 0;
  }
  const digits = last.toString(16).toUpperCase();
  return series + "000".slice(digits.length - 1) + digits;
}
