/** What a parameter may be. Arrays become arrays of Postgres. */
export type Value = string | number | bigint | boolean | Date | Buffer | null | readonly Value[];

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

/** A parameter. Where a part stands several times in a statement, its parameters are sent once. */
interface Parameter {
  readonly value: Value;
}

/** A statement or a part of one, made by `sql`. Values are sent as parameters and never become part of the text. */
export class Sql {
  /** The text around the parameters: one piece more than there are parameters. */
  readonly pieces: readonly string[];
  readonly parameters: readonly Parameter[];

  constructor(pieces: readonly string[], parameters: readonly Parameter[] = []) {
    this.pieces = pieces;
    this.parameters = parameters;
  }

  /** What Postgres is sent: the whole text, in which `$1` stands for the first of the values. */
  compiled(): { text: string; values: Value[] } {
    const places = new Map<Parameter, number>();
    let [text = ""] = this.pieces;
    for (const [at, parameter] of this.parameters.entries()) {
      const place = places.get(parameter) ?? places.size + 1;
      places.set(parameter, place);
      text += `$${place}${this.pieces[at + 1]}`;
    }
    return { text, values: Array.from(places.keys(), ({ value }) => value) };
  }
}

/** ``sql`select from issues where number = ${number}` ``. Parts of statements stand among the values. */
function tag(strings: TemplateStringsArray, ...inserted: readonly (Value | Sql)[]): Sql {
  return compose(strings, inserted);
}

/** `strings` stand around what is inserted. */
function compose(strings: readonly string[], inserted: readonly (Value | Sql)[]): Sql {
  let last = strings[0] ?? "";
  const pieces: string[] = [];
  const parameters: Parameter[] = [];
  for (const [at, one] of inserted.entries()) {
    const part = one instanceof Sql ? one : value(one);
    for (const [inner, piece] of part.pieces.entries()) {
      if (inner > 0) {
        pieces.push(last);
        last = "";
      }
      last += piece;
    }
    parameters.push(...part.parameters);
    last += strings[at + 1] ?? "";
  }
  return new Sql([...pieces, last], parameters);
}

/** A value that stands several times in a statement and is sent once, so that the planner knows that it is one value. */
function value(one: Value): Sql {
  return new Sql(["", ""], [{ value: one }]);
}

/** The parts in a row. Without a separator a comma stands between them. */
function join(parts: readonly (Value | Sql)[], separator = ", "): Sql {
  return compose(["", ...parts.slice(1).map(() => separator), ""], parts);
}

/** What holds where each condition holds; true where there are none. */
function and(conditions: readonly Sql[]): Sql {
  return conditions.length > 0 ? join(conditions, " and ") : tag`true`;
}

/** What holds where one of the conditions holds; false where there are none. In brackets. */
function or(conditions: readonly Sql[]): Sql {
  return conditions.length > 0 ? tag`(${join(conditions, " or ")})` : tag`false`;
}

/**
 * An array whose length the planner does not see. It would take a plan that is made for a short array to be cheaper than any
 * plan for all values, and plan the statement anew each time, which takes longer than to run it.
 */
function array(values: readonly Value[], type: PgType): Sql {
  return tag`(select ${values}::${new Sql([type])}[])`;
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

export const sql = Object.assign(tag, { value, join, and, or, array, identifier, script });

/** In which direction rows are in order. */
export const DIRECTIONS = { asc: sql`asc`, desc: sql`desc` };
