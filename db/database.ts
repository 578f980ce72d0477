import { createHash } from "node:crypto";
import { DrizzleQueryError, type EmptyRelations } from "drizzle-orm";
import { NodePgDatabase } from "drizzle-orm/node-postgres";
import { NodePgSession } from "drizzle-orm/node-postgres/session";
import type { PreparedQueryConfig } from "drizzle-orm/pg-core";
import pg from "pg";
import { withNumbers } from "./int8.ts";
import { type Client, clientOf, limitStatements, openPool, type Pool, runWithin } from "./lending.ts";
import type { Lane } from "./replica.ts";
import type { Replicas } from "./replicas.ts";
import { compiled, DIALECT, Pieces, type SQL, sql, storable, type Value } from "./sql.ts";
import { aboutStatement, aboutTransaction, type StatementTracing, summaryOf } from "./statement-tracing.ts";
import { piecesQuery } from "./wire.ts";

/** Drizzle's builders of statements. */
type Builders = Pick<NodePgDatabase, "select" | "insert" | "update" | "delete">;

/** Where statements run: the pool, a connection of it, or a transaction. */
export interface Queries extends Builders {
  /** The rows of the statement. Postgres plans it for these values. */
  query<Row = Record<string, unknown>>(statement: SQL, limits?: StatementLimits): Promise<Row[]>;
  /**
   * The same, but Postgres plans the statement once per connection. For statements that run often and need the same
   * plan for all values.
   */
  prepared<Row = Record<string, unknown>>(statement: SQL, limits?: StatementLimits): Promise<Row[]>;
  /** How many rows the statement answers or changes. */
  count(statement: SQL, limits?: StatementLimits): Promise<number>;
}

export interface StatementLimits {
  /** A connection that does not answer within this time is closed. */
  timeoutMs?: number;
}

interface Statement {
  text: string;
  values: Value[];
  /** Whether Postgres plans it once per connection. */
  isNamed?: boolean;
  /** In which form the driver answers its rows. */
  form?: Partial<pg.QueryArrayConfig>;
}

/** Fails as all other statements do. Drizzle's own error has the statement for its message, and the reason as its cause. */
class BuilderSession extends NodePgSession<EmptyRelations> {
  override prepareQuery<T extends PreparedQueryConfig>(
    ...asked: Parameters<NodePgSession<EmptyRelations>["prepareQuery"]>
  ) {
    const prepared = super.prepareQuery<T>(...asked);
    const execute = prepared.execute.bind(prepared);
    prepared.execute = (values) =>
      execute(values).catch((error: unknown) => {
        throw error instanceof DrizzleQueryError ? error.cause : error;
      });
    return prepared;
  }
}

class Runner implements Queries {
  readonly #client: Client;
  readonly #names: StatementNames;
  readonly #tracing: StatementTracing | null;
  #builders: NodePgDatabase | null = null;

  constructor(client: Client, names: StatementNames, tracing: StatementTracing | null) {
    this.#client = client;
    this.#names = names;
    this.#tracing = tracing;
  }

  async query<Row = Record<string, unknown>>(statement: SQL, limits?: StatementLimits): Promise<Row[]> {
    return (await this.run<Row>(compiled(statement), limits)).rows;
  }

  async prepared<Row = Record<string, unknown>>(statement: SQL, limits?: StatementLimits): Promise<Row[]> {
    return (await this.run<Row>({ ...compiled(statement), isNamed: true }, limits)).rows;
  }

  async count(statement: SQL, limits?: StatementLimits): Promise<number> {
    return (await this.run(compiled(statement), limits)).rowCount ?? 0;
  }

  get select() {
    return this.#built("select");
  }

  get insert() {
    return this.#built("insert");
  }

  get update() {
    return this.#built("update");
  }

  get delete() {
    return this.#built("delete");
  }

  /** Drizzle builds the statement and reads its rows; it is run as all others are. */
  #built<Name extends keyof Builders>(name: Name): Builders[Name] {
    this.#builders ??= new NodePgDatabase(DIALECT, new BuilderSession(this.#driver(), DIALECT, {}), {});
    return this.#builders[name].bind(this.#builders) as Builders[Name];
  }

  /** What drizzle takes for the driver's client. It calls nothing else of it. */
  #driver(): pg.Client {
    const query = ({ text, name, types = pg.types, ...form }: pg.QueryConfig, values: readonly Value[]) => {
      const read = { ...form, types: withNumbers(types) };
      return this.run({ text, values: values.map(storable), isNamed: name !== undefined, form: read });
    };
    return { query } as Pick<pg.Client, "query"> as pg.Client;
  }

  /** Runs every statement, those that drizzle builds too. Tests watch it. */
  run<Row>(statement: Statement, limits?: StatementLimits): Promise<pg.QueryResult<Row & pg.QueryResultRow>> {
    if (!this.#tracing?.isOn) return this.#send<Row>(statement, limits);
    const { text } = statement;
    return this.#tracing.within(
      summaryOf(text),
      () => aboutStatement(text),
      () => this.#send<Row>(statement, limits),
    );
  }

  #send<Row>({ text, values, isNamed = false, form }: Statement, { timeoutMs }: StatementLimits = {}) {
    // `query_timeout` is missing in the driver's types.
    const config: pg.QueryConfig & { query_timeout?: number | undefined } = {
      ...form,
      name: isNamed ? this.#names.of(text) : undefined,
      text,
      values,
      query_timeout: timeoutMs,
    };
    if (!values.some((one) => one instanceof Pieces)) return this.#client.query<Row & pg.QueryResultRow>(config);
    // Given this kind of query, a pool returns a promise and a single connection does not.
    if (!(this.#client instanceof pg.Pool))
      throw new Error("Bytes in pieces are sent by the pool, not in a transaction");
    return this.#client.query<Row & pg.QueryResultRow>(piecesQuery(config));
  }
}

/** The channel of announcements. */
export const ANNOUNCED = "tain_changes";
/** Beyond this share of Postgres' queue of notifications, none is sent: a full queue makes the commit fail. */
const FULLEST_QUEUE = 0.5;

export interface Clock {
  now(): Date;
}

const SYSTEM_CLOCK: Clock = { now: () => new Date() };

/** Statements that take effect together or not at all. */
export class Transaction extends Runner {
  readonly #clock: Clock;
  readonly #repositoryIds = new Set<number>();
  /**
   * Full names in lower case. For a moment two repositories can have the same name, and a change of either may decide
   * which of them is found by that name.
   */
  readonly #names = new Set<string>();

  constructor(client: Client, names: StatementNames, tracing: StatementTracing | null, clock: Clock) {
    super(client, names, tracing);
    this.#clock = clock;
  }

  /** The time by our clock: whatever is stored with a later one was stored while a clock ran ahead. */
  now(): Date {
    return this.#clock.now();
  }

  /**
   * Notes that the transaction changes what these repositories show, or who may see them. Their revisions are raised
   * right before the commit. So writers of the same repository wait for each other only for that moment.
   */
  touch(repositoryIds: Iterable<number>, names: Iterable<string> = []): void {
    for (const id of repositoryIds) this.#repositoryIds.add(id);
    for (const name of names) this.#names.add(name.toLowerCase());
  }

  /**
   * Sends texts to the listeners in every process when the transaction commits. NOTIFY makes the commits of all notifying
   * transactions wait for each other, so it runs only if a process listens. Each listener has a row in `listeners`, and
   * a new one waits for the transactions that may have looked before it: reading the table locks it until the end.
   *
   * Any login may listen, never read, and fill the queue of notifications. Then listeners hear nothing more.
   */
  async announce(texts: readonly string[]): Promise<void> {
    if (texts.length === 0) return;
    await this.prepared(sql`
      with heard as materialized (select case when exists (select from listeners)
        then pg_notification_queue_usage() < ${FULLEST_QUEUE} else false end as is_heard)
      select pg_notify(${ANNOUNCED}, one) from unnest(${[...new Set(texts)]}::text[]) as x(one), heard where is_heard`);
  }

  /** Raises the revisions of the touched repositories. This must be the transaction's last statement. */
  async raiseRevisions(): Promise<void> {
    const [ids, names] = [[...this.#repositoryIds], [...this.#names]];
    if (ids.length + names.length > 0)
      await this.query(sql`select raise_revisions(${ids}::bigint[], ${names}::text[])`);
  }
}

/**
 * A statement of a transaction waits for a lock for a minute at most, and then fails as during an outage. Transactions
 * of Tain's end within seconds: whoever holds a lock for longer may hold it for good.
 */
const BEGIN = "begin; set local lock_timeout = 60000";

/** One connection of the pool. */
class PoolConnection extends Runner {
  readonly #client: pg.PoolClient;
  readonly #names: StatementNames;
  readonly #tracing: StatementTracing | null;
  readonly #clock: Clock;
  /** A transaction began, and neither a commit nor a rollback is known to have ended it. */
  isInTransaction = false;

  constructor(client: pg.PoolClient, { names, tracing, clock }: Pick<DatabaseParts, "names" | "tracing" | "clock">) {
    super(client, names, tracing);
    this.#client = client;
    this.#names = names;
    this.#tracing = tracing;
    this.#clock = clock;
  }

  async transaction<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    this.isInTransaction = true;
    await this.#client.query(BEGIN);
    const tx = new Transaction(this.#client, this.#names, this.#tracing, this.#clock);
    let result: T;
    try {
      result = await run(tx);
    } catch (error) {
      // If the rollback fails too, the connection is broken. `error` holds the cause.
      await this.#client.query("rollback").then(
        () => {
          this.isInTransaction = false;
        },
        () => {},
      );
      throw error;
    }
    const raised = tx.raiseRevisions();
    raised.catch(() => {});
    // Sent before the answer about the revisions is known. If Postgres refused them, this commit acts as a rollback.
    const { command } = await this.#client.query("commit");
    this.isInTransaction = false;
    await raised;
    if (command === "ROLLBACK")
      throw new Error("The transaction was rolled back, because a statement in it had failed");
    return result;
  }
}

/** The pools behind one `Database`. */
interface DatabaseParts extends Pool {
  names: StatementNames;
  /** The replicas that may run single statements, and by which of their pools. Null: only the primary runs them. */
  replicas: { all: Replicas; lane: Lane } | null;
  tracing: StatementTracing | null;
  clock: Clock;
  isReadOnly: boolean;
}

interface StatementsUntil {
  signal?: AbortSignal | null;
  admit?: () => Promise<Disposable>;
}

/** Runs each statement when it is its turn. */
class Admitted implements Client {
  readonly #client: Client;
  readonly #admit: () => Promise<Disposable>;

  constructor(client: Client, admit: () => Promise<Disposable>) {
    this.#client = client;
    this.#admit = admit;
  }

  async query<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    using _ = await this.#admit();
    return await this.#client.query<Row>(config);
  }
}

/** The pool of connections to Postgres. A connection is made when it is first needed. */
export class Database extends Runner {
  readonly #opened: DatabaseParts;
  /** Whether it is a replica, and takes no writes. */
  readonly isReadOnly: boolean;

  constructor(opened: DatabaseParts, { signal = null, admit }: StatementsUntil = {}) {
    const { names, replicas, tracing } = opened;
    const primary = clientOf(opened, signal);
    const client = replicas ? replicas.all.before(primary, { signal, lane: replicas.lane }) : primary;
    super(admit ? new Admitted(client, admit) : client, names, tracing);
    this.#opened = opened;
    this.isReadOnly = opened.isReadOnly;
  }

  /**
   * The same pool, for statements that nobody needs once the signal aborts. Then they fail, and Postgres cancels them.
   * @param admit waits for each statement's turn; what it returns is disposed of when the statement has ended
   */
  until(signal: AbortSignal, admit?: () => Promise<Disposable>): Database {
    return new Database(this.#opened, { signal, ...(admit && { admit }) });
  }

  /**
   * The same pool, but single statements go to a replica that has replayed all of the primary's commits. They must only
   * read.
   */
  readingFrom(replicas: Replicas | null, lane: Lane = "reads"): Database {
    return new Database({ ...this.#opened, replicas: replicas && { all: replicas, lane } });
  }

  /**
   * Runs a transaction. It must make no network requests: during a request the connection and its locks would stay
   * taken.
   */
  async transaction<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    const { tracing } = this.#opened;
    if (!tracing?.isOn) return await this.#transaction(run);
    return await tracing.within("transaction", aboutTransaction, () => this.#transaction(run));
  }

  load(): { open: number; idle: number; waiting: number } {
    const { totalCount: open, idleCount: idle, waitingCount: waiting } = this.#opened.pool;
    return { open, idle, waiting };
  }

  async #transaction<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    const client = await this.#opened.pool.connect();
    const connection = new PoolConnection(client, this.#opened);
    try {
      return await connection.transaction(run);
    } finally {
      client.release(connection.isInTransaction);
    }
  }

  /** Closes the pool after the running statements have ended. */
  async close(): Promise<void> {
    await this.#opened.pool.end();
  }
}

/**
 * Opens a pool of at most `maxConnections`. Opening never fails, and waits for nothing.
 * @param options.isPooled `url` leads to a pooler that lends a connection for one transaction. Then statements are
 * planned each time, and an abandoned statement runs to its end or its time limit.
 * @param options.statementTimeoutMs Postgres cancels a statement that takes longer
 * @param options.isSerial a statement has one process of Postgres, and no other helps it
 * @param options.cancelBy the address at which Postgres is asked to cancel abandoned statements; see `until`
 * @param options.tracing records a span for each statement
 * @param options.clock what transactions take for the time
 * @param options.isReadOnly `url` leads to a replica
 */
export function openDatabase(
  url: string,
  {
    isPooled = false,
    maxConnections = 10,
    applicationName = "tain",
    statementTimeoutMs = 0,
    isSerial = false,
    cancelBy,
    tracing = null,
    clock = SYSTEM_CLOCK,
    isReadOnly = false,
  }: {
    isPooled?: boolean;
    maxConnections?: number;
    applicationName?: string;
    statementTimeoutMs?: number;
    isSerial?: boolean;
    cancelBy?: Queries;
    tracing?: StatementTracing | null;
    clock?: Clock;
    isReadOnly?: boolean;
  } = {},
): Database {
  const pool = openPool(url, { maxConnections, applicationName });
  const told = { replicas: null, tracing, clock, isReadOnly };
  if (isPooled) {
    const run = statementTimeoutMs > 0 ? runWithin(statementTimeoutMs) : null;
    return new Database({ pool, names: new StatementNames(0), cancel: async () => false, run, ...told });
  }
  const cancel = cancelBy
    ? limitStatements(pool, {
        statementTimeoutMs,
        isSerial,
        cancelProcess: (process) => cancelBy.count(sql`select pg_cancel_backend(${process})`),
      })
    : async () => false;
  return new Database({ pool, names: new StatementNames(MAX_NAMED), cancel, run: null, ...told });
}

/**
 * A connection keeps every named statement in memory. Callers' filters combine without end, so only this many
 * statements get names.
 */
const MAX_NAMED = 300;

/** The names of prepared statements, by their texts. */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Undefined if too many statements have names already. Then the statement is planned each time. */
  of(text: string): string | undefined {
    let name = this.#names.get(text);
    if (name === undefined && this.#names.size < this.#most) {
      name = createHash("sha256").update(text).digest("hex").slice(0, 16);
      this.#names.set(text, name);
    }
    return name;
  }
}

/**
 * Sends several statements of one transaction without waiting for answers in between. Postgres runs them in order.
 * Returns their results.
 * @throws the first error, after all the statements have ended
 */
export async function together<const T extends readonly PromiseLike<unknown>[]>(
  statements: T,
): Promise<{ -readonly [At in keyof T]: Awaited<T[At]> }> {
  // A statement of drizzle's runs each time that it is awaited.
  const sent = statements.map((one) => Promise.resolve(one)) as { [At in keyof T]: Promise<Awaited<T[At]>> };
  const outcomes = await Promise.allSettled(sent);
  const failures = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length > 0) throw failures.find((failure) => !isAftermath(failure)) ?? failures[0];
  return await Promise.all(sent);
}

/** 25P02, in_failed_sql_transaction: an earlier statement has failed. */
function isAftermath({ code, cause }: { code?: unknown; cause?: { code?: unknown } }): boolean {
  return (cause?.code ?? code) === "25P02";
}
