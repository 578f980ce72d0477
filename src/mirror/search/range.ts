/** Ranges as searches write them: `>=5`, `<2026-01-01`, `10..20`, `*..2026-01-01T10:00:00Z`, or a value alone. Pure. */
import { InvalidSearchError } from "./query.ts";

/** From `from` on, and before `until`; null is no bound. */
export interface Range<Value> {
  from: Value | null;
  until: Value | null;
}

/** What one value covers: a date its whole day, a time its second, a number itself. */
type Extent<Value> = (text: string) => { from: Value; until: Value };

/** @throws InvalidSearchError if it is no number */
export function numberRange(text: string): Range<number> {
  return range(text, (number) => {
    if (!/^\d{1,9}$/.test(number)) throw new InvalidSearchError(`"${number}" is not a number.`);
    return { from: Number(number), until: Number(number) + 1 };
  });
}

/** Times without a zone are UTC. @throws InvalidSearchError if it is no date */
export function timeRange(text: string): Range<Date> {
  return range(text, timeExtent);
}

function range<Value>(text: string, extent: Extent<Value>): Range<Value> {
  const [, sign, bound] = /^(>=|<=|>|<)(.*)$/s.exec(text) ?? [];
  if (bound !== undefined) {
    const { from, until } = extent(bound.trim());
    if (sign === ">=") return { from, until: null };
    if (sign === ">") return { from: until, until: null };
    return { from: null, until: sign === "<" ? from : until };
  }
  const [, low, high] = /^(.+?)\.\.(.+)$/s.exec(text) ?? [];
  if (low !== undefined && high !== undefined) {
    return { from: low === "*" ? null : extent(low).from, until: high === "*" ? null : extent(high).until };
  }
  return extent(text);
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|[+ -]\d\d:?\d\d)?)?$/i;

/** A day or a moment of ISO 8601. Without a zone it is UTC's, wherever this machine stands. Null: it is neither. */
export function readTime(text: string): { at: Date; isDay: boolean } | null {
  const [, day, minutes, seconds = ":00", fraction = "", zone = "Z"] = TIME.exec(text) ?? [];
  // A "+" that was not percent-encoded has become a blank.
  const offset = zone
    .replace(" ", "+")
    .replace(/^([+-]\d\d)(\d\d)$/, "$1:$2")
    .toUpperCase();
  const isDay = minutes === undefined;
  const at = new Date(isDay ? `${day}T00:00:00Z` : `${day}T${minutes}${seconds}${fraction}${offset}`);
  return Number.isNaN(at.getTime()) ? null : { at, isDay };
}

function timeExtent(text: string): { from: Date; until: Date } {
  const read = readTime(text);
  if (read === null) {
    throw new InvalidSearchError(
      `"${text}" is not a recognized date/time format. Please provide an ISO 8601 date/time value, such as YYYY-MM-DD.`,
    );
  }
  const { at, isDay } = read;
  const from = new Date(Math.floor(at.getTime() / 1_000) * 1_000);
  return { from, until: new Date(from.getTime() + (isDay ? 86_400_000 : 1_000)) };
}
