import pg from "pg";

const CONNECT_TIMEOUT_MS = 5_000;

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

  /** The statement's rows, each as an array of columns. @throws Postgres' or the connection's error */
  rows<Row extends unknown[]>(statement: pg.QueryConfig): Promise<Row[]> {
    const idlest = this.#connections.reduce((one, other) => (other.underWay < one.underWay ? other : one));
    return idlest.rows(statement);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

/** One connection. It is opened when it is first needed, and reopened after it breaks. */
class OwnConnection {
  readonly #databaseUrl: string;
  readonly #options: OwnConnectionOptions;
  #client: pg.Client | null = null;
  #connecting: Promise<pg.Client> | null = null;
  #isClosed = false;
  /** How many statements were sent or wait to be sent. */
  underWay = 0;

  constructor(databaseUrl: string, options: OwnConnectionOptions) {
    this.#databaseUrl = databaseUrl;
    this.#options = options;
  }

  async rows<Row extends unknown[]>(statement: pg.QueryConfig): Promise<Row[]> {
    if (this.#isClosed) throw new Error("The connection is closed");
    this.underWay += 1;
    try {
      const client = this.#client ?? (await this.#made());
      this.#client = client;
      // Dropping the connection makes this query fail.
      const late = setTimeout(() => this.#drop(client), this.#options.answerTimeoutMs);
      try {
        return (await client.query<Row>({ ...statement, rowMode: "array" })).rows;
      } finally {
        clearTimeout(late);
      }
    } finally {
      this.underWay -= 1;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A connection that is still opening would outlive this object.
    const made = await this.#connecting?.catch(() => null);
    await (this.#client ?? made)?.end();
  }

  #made(): Promise<pg.Client> {
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#databaseUrl,
      application_name: this.#options.applicationName,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      // Lets statements be sent before earlier ones are answered.
      pipeline: true,
    });
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
    try {
      await client.connect();
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    return client;
  }

  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = null;
    // Nothing depends on how the connection ends.
    client.end().catch(() => {});
  }
}
