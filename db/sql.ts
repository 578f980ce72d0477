import { sql as drizzleSql, SQL, type SQLWrapper, type Table } from "drizzle-orm";
import { nodePgCodecs } from "drizzle-orm/node-postgres/codecs";
import { type PgColumn, PgDialect } from "drizzle-orm/pg-core";

export { SQL };

/** What a parameter may be. Arrays become arrays of Postgres. */
export type Value = string | number | bigint | boolean | Date | Buffer | Pieces | null | readonly Value[];

/**
 * Bytes in several buffers, as one value of type `bytea`. Each buffer is sent from where it is, without copying them
 * together.
 */
export class Pieces {
  readonly pieces: readonly Buffer[];

  constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces;
  }
}

/** The types of columns and parameters. */
export type PgType =
  | "bigint"
  | "bigint[]"
  | "boolean"
  | "bytea"
  | "integer"
  | "json"
  | "text"
  | "timestamptz"
  | "tsvector"
  | "uuid";

/** What may stand in a statement: parts of statements, and tables and columns of the schema by their names. */
type Inserted = Value | SQLWrapper | Table;

/** How drizzle writes what Postgres is sent. */
export const DIALECT = new PgDialect({ codecs: nodePgCodecs });

/** What Postgres is sent: the whole text, in which `$1` stands for the first of the values. */
export function compiled(statement: SQL): { text: string; values: Value[] } {
  const { sql: text, params } = DIALECT.sqlToQuery(statement);
  return { text, values: (params as Value[]).map(storable) };
}

/** The earliest time that Postgres can store. */
const FIRST_TIME = Date.UTC(-4712, 0, 1);

/**
 * Turns a value into one that Postgres can hold and compare. In a text U+FFFD replaces a NUL and half a character, both
 * in rows and in questions about them. A time before Postgres' first time becomes that one.
 */
export function storable(value: Value): Value {
  if (typeof value === "string") return value.includes("\0") || !value.isWellFormed() ? storableText(value) : value;
  if (Array.isArray(value)) return value.every((one) => storable(one) === one) ? value : value.map(storable);
  if (value instanceof Date && value.getTime() < FIRST_TIME) return new Date(FIRST_TIME);
  return value;
}

/** The text as Postgres holds it. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

/**
 * ``sql`select from issues where number = ${number}` ``: drizzle's own, but an array is one parameter. Drizzle makes a
 * list of parameters of it, so that the text depends on its length.
 */
function tag<Row = unknown>(strings: TemplateStringsArray, ...inserted: readonly Inserted[]): SQL<Row> {
  return drizzleSql<Row>(strings, ...inserted.map(chunkOf));
}

function chunkOf(one: Inserted): unknown {
  return Array.isArray(one) ? drizzleSql.param(one) : one;
}

/** Joins the parts, by default with commas. */
function join(parts: readonly Inserted[], separator = ", "): SQL {
  return drizzleSql.join(parts.map(chunkOf) as SQL[], drizzleSql.raw(separator));
}

/** Joins conditions by `and`; true if there are none. */
function and(conditions: readonly SQL[]): SQL {
  return conditions.length > 0 ? join(conditions, " and ") : tag`true`;
}

/** Joins conditions by `or`, in brackets; false if there are none. */
function or(conditions: readonly SQL[]): SQL {
  return conditions.length > 0 ? tag`(${join(conditions, " or ")})` : tag`false`;
}

/**
 * An array whose length the planner does not see. With the length, Postgres takes a plan for this short array to be
 * cheaper than the generic plan. It would then plan the statement anew each time, which takes longer than running it.
 */
function array(values: readonly Value[], type: PgType): SQL {
  return tag`(select ${values}::${script(type)}[])`;
}

/** Half a character, as `JSON.stringify` writes it, or NUL. */
const UNFIT = /\\u(?:0000|d[89a-f][0-9a-f]{2})/;

/**
 * Rows for `json_to_recordset`, sent as one value. Their texts are as `storable` makes them: Postgres reads JSON that
 * has others, and fails once it takes such a text out of it.
 */
function json(rows: unknown): SQL {
  const text = JSON.stringify(rows);
  const fit = UNFIT.test(text)
    ? JSON.stringify(rows, (_, one) => (typeof one === "string" ? storableText(one) : one))
    : text;
  return tag`${fit}::json`;
}

/** Whether the column has one of the values. As one parameter, unlike drizzle's `inArray`, so that the text stays the same. */
export function among(column: PgColumn, values: readonly Value[]): SQL {
  return tag`${column} = any(${values}::${script(`${column.getSQLType()}[]`)})`;
}

/** The name of a table or column, perhaps with that of its table: `issues`, `i.number`. */
function identifier(name: string): SQL {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name)) {
    throw new Error(`Not a name of a table or column: ${name}`);
  }
  return drizzleSql.raw(`"${name.replace(".", '"."')}"`);
}

/** A text that stands in a file of ours, such as a migration: one statement or several, without values. */
function script(text: string): SQL {
  return drizzleSql.raw(text);
}

export const sql = Object.assign(tag, { join, and, or, array, json, identifier, script });

/** Escapes a text for a `like` pattern, so that it matches only itself. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

/** In which direction rows are in order. */
export const DIRECTIONS = { asc: sql`asc`, desc: sql`desc` };
