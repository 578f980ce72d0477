import { createHash } from "node:crypto";
import type { QueryConfig, QueryResultRow } from "pg";
import type { Database, Transaction } from "./connection.ts";

/** A connection keeps each named statement, so only so many texts get a name; filters can be combined without end. */
const MAX_NAMED = 300;
const names = new Map<string, string>();

/**
 * A parameter that is an array, of which the planner does not see how long it is. A short one that it sees makes a plan for these
 * values look cheaper than any that could be kept, and the statement is planned anew each time, for longer than it runs.
 */
export function arrayOf(placeholder: string, type: string): string {
  return `(select ${placeholder}::${type}[])`;
}

/** A read in the making. Values never become part of the text. */
export class Statement {
  readonly #values: unknown[] = [];
  readonly #conditions: string[] = [];

  /** The placeholder that stands for a value. */
  value(value: unknown): string {
    this.#values.push(value);
    return `$${this.#values.length}`;
  }

  /** The same for an array; see `arrayOf`. */
  array(values: unknown, type: string): string {
    return arrayOf(this.value(values), type);
  }

  /** The same for what stands under `key` in each of these. */
  arrayIn<Row>(rows: readonly Row[], key: keyof Row, type: string): string {
    const values = rows.map((row) => row[key]);
    return this.array(values, type);
  }

  where(condition: string): this {
    this.#conditions.push(condition);
    return this;
  }

  /** All conditions, joined; for use behind `where`. */
  get conditions(): string {
    return this.#conditions.length > 0 ? this.#conditions.join(" and ") : "true";
  }

  /** Runs the text, which is planned once per connection. */
  async rows<Row extends QueryResultRow>({ $client }: Pick<Database, "$client">, text: string): Promise<Row[]> {
    return (await $client.query<Row>(prepared(text, this.#values))).rows;
  }

  /** Runs the text, planned for its values: where these decide which way is short. */
  async rowsPlannedAnew<Row extends QueryResultRow>(
    { $client }: Pick<Database, "$client">,
    text: string,
  ): Promise<Row[]> {
    return (await $client.query<Row>({ text, values: this.#values })).rows;
  }
}

function prepared(text: string, values: unknown[]): QueryConfig {
  let name = names.get(text);
  if (name === undefined) {
    if (names.size >= MAX_NAMED) return { text, values };
    name = createHash("sha256").update(text).digest("hex").slice(0, 16);
    names.set(text, name);
  }
  return { name, text, values };
}

/** Where a text can be run: a transaction, or the database by itself. */
export type Session = Pick<Transaction, "_">;

/** Runs a text, which is planned once per connection. */
export async function runPrepared<Row extends QueryResultRow>(
  { _: { session } }: Session,
  text: string,
  values: unknown[],
): Promise<Row[]> {
  const { name } = prepared(text, values);
  // Drizzle's own way to a named statement; what it is told of fields would only map the rows.
  const statement = session.prepareQuery({ sql: text, params: values }, undefined, name, false);
  return ((await statement.execute()) as { rows: Row[] }).rows;
}
