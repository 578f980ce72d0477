import { text as textOf } from "node:stream/consumers";
import { type Command, type Given, UsageError } from "../terminal/command.ts";
import { counted, type Output } from "../terminal/output.ts";
import { FORMATS, openWriter, readFormat, refuseBytes } from "./formats.ts";
import { runPsql } from "./psql.ts";
import { openReader, readRows } from "./reading.ts";
import { standardSink, writeRows } from "./sink.ts";

export const sql: Command = {
  name: "sql",
  takes: "[QUERY]",
  values: { format: { takes: "FORMAT", about: "table, csv, jsonl or parquet (default: table; with --json jsonl)" } },
  about: `
Runs one query with the rights of tain_reader, which only reads. Without a query it takes one from
the input, and at a terminal it starts psql. Names are found in tain_v1 first: issues is the view
of issues. Times are UTC. docs/sql.md has the views and common questions.`,
  run: runSql,
};

/** Behind blanks and comments. */
const IS_COPY = /^(?:\s|--[^\n]*(?:\n|$)|\/\*(?:[^*]|\*(?!\/))*\*\/)*copy\b/i;

async function runSql(given: Given, output: Output): Promise<number> {
  const { words, flags, values, env, resources, streams } = given;
  const [word, ...more] = words;
  if (more.length > 0) throw new UsageError("tain sql takes one query: put it in quotes");
  const format = readFormat(values.get("format"), FORMATS, flags.has("json") ? "jsonl" : "table");
  const stdin = streams?.stdin;
  if (word === undefined && (stdin === undefined || stdin.isTTY)) return await runPsql(env);
  refuseBytes(given, format);
  const query = word ?? (stdin ? await textOf(stdin) : "");
  if (query.trim() === "") throw new UsageError("tain sql needs a query: tain sql 'select count(*) from issues'");
  // The driver's cursor cannot read what a copy sends.
  if (IS_COPY.test(query)) throw new UsageError("tain sql runs no copy: write the query alone, and --format csv");
  const client = await openReader(env, resources);
  const rows = await writeRows(readRows(client, query), await openWriter(format), standardSink(given));
  if (format === "table" && rows !== null) output.note(`(${counted(rows, "row")})`);
  return 0;
}
