import pg from "pg";
import { withNumbers } from "./int8.ts";
import { isPostgresOutage } from "./outage.ts";
import { compiled, sql } from "./sql.ts";

/** Runs statements. */
export interface Client {
  query<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>>;
}

/**
 * Runs statements on the pool. @param signal once it has fired nobody needs them: they fail, and Postgres cancels them
 */
export function clientOf(opened: Pool, signal: AbortSignal | null): Client {
  if (signal) return new Abandonable(opened, signal);
  return opened.run ? new Lending(opened.pool, opened.run) : opened.pool;
}

/** How long Postgres may take to accept a connection. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * A connection that is idle for this long is closed. Work that recurs every ten seconds, such as reading a token anew,
 * finds the connections of its last time. Opening one takes both sides milliseconds.
 */
const IDLE_TIMEOUT_MS = 60_000;

/**
 * Cancels the running statement of a connection. True: Postgres has received the request. The connection's next
 * statement is safe, because a server process that runs nothing ignores a cancellation. False: it is unknown whether
 * the request arrived, so the connection must not be used again.
 */
export type Cancel = (client: pg.PoolClient) => Promise<boolean>;

/** Runs one statement on a connection that no other code uses meanwhile. */
export type RunStatement = <Row extends pg.QueryResultRow>(
  client: pg.PoolClient,
  config: pg.QueryConfig,
) => Promise<pg.QueryResult<Row>>;

/**
 * Sets the time limit for one transaction only, because a pooler gives the session to others after each transaction.
 * All its statements are sent at once, so they take no more round trips than one statement.
 */
export function runWithin(timeoutMs: number): RunStatement {
  return async <Row extends pg.QueryResultRow>(client: pg.PoolClient, config: pg.QueryConfig) => {
    const limit = compiled(sql`select set_config('statement_timeout', ${String(timeoutMs)}, true)`);
    const begun = [client.query("begin"), client.query(limit.text, [...limit.values])];
    const asked = client.query<Row>(config);
    const [answer, ...others] = await Promise.allSettled([asked, ...begun, client.query("commit")]);
    for (const one of [answer, ...others]) if (one.status === "rejected") throw one.reason;
    return await asked;
  };
}

/** Takes a connection of the pool for each statement, and runs the statement with `run`. */
class Lending implements Client {
  readonly #pool: pg.Pool;
  readonly #run: RunStatement;

  constructor(pool: pg.Pool, run: RunStatement) {
    this.#pool = pool;
    this.#run = run;
  }

  async query<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    const client = await this.#pool.connect();
    let isSound = false;
    try {
      const result = await this.#run<Row>(client, config);
      isSound = true;
      return result;
    } finally {
      client.release(!isSound);
    }
  }
}

/**
 * Takes a connection of the pool for each statement. When the signal aborts, Postgres cancels the running statements.
 */
class Abandonable implements Client {
  readonly #pool: pg.Pool;
  readonly #signal: AbortSignal;
  readonly #run: RunStatement;
  /** The connections in use. The value is the cancellation, or null while none was requested. */
  readonly #running = new Map<pg.PoolClient, Promise<boolean> | null>();

  constructor({ pool, cancel, run }: Pool, signal: AbortSignal) {
    this.#pool = pool;
    this.#signal = signal;
    this.#run = run ?? ((one, config) => one.query(config));
    const cancelAll = () => {
      for (const client of this.#running.keys()) this.#running.set(client, cancel(client));
    };
    signal.addEventListener("abort", cancelAll, { once: true });
  }

  async query<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    this.#signal.throwIfAborted();
    const client = await this.#pool.connect();
    if (this.#signal.aborted) {
      client.release();
      throw this.#signal.reason;
    }
    this.#running.set(client, null);
    let isSound = true;
    try {
      return await this.#run<Row>(client, config);
    } catch (error) {
      isSound = !isPostgresOutage(error);
      throw error;
    } finally {
      const isSafe = (await this.#running.get(client)) ?? true;
      this.#running.delete(client);
      client.release(!(isSafe && isSound));
    }
  }
}

/** The pool of one server, and how its statements are run and cancelled. */
export interface Pool {
  pool: pg.Pool;
  cancel: Cancel;
  /** How a single statement is run; null: by the pool's own `query`. */
  run: RunStatement | null;
}

export function openPool(
  url: string,
  {
    maxConnections,
    applicationName,
    connectTimeoutMs = CONNECT_TIMEOUT_MS,
  }: { maxConnections: number; applicationName: string; connectTimeoutMs?: number },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    types: withNumbers(pg.types),
    // Lets statements be sent before earlier ones are answered.
    pipeline: true,
  });
  // If an idle connection breaks, the pool drops it. If Postgres is still away, the next query fails and tells its
  // caller.
  pool.on("error", () => {});
  // Without this listener, a connection that breaks between two statements of a transaction would end the process. The
  // transaction's next statement fails, so the error is not lost.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/**
 * Limits each statement of the pool's connections to `statementTimeoutMs`. Returns how a statement is cancelled
 * earlier.
 * @param isSerial a statement has one process of Postgres, and no other helps it
 * @param cancelProcess asks the server to cancel the running statement of one of its processes
 */
export function limitStatements(
  pool: pg.Pool,
  {
    statementTimeoutMs,
    isSerial = false,
    cancelProcess,
  }: { statementTimeoutMs: number; isSerial?: boolean; cancelProcess: (process: number) => Promise<unknown> },
): Cancel {
  const processes = new WeakMap<pg.PoolClient, number>();
  // The limit is set by a statement, because some poolers refuse connections that start with such a parameter.
  const serial = isSerial ? sql`, set_config('max_parallel_workers_per_gather', '0', false)` : sql``;
  const { text, values } = compiled(sql`select pg_backend_pid() as pid,
    set_config('statement_timeout', ${String(statementTimeoutMs)}, false) ${serial}`);
  const limiting = { text, values: [...values], query_timeout: pool.options.connectionTimeoutMillis };
  // The pool lends a new connection once this is done. If it fails, the pool closes the connection, and the statement
  // that asked for one fails with this error.
  pool.options.verify = (client, done) => {
    client.query<{ pid: number }>(limiting).then(({ rows }) => {
      for (const { pid } of rows) processes.set(client, pid);
      done();
    }, done);
  };
  return async (client) => {
    const process = processes.get(client);
    // Without the number of its server process, a statement cannot be cancelled. It ends by its time limit.
    if (process === undefined) return false;
    return cancelProcess(process).then(
      () => true,
      () => false,
    );
  };
}
