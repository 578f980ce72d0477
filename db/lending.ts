import pg from "pg";
import { isPostgresOutage } from "./outage.ts";
import { sql } from "./sql.ts";

/** What a statement is given to. */
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

const CONNECT_TIMEOUT_MS = 5_000;
/** A connection that is idle for this long is closed. */
const IDLE_TIMEOUT_MS = 10_000;

/**
 * Cancels what a connection of a pool runs. True: Postgres has done so, and the connection's next statement is safe,
 * since a process that runs nothing ignores a cancellation. False: that is not known.
 */
export type Cancel = (client: pg.PoolClient) => Promise<boolean>;

/** Runs one statement on a connection that is nobody else's meanwhile. */
export type RunStatement = <Row extends pg.QueryResultRow>(
  client: pg.PoolClient,
  config: pg.QueryConfig,
) => Promise<pg.QueryResult<Row>>;

const runAlone: RunStatement = (client, config) => client.query(config);

/**
 * A pooler gives the session to others after each transaction, so the limit in time is the transaction's. All of it
 * goes out together, and so takes no more time than the statement.
 */
export function runWithin(timeoutMs: number): RunStatement {
  return async <Row extends pg.QueryResultRow>(client: pg.PoolClient, config: pg.QueryConfig) => {
    const limit = sql`select set_config('statement_timeout', ${String(timeoutMs)}, true)`.compiled();
    const begun = [client.query("begin"), client.query(limit.text, [...limit.values])];
    const asked = client.query<Row>(config);
    const [answer, ...others] = await Promise.allSettled([asked, ...begun, client.query("commit")]);
    for (const one of [answer, ...others]) if (one.status === "rejected") throw one.reason;
    return await asked;
  };
}

/** Runs each statement on a connection of the pool as `run` does. */
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

/** Runs each statement on a connection of the pool, and cancels in Postgres what runs when the signal fires. */
class Abandonable implements Client {
  readonly #pool: pg.Pool;
  readonly #signal: AbortSignal;
  readonly #run: RunStatement;
  /** Each with its cancellation, once that is on its way. */
  readonly #running = new Map<pg.PoolClient, Promise<boolean> | null>();

  constructor({ pool, cancel, run }: Pool, signal: AbortSignal) {
    this.#pool = pool;
    this.#signal = signal;
    this.#run = run ?? runAlone;
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

/** What the statements of one server run on. */
export interface Pool {
  pool: pg.Pool;
  cancel: Cancel;
  /** How single statements are run; null: as the pool does. */
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
    // Statements that do not need each other's answers go out together.
    pipeline: true,
  });
  // An idle connection that breaks (Postgres restarts) leaves the pool by itself; the next query tells its caller.
  pool.on("error", () => {});
  // A connection that breaks between two statements of a transaction reports to nobody else, and would end the process.
  // The transaction learns of it by its next statement.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/**
 * Has each connection of the pool end a statement after `statementTimeoutMs`, and answers how one is cancelled before
 * that.
 * @param cancelProcess asks the server to cancel what a process of it runs
 */
export function limitStatements(
  pool: pg.Pool,
  {
    statementTimeoutMs,
    cancelProcess,
  }: { statementTimeoutMs: number; cancelProcess: (process: number) => Promise<unknown> },
): Cancel {
  const processes = new WeakMap<pg.PoolClient, number>();
  pool.on("connect", (client) => {
    // By a statement: poolers in between refuse to start with such a parameter.
    const { text, values } = sql`select pg_backend_pid() as pid,
      set_config('statement_timeout', ${String(statementTimeoutMs)}, false)`.compiled();
    client.query<{ pid: number }>(text, values).then(
      ({ rows }) => {
        for (const { pid } of rows) processes.set(client, pid);
      },
      // The connection is broken, and its next statement says so.
      () => {},
    );
  });
  return async (client) => {
    const process = processes.get(client);
    // What cannot be cancelled ends by its time limit.
    if (process === undefined) return false;
    return cancelProcess(process).then(
      () => true,
      () => false,
    );
  };
}
