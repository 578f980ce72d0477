import pg from "pg";
import { type Given, listOf, UsageError } from "../terminal/command.ts";
import { plain, tableLines } from "../terminal/output.ts";
import { openParquet } from "./parquet.ts";
import { ARRAYS, type Batch, NUMBERS, readTexts } from "./reading.ts";
import type { RowWriter } from "./sink.ts";

export const FORMATS = ["table", "csv", "jsonl", "parquet"] as const;
type Format = (typeof FORMATS)[number];

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

/** @throws UsageError where bytes that are no text would reach a terminal */
export function refuseBytes({ streams }: Pick<Given, "streams">, format: Format): void {
  if (format === "parquet" && streams?.stdout.isTTY)
    throw new UsageError("Parquet is for programs, and the output is a terminal: send it to a file with > FILE");
}

export async function openWriter(format: Format): Promise<RowWriter> {
  const ofText = (take: (batch: Batch) => string): RowWriter => ({ take, end: () => "" });
  switch (format) {
    case "table":
      return ofText(tableWriter());
    case "csv":
      return ofText(csvWriter());
    case "jsonl":
      return ofText(jsonlText);
    case "parquet":
      return await openParquet();
    default:
      return format satisfies never;
  }
}

/** Longer values are cut in a table. */
const MOST_SHOWN = 80;

/** Columns are as wide as the first batch needs. */
function tableWriter(): (batch: Batch) => string {
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
function csvWriter(): (batch: Batch) => string {
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
