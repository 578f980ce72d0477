import pg from "pg";

interface Connection {
  _send(message: Buffer): unknown;
}

const BIND = "B".charCodeAt(0);
/** What stands in a Bind message behind its last parameter: one code for the format of all results. */
const BEHIND = 4;

/**
 * Runs a statement whose last parameter, beside those in `values`, are these bytes, one piece after the other.
 *
 * They are sent from where they lie. The client itself copies each parameter into one buffer, which it has to make larger
 * and larger; memory that is taken and left at that pace has V8 collect garbage for longer than all else takes.
 */
export async function queryWithBytes<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  { queryTimeoutMs, ...config }: { name: string; text: string; values: unknown[]; queryTimeoutMs: number },
  pieces: readonly Buffer[],
): Promise<pg.QueryResult<Row>> {
  const query = new pg.Query<Row>({ ...config, values: [...config.values, Buffer.alloc(0)] });
  const submit = query.submit as unknown as (this: typeof query, connection: Connection) => void;
  query.submit = (connection) => submit.call(query, splicing(connection as unknown as Connection, pieces));
  Object.assign(query, { query_timeout: queryTimeoutMs });
  // The types know only queries that are streams.
  return await (pool.query(query) as unknown as Promise<pg.QueryResult<Row>>);
}

/** The connection, for one statement: in place of an empty last parameter it sends the pieces. */
function splicing(connection: Connection, pieces: readonly Buffer[]): Connection {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const send = (message: Buffer) => {
    if (message[0] !== BIND) return connection._send(message);
    const end = message.length - BEHIND;
    if (message.readInt32BE(end - 4) !== 0) throw new Error("A Bind message does not end with its last parameter");
    message.writeInt32BE(message.readInt32BE(1) + length, 1);
    message.writeInt32BE(length, end - 4);
    connection._send(message.subarray(0, end));
    for (const piece of pieces) connection._send(piece);
    return connection._send(message.subarray(end));
  };
  return Object.create(connection, { _send: { value: send } });
}
