/** JSON, read field by field. A field with an unexpected type is treated as missing. */
export type Json = string | number | boolean | null | Json[] | Fields;
/** A type alias, since TypeScript does not assign an interface's value to an index signature. */
export type Fields = { [key: string]: Json };

declare global {
  interface JSON {
    // ECMAScript's, which TypeScript's libraries do not declare yet.
    rawJSON(text: string): object;
    isRawJSON(value: unknown): value is { rawJSON: string };
  }
}

export function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
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
  return typeof value === "number" ? String(value) : (largeNumber(value) ?? textOf(value));
}

/** The digits of a number that a double would change; null: the value is anything else. */
export function largeNumber(value: Json | undefined): string | null {
  return JSON.isRawJSON(value) ? value.rawJSON : null;
}

/**
 * JSON as upstream sent it. A number that a double would change keeps its digits, up to 64 of them, and is written as it
 * came: see `largeNumber`. Ids of webhook deliveries are above 2^53, and people write fractions. @throws SyntaxError
 */
export function parseExactly(text: string): Json {
  // The test comes first because parsing with a reviver takes several times as long.
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key: string, value: Json, context?: { source?: string }): Json {
  const digits = typeof value === "number" && !Number.isSafeInteger(value) ? context?.source : undefined;
  // No type of JSON's is such a number. Whoever looks for an object finds none: see `isObject`.
  return digits !== undefined && isChanged(digits) ? (JSON.rawJSON(digits) as unknown as Json) : value;
}

/** Of a fraction it depends on its own digits alone: what stands beside it decides only whether anybody looks. */
function isChanged(digits: string): boolean {
  if (/^-?\d{1,64}$/.test(digits)) return true;
  return /^-?\d{1,64}\.\d{16,64}$/.test(digits) && String(Number(digits)) !== digits;
}

/** The value of a text that we stored as JSON. */
export function parseStored<Value>(text: string): Value {
  // No type can say what a text holds: it is what its one writer put there.
  return JSON.parse(text);
}
