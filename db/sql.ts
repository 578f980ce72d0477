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

/** A parameter. A part that a statement uses several times sends its parameters once. */
interface SqlParameter {
  readonly value: Value;
}

/** A statement or a part of one, made by `sql`. Values are sent as parameters and never become part of the text. */
export class Sql {
  /** The text around the parameters: one piece more than there are parameters. */
  readonly pieces: readonly string[];
  readonly parameters: readonly SqlParameter[];

  constructor(pieces: readonly string[], parameters: readonly SqlParameter[] = []) {
    this.pieces = pieces;
    this.parameters = parameters;
  }

  /** What Postgres is sent: the whole text, in which `$1` stands for the first of the values. */
  compiled(): { text: string; values: Value[] } {
    const places = new Map<SqlParameter, number>();
    let [text = ""] = this.pieces;
    for (const [at, parameter] of this.parameters.entries()) {
      const place = places.get(parameter) ?? places.size + 1;
      places.set(parameter, place);
      text += `$${place}${this.pieces[at + 1]}`;
    }
    return { text, values: Array.from(places.keys(), ({ value }) => storable(value)) };
  }
}

/** The earliest time that Postgres can store. */
const FIRST_TIME = Date.UTC(-4712, 0, 1);

/**
 * Turns a value into one that Postgres can hold and compare. In a text U+FFFD replaces a NUL and half a character, both
 * in rows and in questions about them. A time before Postgres' first time becomes that one.
 */
function storable(value: Value): Value {
  if (typeof value === "string") return value.includes("\0") || !value.isWellFormed() ? storableText(value) : value;
  if (Array.isArray(value)) return value.every((one) => storable(one) === one) ? value : value.map(storable);
  if (value instanceof Date && value.getTime() < FIRST_TIME) return new Date(FIRST_TIME);
  return value;
}

/** The text as Postgres holds it. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}

/** ``sql`select from issues where number = ${number}` ``. Parts of statements stand among the values. */
function tag(strings: TemplateStringsArray, ...inserted: readonly (Value | Sql)[]): Sql {
  return compose(strings, inserted);
}

/** `strings` stand around what is inserted. */
function compose(strings: readonly string[], inserted: readonly (Value | Sql)[]): Sql {
  let last = strings[0] ?? "";
  const pieces: string[] = [];
  const parameters: SqlParameter[] = [];
  // An index loop, because statements are built for each query: iterators made a third of the garbage of building one.
  for (let at = 0; at < inserted.length; at++) {
    const one = inserted[at];
    const part = one instanceof Sql ? one : value(one ?? null);
    last += part.pieces[0] ?? "";
    for (let inner = 1; inner < part.pieces.length; inner++) {
      pieces.push(last);
      last = part.pieces[inner] ?? "";
    }
    for (const parameter of part.parameters) parameters.push(parameter);
    last += strings[at + 1] ?? "";
  }
  pieces.push(last);
  return new Sql(pieces, parameters);
}

/** A value that a statement uses several times. It is sent once, and the planner knows that it is one value. */
function value(one: Value): Sql {
  return new Sql(["", ""], [{ value: one }]);
}

/** Joins the parts, by default with commas. */
function join(parts: readonly (Value | Sql)[], separator = ", "): Sql {
  return compose(["", ...parts.slice(1).map(() => separator), ""], parts);
}

/** Joins conditions by `and`; true if there are none. */
function and(conditions: readonly Sql[]): Sql {
  return conditions.length > 0 ? join(conditions, " and ") : tag`true`;
}

/** Joins conditions by `or`, in brackets; false if there are none. */
function or(conditions: readonly Sql[]): Sql {
  return conditions.length > 0 ? tag`(${join(conditions, " or ")})` : tag`false`;
}

/**
 * An array whose length the planner does not see. With the length, Postgres takes a plan for this short array to be
 * cheaper than the generic plan. It would then plan the statement anew each time, which takes longer than running it.
 */
function array(values: readonly Value[], type: PgType): Sql {
  return tag`(select ${values}::${new Sql([type])}[])`;
}

/** Half a character, as `JSON.stringify` writes it, or NUL. */
const UNFIT = /\\u(?:0000|d[89a-f][0-9a-f]{2})/;

/**
 * Rows for `json_to_recordset`, sent as one value. Their texts are as `storable` makes them: Postgres reads JSON that
 * has others, and fails once it takes such a text out of it.
 */
function json(rows: unknown): Sql {
  const text = JSON.stringify(rows);
  const fit = UNFIT.test(text)
    ? JSON.stringify(rows, (_, one) => (typeof one === "string" ? storableText(one) : one))
    : text;
  return tag`${fit}::json`;
}

/** The name of a table or column, perhaps with that of its table: `issues`, `i.number`. */
function identifier(name: string): Sql {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name)) {
    throw new Error(`Not a name of a table or column: ${name}`);
  }
  return new Sql([`"${name.replace(".", '"."')}"`]);
}

/** A text that stands in a file of ours, such as a migration: one statement or several, without values. */
function script(text: string): Sql {
  return new Sql([text]);
}

export const sql = Object.assign(tag, { value, join, and, or, array, json, identifier, script });

/** Escapes a text for a `like` pattern, so that it matches only itself. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

/** In which direction rows are in order. */
export const DIRECTIONS = { asc: sql`asc`, desc: sql`desc` };
