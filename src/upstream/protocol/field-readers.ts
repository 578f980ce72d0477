import { digitsOf, type Fields, isObject, type Json, textOf, wholeOf } from "../../json.ts";
import { UpstreamUnavailableError } from "./errors.ts";

/**
 * Reads a part of a GraphQL answer. A null that `errors` explain is the caller's to look for first.
 * @throws UpstreamUnavailableError when upstream answered something else than the document asks for
 */
export type FieldReader<Value> = (value: Json | undefined, name: string) => Value;
export type Read<Of> = Of extends FieldReader<infer Value> ? Value : never;

export const text: FieldReader<string> = required(textOf, "text");
export const whole: FieldReader<number> = required(wholeOf, "whole number");
/** An id in digits, which is a key. No number beyond 2^53 can be one. */
export const key: FieldReader<number> = required((value) => {
  const number = Number(digitsOf(value) ?? Number.NaN);
  return Number.isSafeInteger(number) ? number : null;
}, "key");
export const truth: FieldReader<boolean> = required(
  (value) => (typeof value === "boolean" ? value : null),
  "true or false",
);
const fieldsOf: FieldReader<Fields> = required((value) => (isObject(value) ? value : null), "object");
const rowsOf: FieldReader<Json[]> = required((value) => (Array.isArray(value) ? value : null), "list");

function required<Value>(readValue: (value: Json | undefined) => Value | null, what: string): FieldReader<Value> {
  return (value, name) => {
    const found = readValue(value);
    if (found !== null) return found;
    throw new UpstreamUnavailableError(`GraphQL: upstream's answer has no ${what} as ${name}`, "unreadable");
  };
}

/** A value that is stored or compared as it came. */
export function asSent(value: Json | undefined): Json {
  return value ?? null;
}

export function nullable<Value>(read: FieldReader<Value>): FieldReader<Value | null> {
  return (value, name) => (value === null ? null : read(value, name));
}

/** A field that only some types of the object have. */
export function optional<Value>(read: FieldReader<Value>): FieldReader<Value | null> {
  return (value, name) => (value === undefined || value === null ? null : read(value, name));
}

export function list<Value>(read: FieldReader<Value>): FieldReader<Value[]> {
  return (value, name) => rowsOf(value, name).map((row) => read(row, name));
}

/** Each row of a list by itself; null stands for a row that cannot be read. One such row concerns no other. */
export function eachOf<Value>(read: FieldReader<Value>): FieldReader<(Value | null)[]> {
  return (value, name) => rowsOf(value, name).map((row) => readableRows(read, row, name));
}

/** The value, or null if it cannot be read: upstream shows null where its schema has none, for single rows. */
export function readableRows<Value>(read: FieldReader<Value>, value: Json | undefined, name: string): Value | null {
  try {
    return read(value, name);
  } catch (error) {
    if (error instanceof UpstreamUnavailableError && error.outage === "unreadable") return null;
    throw error;
  }
}

export function object<Value extends object>(
  readers: { [Key in keyof Value]: FieldReader<Value[Key]> },
): FieldReader<Value> {
  return (value, name) => {
    const fields = fieldsOf(value, name);
    const found = { ...readers } as Record<keyof Value, unknown>;
    for (const key in readers) found[key] = readers[key](fields[key], key);
    // Each key has what its own reader answers.
    return found as Value;
  };
}

/** The page of a list that says where the next page begins. */
export const pageInfo = object({ hasNextPage: truth, endCursor: nullable(text) });
type ReadPageInfo = Read<typeof pageInfo>;

/**
 * Whether the page speaks of a next one and names no place behind its own, so that a walk would never end.
 * @param after the cursor that the page was asked for with
 */
export function goesNowhere({ hasNextPage, endCursor }: ReadPageInfo, after: string | null): boolean {
  return hasNextPage && (endCursor === null || endCursor === after);
}

/** The cursor of the next page; null: there is none. @throws UpstreamUnavailableError for one that goes nowhere */
export function nextCursor(page: ReadPageInfo, after: string | null): string | null {
  if (!goesNowhere(page, after)) return page.hasNextPage ? page.endCursor : null;
  throw new UpstreamUnavailableError(
    "GraphQL: upstream's page names itself as the page that comes after it",
    "unreadable",
  );
}
