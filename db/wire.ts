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
