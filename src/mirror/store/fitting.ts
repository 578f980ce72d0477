import type { ColumnType } from "../../../db/schema/columns.ts";
import type { Json } from "../../json.ts";

/**
 * The value that a search column holds of what upstream sent. Columns are for searching and ordering; the document
 * keeps what was sent, and is what callers are shown. So no value is a reason not to store a row. A value beyond the
 * column's range becomes the nearest in it, and one of another type null, or the least value where null cannot stand.
 * Pure.
 */
export function fitting(value: Json, { type, isNullable, isIndexed }: ColumnType): Json {
  if (value === null && isNullable) return null;
  switch (type) {
    case "integer":
      return wholeWithin(value, -(2 ** 31), 2 ** 31 - 1) ?? (isNullable ? null : 0);
    case "bigint":
      return wholeWithin(value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) ?? (isNullable ? null : 0);
    case "boolean":
      return typeof value === "boolean" ? value : isNullable ? null : false;
    case "timestamptz":
      return typeof value === "string" ? timeWithin(value, isNullable) : isNullable ? null : FIRST;
    default:
      return isIndexed ? fittingKey(value) : value;
  }
}

/**
 * Postgres refuses a row of an index beyond 2,704 bytes. A character of UTF-16 takes three bytes of UTF-8 at most, also
 * in another case. Upstream's longest is the name of a branch: 255 bytes.
 */
export const LONGEST_KEY = 512;

/** A text of upstream's that is part of an index. Pure. */
export function fittingKey<Value extends Json>(value: Value): Value | string {
  return typeof value === "string" && value.length > LONGEST_KEY ? value.slice(0, LONGEST_KEY) : value;
}

/** A time of upstream's that stands beside columns in a question to Postgres. Null: it is none. Pure. */
export function fittingTime(value: string | null): string | null {
  return value === null ? null : timeWithin(value, true);
}

function wholeWithin(value: Json, least: number, most: number): number | null {
  if (typeof value !== "number" && !(typeof value === "string" && /^-?\d+$/.test(value))) return null;
  return Math.min(Math.max(Math.trunc(Number(value)), least), most);
}

const FIRST = "0001-01-01T00:00:00Z";
const LAST = "9999-12-31T23:59:59Z";
/** A date that Postgres reads as JavaScript does. */
const PLAIN = /^[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T\d\d:\d\d:\d\dZ$/;

/** JavaScript reads the 30th of February as the 2nd of March, and knows a year 0. Postgres refuses both. */
function timeWithin(text: string, isNullable: boolean): string | null {
  if (PLAIN.test(text) && !Number.isNaN(Date.parse(text))) return text;
  const time = Date.parse(text);
  if (Number.isNaN(time)) return isNullable ? null : FIRST;
  return time < Date.parse(FIRST) ? FIRST : time > Date.parse(LAST) ? LAST : new Date(time).toISOString();
}
