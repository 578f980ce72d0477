import { getViewConfig } from "drizzle-orm/pg-core";
import * as views from "../../../db/schema/views.ts";
import { type Command, CommandError, type Given, listOf, UsageError } from "../terminal/command.ts";
import { counted, type Output } from "../terminal/output.ts";
import { readNames } from "../terminal/patterns.ts";
import { openWriter, readFormat, refuseBytes } from "./formats.ts";
import { openReader, readRows } from "./reading.ts";
import { fillFile, type Sink, standardSink, writeRows } from "./sink.ts";

/** What can be exported: the views. */
const KINDS: readonly string[] = Object.values(views).map((view) => getViewConfig(view).name);

export const exportRows: Command = {
  name: "export",
  takes: "KIND",
  values: {
    format: { takes: "FORMAT", about: "csv, jsonl or parquet (default: csv; with --json jsonl)" },
    repo: { takes: "NAME", about: "of this repository only: owner/name" },
    output: { takes: "FILE", about: "write to this file, which has its name once it is whole" },
  },
  about: `
Writes all rows of one view of tain_v1, as they are at one moment, in no order. KIND is one of
${wrapped(KINDS)}.
Rows pass through: memory does not grow with them. docs/sql.md has the views.`,
  run: runExport,
};

async function runExport(given: Given, output: Output): Promise<number> {
  const { words, flags, values, env, resources } = given;
  const [kind, ...more] = words;
  if (kind === undefined || more.length > 0 || !KINDS.includes(kind)) {
    const said =
      kind === undefined ? "needs to know what" : more.length > 0 ? "takes one kind" : `does not know ${kind}`;
    throw new UsageError(`tain export ${said}: ${listOf(KINDS, "or")}`);
  }
  const format = readFormat(values.get("format"), ["csv", "jsonl", "parquet"], flags.has("json") ? "jsonl" : "csv");
  const [name] = readNames(values.has("repo") ? [values.get("repo") ?? ""] : []);
  if (name !== undefined && kind === "users")
    throw new UsageError("tain export users is of all repositories: leave out --repo");

  const file = values.get("output");
  if (file === undefined) refuseBytes(given, format);
  const client = await openReader(env, resources);
  const { where, parameters } = name === undefined ? { where: "", parameters: [] } : await ofRepository(name);
  const rowsOf = () => readRows(client, `select * from tain_v1.${kind}${where}`, parameters);
  const write = async (sink: Sink) => await writeRows(rowsOf(), await openWriter(format), sink);
  const rows = file === undefined ? await write(standardSink(given)) : await fillFile(file, write);
  if (rows !== null) output.note(`tain: ${counted(rows, "row")}`);
  return 0;

  async function ofRepository(full: string) {
    const found = await client.query<{ id: string }>(
      "select repository_id as id from tain_v1.repositories where folded(repository) = $1",
      [full],
    );
    const [repository] = found.rows;
    if (!repository) throw new CommandError(`${full} is not mirrored: \`tain status\` lists what is`);
    return { where: " where repository_id = $1", parameters: [repository.id] };
  }
}

/** Pure. */
function wrapped(names: readonly string[]): string {
  return listOf(names, "or").replaceAll(/(.{60,88}) /g, "$1\n");
}
