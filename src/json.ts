/** JSON, read field by field: what has another type than its sender promises is as good as missing. */
export type Json = string | number | boolean | null | Json[] | Fields;
/** A type and no interface, so that an object literal is one. */
export type Fields = { [key: string]: Json };

export function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Without fields where it is no object. */
export function objectOf(value: Json | undefined): Fields {
  return isObject(value) ? value : {};
}

/** The objects of a list. */
export function rowsOf(value: Json | undefined): Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function textOf(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}

export function numberOf(value: Json | undefined): number | null {
  return typeof value === "number" ? value : null;
}

export function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** An id, as its digits: some are larger than any exact number. */
export function digitsOf(value: Json | undefined): string | null {
  return typeof value === "number" ? String(value) : textOf(value);
}

/**
 * JSON as upstream sent it. A whole number that a double would change stands as its digits: ids of webhook deliveries
 * are above 2^53. @throws SyntaxError
 */
export function parseExactly(text: string): Json {
  // Looked for first: a reviver costs several times the parsing.
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key: string, value: Json, context?: { source?: string }): Json {
  const digits = typeof value === "number" && !Number.isSafeInteger(value) ? context?.source : undefined;
  return digits !== undefined && /^-?\d+$/.test(digits) ? digits : value;
}

/** JSON that a caller sent has more values than anybody needs. */
export class TooManyValuesError extends Error {
  override name = "TooManyValuesError";
}

/** A MiB of nothing but keys or brackets takes 100 ms to parse; this many values take 10. */
const MOST_VALUES = 10_000;

/** JSON that a caller sent. @throws SyntaxError, TooManyValuesError */
export function parseSent(text: string): Json {
  if (!hasAtMost(text, MOST_VALUES)) throw new TooManyValuesError(`More than ${MOST_VALUES} values`);
  return JSON.parse(text);
}

const [QUOTE, BACKSLASH, COMMA, LIST, OBJECT] = Array.from('"\\,[{', (one) => one.charCodeAt(0));

/** Each value but the first follows a comma or a bracket. */
function hasAtMost(text: string, most: number): boolean {
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfText(text, at);
      if (at < 0) return true;
    } else if (code === COMMA || code === LIST || code === OBJECT) {
      count += 1;
      if (count > most) return false;
    }
  }
  return true;
}

/** Where the quote stands that ends the text; -1: there is none. */
function endOfText(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at > 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
  return -1;
}

/** The value of a text that we stored as JSON. */
export function parseStored<Value>(text: string): Value {
  // No type can say what a text holds: it is what its one writer put there.
  return JSON.parse(text);
}
