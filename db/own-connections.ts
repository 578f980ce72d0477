import pg from "pg";
import { TextQuery, type TextRow, type TextStatement } from "./wire.ts";

/** How long Postgres may take to accept a connection. */
export const CONNECT_TIMEOUT_MS = 5_000;

interface OwnConnectionOptions {
  applicationName: string;
  /** A connection that does not answer within this time is closed, and its waiting statements fail. */
  answerTimeoutMs: number;
}

/**
 * A few connections for one purpose, outside the pool. A statement goes to the connection with the fewest running
 * statements. Taking a connection from a pool would cost a tenth of the time of a 304 answer.
 */
export class OwnConnections {
  readonly #connections: readonly OwnConnection[];

  constructor(databaseUrl: string, { count, ...options }: OwnConnectionOptions & { count: number }) {
    this.#connections = Array.from({ length: count }, () => new OwnConnection(databaseUrl, options));
  }

  /** The statement's rows, each column as text. @throws Postgres' or the connection's error */
  rows<Row extends TextRow>(statement: TextStatement): Promise<Row[]> {
    const idlest = this.#connections.reduce((one, other) => (other.underWay < one.underWay ? other : one));
    return idlest.rows<Row>(statement);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

/** A connection that is open. */
interface OpenConnection {
  client: pg.Client;
  /** The names of the statements that it knows. */
  known: Set<string>;
  /** Settles when its last statement is over. */
  last: Promise<void>;
}

/** One connection. It is opened when it is first needed, and reopened after it breaks. */
class OwnConnection {
  readonly #databaseUrl: string;
  readonly #options: OwnConnectionOptions;
  #opened: OpenConnection | null = null;
  #opening: Promise<OpenConnection> | null = null;
  #isClosed = false;
  /** How many statements were sent or wait to be sent. */
  underWay = 0;

  constructor(databaseUrl: string, options: OwnConnectionOptions) {
    this.#databaseUrl = databaseUrl;
    this.#options = options;
  }

  async rows<Row extends TextRow>(statement: TextStatement): Promise<Row[]> {
    if (this.#isClosed) throw new Error("The connection is closed");
    this.underWay += 1;
    try {
      const opened = this.#opened ?? (await this.#made());
      // Dropping the connection makes what runs on it fail, and what waits for it.
      const late = setTimeout(() => this.#drop(opened), this.#options.answerTimeoutMs);
      try {
        return await this.#inTurn<Row>(opened, statement);
      } finally {
        clearTimeout(late);
      }
    } finally {
      this.underWay -= 1;
    }
  }

  /** Runs a statement when those before it are over: the driver takes one at a time. */
  async #inTurn<Row extends TextRow>(opened: OpenConnection, statement: TextStatement): Promise<Row[]> {
    const { client, known, last: before } = opened;
    const { promise, resolve } = Promise.withResolvers<void>();
    opened.last = promise;
    try {
      await before;
      if (this.#opened !== opened) throw new Error("Connection terminated");
      const { name } = statement;
      const rows = await client.query(new TextQuery<Row>(statement, name !== undefined && known.has(name))).rows;
      if (name !== undefined) known.add(name);
      return rows;
    } finally {
      resolve();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A connection that is still opening would outlive this object.
    const made = await this.#opening?.catch(() => null);
    await (this.#opened ?? made)?.client.end();
  }

  #made(): Promise<OpenConnection> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #open(): Promise<OpenConnection> {
    const client = new pg.Client({
      connectionString: this.#databaseUrl,
      application_name: this.#options.applicationName,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    });
    const opened: OpenConnection = { client, known: new Set(), last: Promise.resolve() };
    client.on("error", () => this.#drop(opened));
    client.on("end", () => this.#drop(opened));
    try {
      await client.connect();
    } catch (error) {
      this.#drop(opened);
      throw error;
    }
    this.#opened = opened;
    return opened;
  }

  #drop(opened: OpenConnection): void {
    if (this.#opened === opened) this.#opened = null;
    // Nothing depends on how the connection ends.
    opened.client.end().catch(() => {});
  }
}
