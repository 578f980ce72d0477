/** What a parameter may be. Arrays become arrays of Postgres. */
export type Value = string | number | bigint | boolean | Date | Buffer | null | readonly Value[];

type ElementType = "bigint" | "boolean" | "bytea" | "integer" | "json" | "text" | "timestamptz" | "uuid";

/** A statement or a part of one, made by `sql`. Values are sent as parameters and never become part of the text. */
export class Sql {
  /** The text around the values: one piece more than there are values. */
  readonly pieces: readonly string[];
  readonly values: readonly Value[];

  constructor(pieces: readonly string[], values: readonly Value[]) {
    this.pieces = pieces;
    this.values = values;
  }

  /** The whole text, in which `$1` stands for the first value. */
  get text(): string {
    return this.pieces.reduce((text, piece, at) => `${text}$${at}${piece}`);
  }
}

/** ``sql`select from issues where number = ${number}` ``. A part that stands among the values is inserted, with its own values. */
function tag(strings: TemplateStringsArray, ...inserted: readonly (Value | Sql)[]): Sql {
  return compose(strings, inserted);
}

/** `strings` stand around what is inserted. */
function compose(strings: readonly string[], inserted: readonly (Value | Sql)[]): Sql {
  let last = strings[0] ?? "";
  const pieces: string[] = [];
  const values: Value[] = [];
  for (const [at, one] of inserted.entries()) {
    const part = one instanceof Sql ? one : new Sql(["", ""], [one]);
    for (const [inner, piece] of part.pieces.entries()) {
      if (inner > 0) {
        pieces.push(last);
        last = "";
      }
      last += piece;
    }
    values.push(...part.values);
    last += strings[at + 1] ?? "";
  }
  return new Sql([...pieces, last], values);
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
function array(values: readonly Value[], type: ElementType): Sql {
  return tag`(select ${values}::${new Sql([type], [])}[])`;
}

/** The name of a table or column, perhaps with that of its table: `issues`, `i.number`. */
function identifier(name: string): Sql {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name)) {
    throw new Error(`Not a name of a table or column: ${name}`);
  }
  return new Sql([name], []);
}

/** A text that stands in a file of ours, such as a migration: one statement or several, without values. */
function script(text: string): Sql {
  return new Sql([text], []);
}

export const sql = Object.assign(tag, { join, and, or, array, identifier, script });
