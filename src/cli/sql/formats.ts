import pg from "pg";
import { listOf, UsageError } from "../terminal/command.ts";
import { plain, tableLines } from "../terminal/output.ts";
import type { Batch } from "./reading.ts";

export const FORMATS = ["table", "csv", "jsonl"] as const;
export type Format = (typeof FORMATS)[number];

/** Pure. @throws UsageError */
export function readFormat<Name extends Format>(
  text: string | undefined,
  formats: readonly Name[],
  otherwise: Name,
): Name {
  if (text === undefined) return otherwise;
  const format = formats.find((each) => each === text);
  if (format === undefined) throw new UsageError(`--format takes ${listOf(formats, "or")}, and not ${text}`);
  return format;
}

/** Makes text of the batches of one answer, in order. Each line ends with a line break. */
export type RowWriter = (batch: Batch) => string;

export function openWriter(format: Format): RowWriter {
  switch (format) {
    case "table":
      return tableWriter();
    case "csv":
      return csvWriter();
    case "jsonl":
      return jsonlText;
    default:
      return format satisfies never;
  }
}

/** Longer values are cut in a table. */
const MOST_SHOWN = 80;

/** Columns are as wide as the first batch needs. */
function tableWriter(): RowWriter {
  let widths: readonly number[] | undefined;
  return ({ fields, rows }) => {
    const names = fields.map(({ name }) => plain(name));
    const shown = rows.map((row) => row.map((value) => shownValue(value ?? "")));
    if (widths === undefined) {
      widths = names.map((name, at) => Math.max(name.length, ...shown.map((row) => row[at]?.length ?? 0)));
      return names.length === 0 ? "" : `${tableLines(names, shown)}\n`;
    }
    const width = widths;
    return shown
      .map(
        (row) =>
          `${row
            .map((value, at) => value.padEnd(width[at] ?? 0))
            .join("  ")
            .trimEnd()}\n`,
      )
      .join("");
  };
}

function shownValue(value: string): string {
  const line = plain(value.replaceAll(/\s*[\r\n]\s*/g, " "));
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN - 1)}…` : line;
}

/** As `copy … (format csv, header)` writes it: null is empty, and an empty text is quoted. */
function csvWriter(): RowWriter {
  let isBegun = false;
  return ({ fields, rows }) => {
    const head = isBegun ? [] : [fields.map(({ name }) => name)];
    isBegun = true;
    return [...head, ...rows].map((row) => `${row.map(csvValue).join(",")}\n`).join("");
  };
}

function csvValue(value: string | null): string {
  if (value === null) return "";
  return value === "" || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/** An object a line. Numbers keep all their digits, times are ISO 8601, arrays of simple values are arrays. */
function jsonlText({ fields, rows }: Batch): string {
  const keys = fields.map(({ name }) => JSON.stringify(name));
  return rows
    .map(
      (row) => `{${row.map((value, at) => `${keys[at]}:${jsonValue(value, fields[at]?.dataTypeID ?? 0)}`).join()}}\n`,
    )
    .join("");
}

const { builtins } = pg.types;
const NUMBERS: ReadonlySet<number> = new Set([
  ...[builtins.INT2, builtins.INT4, builtins.INT8, builtins.OID],
  ...[builtins.FLOAT4, builtins.FLOAT8, builtins.NUMERIC],
]);
const TEXT_ARRAY: number = 1009;
/** The type of an array, and that of its members. */
const ARRAYS: ReadonlyMap<number, number> = new Map([
  [1000, builtins.BOOL],
  [1005, builtins.INT2],
  [1007, builtins.INT4],
  [TEXT_ARRAY, builtins.TEXT],
  [1015, builtins.VARCHAR],
  [1016, builtins.INT8],
  [1185, builtins.TIMESTAMPTZ],
]);
const readTexts: (text: string) => unknown = pg.types.getTypeParser(TEXT_ARRAY);

function jsonValue(value: string | null, type: number): string {
  if (value === null) return "null";
  const member = ARRAYS.get(type);
  if (member !== undefined) return jsonArray(readTexts(value), member);
  if (NUMBERS.has(type) && /\d$/.test(value)) return value;
  if (type === builtins.BOOL) return value === "t" ? "true" : "false";
  // Line breaks stand between values alone.
  if (type === builtins.JSON || type === builtins.JSONB) return value.replaceAll(/[\r\n]+/g, " ");
  if (type === builtins.TIMESTAMPTZ || type === builtins.TIMESTAMP)
    return JSON.stringify(value.replace(" ", "T").replace(/\+00$/, "Z"));
  return JSON.stringify(value);
}

function jsonArray(value: unknown, member: number): string {
  if (!Array.isArray(value)) return jsonValue(typeof value === "string" ? value : null, member);
  return `[${value.map((one: unknown) => jsonArray(one, member)).join()}]`;
}
