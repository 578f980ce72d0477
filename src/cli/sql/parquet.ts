import type { SchemaElement } from "hyparquet-writer";
import pg from "pg";
import { CommandError } from "../terminal/command.ts";
import { ARRAYS, type Batch, readTexts } from "./reading.ts";
import type { RowWriter } from "./sink.ts";

/** A group of rows is in memory whole. Readers ask for a group at a time, and larger ones are smaller on disk. */
const GROUP_ROWS = 20_000;
/** In characters of the values as Postgres writes them. */
const GROUP_LENGTH = 8_000_000;

/** A value of a column: undefined is null. */
type Cell = string | number | bigint | boolean | readonly Cell[] | undefined;

/**
 * Writes Parquet: https://parquet.apache.org/docs/file-format/. Its end names all parts, so a file that was cut off is
 * none to any reader. Loaded when it is asked for.
 */
export async function openParquet(): Promise<RowWriter> {
  const { ByteWriter, ParquetWriter } = await import("hyparquet-writer");
  const bytes = new ByteWriter();
  let fields: Batch["fields"] = [];
  let parquet: InstanceType<typeof ParquetWriter> | undefined;
  let columns: Cell[][] = [];
  let length = 0;
  /** What has been written since it was asked last. Its own offsets go on. */
  const written = () => {
    const piece = bytes.getBytes().slice();
    bytes.index = 0;
    return piece;
  };
  const writeGroup = () => {
    const columnData = fields.map(({ name }, at) => ({ name, data: columns[at] ?? [] }));
    void parquet?.write({ columnData, rowGroupSize: GROUP_ROWS });
    columns = fields.map(() => []);
    length = 0;
  };
  return {
    take(batch) {
      if (!parquet) {
        ({ fields } = batch);
        parquet = new ParquetWriter({ writer: bytes, schema: schemaOf(fields), createdBy: "tain" });
        columns = fields.map(() => []);
      }
      for (const row of batch.rows)
        for (const [at, value] of row.entries()) {
          columns[at]?.push(value === null ? undefined : cellOf(value, fields[at]?.dataTypeID ?? 0));
          length += value?.length ?? 0;
        }
      if (length >= GROUP_LENGTH || (columns[0]?.length ?? 0) >= GROUP_ROWS) writeGroup();
      return written();
    },
    end() {
      if ((columns[0]?.length ?? 0) > 0) writeGroup();
      void parquet?.finish();
      return written();
    },
  };
}

const { builtins } = pg.types;
const TEXT: Partial<SchemaElement> = { type: "BYTE_ARRAY", converted_type: "UTF8" };
/** To the microsecond, as Postgres counts. */
const TIME: Partial<SchemaElement> = {
  type: "INT64",
  converted_type: "TIMESTAMP_MICROS",
  logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
};
/** All others are text, as Postgres writes it: numbers with a scale keep their digits, JSON its text. */
const TYPES: ReadonlyMap<number, Partial<SchemaElement>> = new Map([
  [builtins.BOOL, { type: "BOOLEAN" }],
  [builtins.INT2, { type: "INT32" }],
  [builtins.INT4, { type: "INT32" }],
  [builtins.INT8, { type: "INT64" }],
  [builtins.FLOAT4, { type: "DOUBLE" }],
  [builtins.FLOAT8, { type: "DOUBLE" }],
  [builtins.TIMESTAMPTZ, TIME],
]);

/** Pure. @throws CommandError unless each column has a name of its own */
function schemaOf(fields: Batch["fields"]): SchemaElement[] {
  if (fields.length === 0 || new Set(fields.map(({ name }) => name)).size < fields.length)
    throw new CommandError("Parquet needs a name of its own for each column: give them with `as`");
  const columns = fields.flatMap(({ name, dataTypeID }): SchemaElement[] => {
    const member = ARRAYS.get(dataTypeID);
    const element = TYPES.get(member ?? dataTypeID) ?? TEXT;
    if (member === undefined) return [{ ...element, name, repetition_type: "OPTIONAL" }];
    return [
      { name, repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST", logical_type: { type: "LIST" } },
      { name: "list", repetition_type: "REPEATED", num_children: 1 },
      { ...element, name: "element", repetition_type: "OPTIONAL" },
    ];
  });
  return [{ name: "root", num_children: fields.length }, ...columns];
}

/** Pure. */
function cellOf(value: string, type: number): Cell {
  const member = ARRAYS.get(type);
  if (member !== undefined) return membersOf(readTexts(value), member);
  switch (type) {
    case builtins.BOOL:
      return value === "t";
    case builtins.INT2:
    case builtins.INT4:
    case builtins.FLOAT4:
    case builtins.FLOAT8:
      return Number(value);
    case builtins.INT8:
      return BigInt(value);
    case builtins.TIMESTAMPTZ:
      return microsecondsOf(value);
    default:
      return value;
  }
}

/** @throws CommandError for arrays within arrays */
function membersOf(values: unknown, member: number): Cell[] {
  const members: unknown[] = Array.isArray(values) ? values : [];
  return members.map((each) => {
    if (Array.isArray(each)) throw new CommandError("Parquet takes no arrays within arrays here: cast them to text");
    return typeof each === "string" ? cellOf(each, member) : undefined;
  });
}

/** Of `2026-01-02 01:04:05.123456+00`. @throws CommandError for a time that no calendar has, such as `infinity` */
function microsecondsOf(text: string): bigint {
  const [, date, time, part = ""] = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/.exec(text) ?? [];
  if (date === undefined) throw new CommandError(`Parquet has no time ${text}: cast it to text`);
  return BigInt(Date.parse(`${date}T${time}Z`)) * 1_000n + BigInt(part.padEnd(6, "0"));
}
