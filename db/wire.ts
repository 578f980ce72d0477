import type { Duplex } from "node:stream";
import pg from "pg";
import { Pieces } from "./sql.ts";

/** The driver's arguments for binding a statement's values. */
interface Bound {
  portal?: string;
  statement?: string;
  values: readonly unknown[];
  valueMapper: (value: unknown) => string | Buffer | null;
}

const BIND = "B".charCodeAt(0);
const [TEXT, BINARY] = [0, 1];

/**
 * A query that sends its `Pieces` without copying them. The driver itself copies all values into one message, which
 * took a tenth of the receiver's time; see docs/decisions/0019-postgres-wire.md.
 */
export function piecesQuery(config: pg.QueryConfig): pg.QueryConfig {
  const query = new pg.Query(config);
  const { submit } = query;
  query.submit = (connection) => {
    const bind = (bound: Bound) => sendBind(connection.stream, bound);
    return submit.call(query, Object.create(connection, { bind: { value: bind } }));
  };
  return Object.assign(query, config);
}

export interface TextStatement {
  /** Postgres plans a named statement once for each connection. Through a pooler, statements cannot be named. */
  name?: string;
  text: string;
  values?: string[];
}

/** The columns of a row, as Postgres writes them. Those that the statement does not ask for are undefined. */
export type TextRow = readonly (string | null | undefined)[];

/**
 * One execution of a statement whose values and columns are text. The driver's own query asks for the names and types of
 * the columns each time; see docs/decisions/0019-postgres-wire.md.
 */
export class TextQuery<Row extends TextRow> implements pg.Submittable {
  readonly #statement: TextStatement;
  readonly #isKnown: boolean;
  readonly #rows: Row[] = [];
  readonly #told = Promise.withResolvers<Row[]>();

  /** @param isKnown the connection has run it before under its name */
  constructor(statement: TextStatement, isKnown: boolean) {
    this.#statement = statement;
    this.#isKnown = isKnown;
  }

  /** @throws Postgres' or the connection's error */
  get rows(): Promise<Row[]> {
    return this.#told.promise;
  }

  submit(connection: pg.Connection): void {
    const { name = "", text, values = [] } = this.#statement;
    connection.stream.cork();
    if (!this.#isKnown) {
      // The prepared statement may exist: a failed execution does not show it. Closing an unknown one is no error.
      if (name !== "") connection.close({ type: "S", name }, true);
      connection.parse({ name, text, types: [] }, true);
    }
    connection.bind({ statement: name, values }, true);
    connection.execute(null, true);
    connection.sync();
    connection.stream.uncork();
  }

  handleDataRow({ fields }: { fields: Row }): void {
    this.#rows.push(fields);
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#told.resolve(this.#rows);
  }

  handleError(error: Error): void {
    this.#told.reject(error);
  }
}

/** https://www.postgresql.org/docs/18/protocol-message-formats.html, "Bind". The driver has corked the stream. */
function sendBind(stream: Duplex, { portal = "", statement = "", values, valueMapper }: Bound): void {
  const mapped = values.map((value) => (value instanceof Pieces ? value.pieces : valueMapper(value)));
  const formats = mapped.map((value) => (value === null || typeof value === "string" ? TEXT : BINARY));
  const parts = [
    Buffer.from(`${portal}\0${statement}\0`),
    int16(formats.length, ...formats, formats.length),
    ...mapped.flatMap((value) => (value === null ? [int32(-1)] : sized(piecesOf(value)))),
    int16(1, TEXT),
  ];
  const [length, ...rest] = sized(parts, 4);
  for (const part of [Buffer.of(BIND), length, ...rest]) stream.write(part);
}

function piecesOf(value: string | Buffer | readonly Buffer[]): readonly Buffer[] {
  if (typeof value === "string") return [Buffer.from(value)];
  return Buffer.isBuffer(value) ? [value] : value;
}

/** The parts, preceded by the sum of their lengths plus `own`. */
function sized(parts: readonly Buffer[], own = 0): [length: Buffer, ...parts: Buffer[]] {
  return [int32(parts.reduce((sum, { length }) => sum + length, own)), ...parts];
}

function int16(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 2);
  for (const [at, number] of numbers.entries()) bytes.writeInt16BE(number, at * 2);
  return bytes;
}

function int32(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(number);
  return bytes;
}
