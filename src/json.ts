/** JSON, read field by field. A field with an unexpected type is treated as missing. */
export type Json = string | number | boolean | null | Json[] | Fields;
/** A type alias, since TypeScript does not assign an interface's value to an index signature. */
export type Fields = { [key: string]: Json };

export function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; an empty object if it is none. */
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

/** A whole number that a double holds exactly, as upstream's ids and numbers are. */
export function wholeOf(value: Json | undefined): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}

export function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** An id as a string of digits, because some ids are above 2^53 and a number would round them. */
export function digitsOf(value: Json | undefined): string | null {
  return typeof value === "number" ? String(value) : textOf(value);
}

/**
 * JSON as upstream sent it. A whole number that a double would change stands as its digits: ids of webhook deliveries
 * are above 2^53. @throws SyntaxError
 */
export function parseExactly(text: string): Json {
  // The test comes first because parsing with a reviver takes several times as long.
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key: string, value: Json, context?: { source?: string }): Json {
  const digits = typeof value === "number" && !Number.isSafeInteger(value) ? context?.source : undefined;
  return digits !== undefined && /^-?\d+$/.test(digits) ? digits : value;
}

/** A caller's JSON has more values than any request needs. */
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

/** The index of the quote that ends the string; -1 if none does. */
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
