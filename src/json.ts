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

/** The value of a text that we stored as JSON. */
export function parseStored<Value>(text: string): Value {
  // No type can say what a text holds: it is what its one writer put there.
  return JSON.parse(text);
}
