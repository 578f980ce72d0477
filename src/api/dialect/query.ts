import { type FieldFault, invalid } from "./fault.ts";

// Query parameters as the service reads them. Pure.

const DEFAULT_PAGE_SIZE = 30;
const MAX_PAGE_SIZE = 100;
/** The last page. `offset` is a 64-bit number in Postgres, and pages beyond this one are just as empty. */
const MAX_PAGE = 1_000_000_000;

/**
 * The parameters of these names, each as it stands first. A parameter that an operation does not know changes no
 * answer, so it may not be part of the name of a page, a validator or a question to upstream.
 */
export function knownQuery(asked: URLSearchParams, known: ReadonlySet<string>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of asked) if (known.has(name) && !query.has(name)) query.append(name, value);
  return query;
}

/** The page's size. Larger values are silently reduced; a value that is no number counts as absent. */
export function pageSize(query: URLSearchParams): number {
  return Math.min(wholeNumber(query.get("per_page")) ?? DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

export function pageNumber(query: URLSearchParams): number {
  return Math.min(wholeNumber(query.get("page")) ?? 1, MAX_PAGE);
}

/** The number that a value begins with, as the service reads it: some clients ask for `page=4?state=all`. */
function wholeNumber(text: string | null): number | null {
  const [, digits = "0"] = /^\s*\+?(\d+)/.exec(text ?? "") ?? [];
  const value = Number(digits);
  return value > 0 ? value : null;
}

/**
 * One word of a closed set, or the set's first word if the value is absent or empty. @throws ApiFault 422 for other
 * words
 */
export function choice<T extends string>(
  query: URLSearchParams,
  name: string,
  resource: string,
  values: readonly [T, ...T[]],
): T {
  const text = query.get(name);
  if (text === null || text === "") return values[0];
  const value = values.find((candidate) => candidate === text);
  if (value === undefined) throw invalid({ value: text, resource, field: name, code: "invalid" });
  return value;
}

/** The direction, `asc` or `desc`. Null: it is absent. @throws ApiFault 422 for anything else */
export function directionParameter(query: URLSearchParams, resource: string): "asc" | "desc" | null {
  return query.get("direction") ? choice<"asc" | "desc">(query, "direction", resource, ["desc", "asc"]) : null;
}

/** A time. Null: it is absent or empty. @throws ApiFault 422 for what is no time */
export function moment(query: URLSearchParams, name: string, resource: string): Date | null {
  const text = query.get(name);
  if (text === null || text === "") return null;
  // The "+" of a time zone becomes a blank if it was not percent-encoded.
  const at = new Date(text.replace(/ (\d\d:?\d\d)$/, "+$1"));
  const fault: FieldFault = { value: text, resource, field: name, code: "invalid" };
  if (Number.isNaN(at.getTime()) || Math.abs(at.getUTCFullYear()) > 9_999) throw invalid(fault);
  return at;
}

// Writes `Link` as the service does. Pure.

/** The place of a page among the others of its list. `last` is the number of the last page. */
export interface NumberedPage {
  page: number;
  last: number;
}

/**
 * The links of a numbered page. First page: next, last. Last page: prev, first. In between: all four. Null: there is
 * one page.
 */
export function numberedLink(address: string, query: URLSearchParams, { page, last }: NumberedPage): string | null {
  const links: string[] = [];
  const add = (rel: string, number: number) => links.push(link(address, query, { page: String(number) }, rel));
  if (page > 1) add("prev", Math.min(page - 1, Math.max(last, 1)));
  if (page < last) {
    add("next", page + 1);
    add("last", last);
  }
  if (page > 1) add("first", 1);
  return links.length > 0 ? links.join(", ") : null;
}

/** The links of a page that is found by cursor. The service names neither a first nor a last page. */
export function cursorLink(
  address: string,
  query: URLSearchParams,
  { page, next, previous }: { page: number; next: string | null; previous: string | null },
): string | null {
  const links: string[] = [];
  if (next !== null) links.push(link(address, query, { after: next, page: String(page + 1) }, "next"));
  if (previous !== null)
    links.push(link(address, query, { before: previous, page: String(Math.max(1, page - 1)) }, "prev"));
  return links.length > 0 ? links.join(", ") : null;
}

const POSITIONS = new Set(["page", "after", "before"]);

/** One link: the query's own parameters in their order, then the new position. */
function link(address: string, query: URLSearchParams, position: Record<string, string>, rel: string): string {
  const asked = new URLSearchParams([...query].filter(([name]) => !POSITIONS.has(name)));
  for (const [name, value] of Object.entries(position)) asked.append(name, value);
  return `<${address}?${asked}>; rel="${rel}"`;
}
