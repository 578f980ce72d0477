/** Single rows of answers that are odd on purpose, while everything around them is as it should be. */
import { isJsonObject } from "../world/json.ts";

/**
 * The row is known by fields of its own, as the answer shows them. It is changed wherever it stands in the answer: as
 * the whole, in a list, in `nodes` of GraphQL, embedded in another row.
 *
 * - null: null stands in its place.
 * - hidden: lists leave it out, as while a replica has not heard of it.
 * - without: `keys` are left out of it.
 * - with: `fields` stand in it instead of its own; `digits` are numbers that no double holds, digit by digit.
 */
export interface RowFault {
  /** A regular expression for `METHOD /path?query`, for GraphQL `POST /graphql`; absent: every request. */
  readonly match?: string;
  readonly where: Readonly<Record<string, unknown>>;
  readonly kind: "null" | "hidden" | "without" | "with";
  readonly keys?: readonly string[];
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly digits?: Readonly<Record<string, string>>;
  /** For GraphQL: an error names the place of the row, with this message. */
  readonly error?: string;
}

export const ROW_KINDS = ["null", "hidden", "without", "with"] as const satisfies readonly RowFault["kind"][];

/** The answer's text, with its rows spoilt by these faults. Pure. */
export function spoilt(body: unknown, faults: readonly RowFault[]): string {
  const errors: { path: (string | number)[]; message: string }[] = [];
  const hasAll = (row: Record<string, unknown>, { where }: RowFault) =>
    Object.entries(where).every(([key, value]) => JSON.stringify(row[key]) === JSON.stringify(value));
  const walk = (value: unknown, path: (string | number)[]): unknown => {
    if (Array.isArray(value)) {
      const shown = value.map((one, at) => walk(one, [...path, at]));
      return shown.filter((one) => one !== HIDDEN);
    }
    // An id of digits that no double holds, as `JSON.rawJSON` makes it, is no row.
    if (!isJsonObject(value) || "rawJSON" in value) return value;
    const own = faults.filter((fault) => hasAll(value, fault));
    for (const { error } of own) if (error !== undefined) errors.push({ path, message: error });
    if (own.some(({ kind }) => kind === "hidden") && typeof path.at(-1) === "number") return HIDDEN;
    if (own.some(({ kind }) => kind === "null")) return null;
    const row: Record<string, unknown> = {};
    for (const [key, one] of Object.entries(value)) {
      if (own.some(({ kind, keys }) => kind === "without" && keys?.includes(key))) continue;
      row[key] = walk(one, [...path, key]);
    }
    for (const { fields, digits } of own) {
      Object.assign(row, fields);
      for (const [key, number] of Object.entries(digits ?? {})) row[key] = `\0digits ${number}\0`;
    }
    return row;
  };
  const isGraphql = isJsonObject(body) && isJsonObject(body.data);
  const answer = isGraphql ? { ...body, data: walk(body.data, []) } : walk(body, []);
  if (isGraphql && errors.length > 0 && isJsonObject(answer)) {
    const given = Array.isArray(body.errors) ? body.errors : [];
    answer.errors = [...given, ...errors];
  }
  return withDigits(JSON.stringify(answer));
}

const HIDDEN = Symbol("hidden");

/** Digits were marked as texts, since no number of JavaScript holds them. */
function withDigits(text: string): string {
  return text.replace(/"\\u0000digits (-?\d+)\\u0000"/g, "$1");
}
