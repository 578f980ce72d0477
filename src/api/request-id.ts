import { randomBytes } from "node:crypto";

const DIGITS = 32;
// Drawn for many at once: a draw for each request would take longer than the rest of a 304.
const DRAWN = 256;
let digits = "";
let used = 0;

/** Names a request, in the service's form. */
export function newRequestId(): string {
  if (used === digits.length) {
    digits = randomBytes((DIGITS / 2) * DRAWN)
      .toString("hex")
      .toUpperCase();
    used = 0;
  }
  const at = used;
  used += DIGITS;
  return `${digits.slice(at, at + 4)}:${digits.slice(at + 4, at + 10)}:${digits.slice(at + 10, at + 16)}:${digits.slice(at + 16, at + 24)}:${digits.slice(at + 24, used)}`;
}
