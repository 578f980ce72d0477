import { type Fields, isObject, type Json } from "../../src/json.ts";
import type { Answered } from "../support/asking.ts";
import type { Exchange } from "./exchanges.ts";

/** One thing in which the mirror's answer is not what was recorded. */
export interface Difference {
  /** `status`, `header etag`, `.user.login`, `.items[].score` … */
  at: string;
  /**
   * What differs there. "rows": the recorded rows that are missing, and those that are more. "order": of keys or rows.
   */
  in: "missing" | "added" | "value" | "rows" | "order";
  recorded: unknown;
  answered: unknown;
}

/** All differences of the status, of the body by its keys, their values and order, and of the headers. */
export function differencesOf({ status, headers, body }: Exchange, answered: Answered): Difference[] {
  const found: Difference[] = [];
  if (status !== answered.status) found.push(difference("status", "value", status, answered.status));
  found.push(...bodyDifferences(body === "" ? null : (body as Json), answered.body as Json));
  const names = new Set([...Object.keys(headers), ...answered.headers.keys()]);
  for (const name of names) {
    const [recorded, shown] = [comparable(name, headers[name]), comparable(name, answered.headers.get(name))];
    if (recorded === shown) continue;
    const how = shown === undefined ? "missing" : recorded === undefined ? "added" : "value";
    found.push(difference(`header ${name}`, how, recorded, shown));
  }
  return found;
}

/** The differences of the body alone. */
export function bodyDifferences(recorded: Json, answered: Json): Difference[] {
  const found: Difference[] = [];
  compareJson(recorded, answered, "", found);
  return found;
}

/** Headers whose values no two answers share. That they are there is compared. */
const OF_ITS_MOMENT =
  /^(date|content-length|x-github-request-id|x-ratelimit-(remaining|reset|used)|x-runtime-rack|x-served-by)$/;

/** Of an ETag only the form is compared: its value depends on the token. */
function comparable(name: string, value: string | null | undefined): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (name === "etag") return value.startsWith("W/") ? "weak" : "strong";
  return OF_ITS_MOMENT.test(name) ? "any" : value.replace(/,(?! )/g, ", ");
}

function difference(at: string, how: Difference["in"], recorded: unknown, answered: unknown): Difference {
  return { at, in: how, recorded, answered };
}

function compareJson(recorded: Json, answered: Json, at: string, found: Difference[]): void {
  if (Array.isArray(recorded) && Array.isArray(answered)) {
    compareRows(recorded, answered, at, found);
    return;
  }
  if (!isObject(recorded) || !isObject(answered)) {
    if (recorded !== answered) found.push(difference(at, "value", recorded, answered));
    return;
  }
  for (const key of Object.keys(recorded))
    if (!(key in answered)) found.push(difference(`${at}.${key}`, "missing", recorded[key], undefined));
  for (const key of Object.keys(answered))
    if (!(key in recorded)) found.push(difference(`${at}.${key}`, "added", undefined, answered[key]));
  const shared = (one: Fields, other: Fields) => Object.keys(one).filter((key) => key in other);
  const [keys, theirs] = [shared(recorded, answered), shared(answered, recorded)];
  if (keys.join() !== theirs.join()) found.push(difference(at, "order", keys, theirs));
  for (const key of keys) compareJson(recorded[key] as Json, answered[key] as Json, `${at}.${key}`, found);
}

function compareRows(recorded: Json[], answered: Json[], at: string, found: Difference[]): void {
  const [theirs, ours] = [recorded.map(nameOf), answered.map(nameOf)];
  const missing = theirs.filter((name) => !ours.includes(name));
  const added = ours.filter((name) => !theirs.includes(name));
  if (missing.length + added.length > 0) found.push(difference(`${at}[]`, "rows", missing, added));
  const [kept, shown] = [theirs.filter((name) => ours.includes(name)), ours.filter((name) => theirs.includes(name))];
  if (kept.join() !== shown.join()) found.push(difference(`${at}[]`, "order", kept, shown));
  for (const name of new Set(kept))
    compareJson(recorded[theirs.indexOf(name)] as Json, answered[ours.indexOf(name)] as Json, `${at}[]`, found);
}

/** What names a row: its id, or all of it. */
function nameOf(row: Json): string {
  return isObject(row) && row.id !== undefined ? String(row.id) : JSON.stringify(row);
}
