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
 * JSON as upstream sent it. A whole number that a double would change stands as its digits: ids of webhook deliveries are
 * above 2^53. @throws SyntaxError
 */
export function parseExactly(text: string): Json {
  // Looked for first: a reviver costs several times the parsing.
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key: string, value: Json, context?: { source?: string }): Json {
  const digits = typeof value === "number" && !Number.isSafeInteger(value) ? context?.source : undefined;
  return digits !== undefined && /^-?\d+$/.test(digits) ? digits : value;
}

/** The value of a text that we stored as JSON. */
export function parseStored<Value>(text: string): Value {
  // No type can say what a text holds: it is what its one writer put there.
  return JSON.parse(text);
}
