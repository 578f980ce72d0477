import { createHash } from "node:crypto";
import pg from "pg";
import { type Client, clientOf, limitStatements, openPool, type Pool, runWithin } from "./lending.ts";
import type { Replicas } from "./replicas.ts";
import { Pieces, type Sql, sql } from "./sql.ts";
import { piecesQuery } from "./wire.ts";

/** Where statements run: the pool, a connection of it, or a transaction. */
export interface Queries {
  /** The rows that the statement answers. It is planned for its values. */
  query<Row = Record<string, unknown>>(statement: Sql, limits?: StatementLimits): Promise<Row[]>;
  /** The same, planned once per connection. For statements that run often and need the same plan for all values. */
  prepared<Row = Record<string, unknown>>(statement: Sql, limits?: StatementLimits): Promise<Row[]>;
  /** How many rows the statement answers or changes. */
  count(statement: Sql, limits?: StatementLimits): Promise<number>;
}

export interface StatementLimits {
  /** A connection that has not answered by then is given up. */
  timeoutMs?: number;
}

class Runner implements Queries {
  readonly #client: Client;
  readonly #names: StatementNames;
  readonly #tracing: StatementTracing | null;

  constructor(client: Client, names: StatementNames, tracing: StatementTracing | null) {
    this.#client = client;
    this.#names = names;
    this.#tracing = tracing;
  }

  async query<Row = Record<string, unknown>>(statement: Sql, limits?: StatementLimits): Promise<Row[]> {
    return (await this.#run<Row>(statement, null, limits)).rows;
  }

  async prepared<Row = Record<string, unknown>>(statement: Sql, limits?: StatementLimits): Promise<Row[]> {
    return (await this.#run<Row>(statement, this.#names, limits)).rows;
  }

  async count(statement: Sql, limits?: StatementLimits): Promise<number> {
    return (await this.#run(statement, null, limits)).rowCount ?? 0;
  }

  #run<Row>(
    statement: Sql,
    names: StatementNames | null,
    limits?: StatementLimits,
  ): Promise<pg.QueryResult<Row & pg.QueryResultRow>> {
    const compiled = statement.compiled();
    if (!this.#tracing?.isOn) return this.#send<Row>(compiled, names, limits);
    const { text } = compiled;
    return this.#tracing.within(
      summaryOf(text),
      () => aboutStatement(text),
      () => this.#send<Row>(compiled, names, limits),
    );
  }

  #send<Row>(
    { text, values }: ReturnType<Sql["compiled"]>,
    names: StatementNames | null,
    { timeoutMs }: StatementLimits = {},
  ) {
    // The driver's types do not know the last of these.
    const config: pg.QueryConfig & { query_timeout?: number | undefined } = {
      name: names?.of(text),
      text,
      values,
      query_timeout: timeoutMs,
    };
    if (!values.some((one) => one instanceof Pieces)) return this.#client.query<Row & pg.QueryResultRow>(config);
    // Only a pool answers such a query with a promise.
    if (!(this.#client instanceof pg.Pool))
      throw new Error("Bytes in pieces are sent by the pool, not in a transaction");
    return this.#client.query<Row & pg.QueryResultRow>(piecesQuery(config));
  }
}

/** Statements that take effect together or not at all. */
export class Transaction extends Runner {
  readonly #repositoryIds = new Set<number>();
  /**
   * In lower case. Two repositories can bear one name for a moment, and a change of one may decide which of them is
   * found.
   */
  readonly #names = new Set<string>();

  /**
   * Notes that the transaction changes what is shown of these repositories, or who may see them. Their revisions are
   * raised right before the commit, so writers of one repository wait for each other only then.
   */
  touch(repositoryIds: Iterable<number>, names: Iterable<string> = []): void {
    for (const id of repositoryIds) this.#repositoryIds.add(id);
    for (const name of names) this.#names.add(name.toLowerCase());
  }

  /** Raises the revisions of the touched repositories; the last statement of the transaction. */
  async raiseRevisions(): Promise<void> {
    const [ids, names] = [[...this.#repositoryIds], [...this.#names]];
    if (ids.length + names.length > 0)
      await this.query(sql`select raise_revisions(${ids}::bigint[], ${names}::text[])`);
  }
}

/** One connection of the pool. */
class PoolConnection extends Runner {
  readonly #client: pg.PoolClient;
  readonly #names: StatementNames;
  readonly #tracing: StatementTracing | null;
  /** Whether a transaction has begun and its end is not known. */
  isInTransaction = false;

  constructor(client: pg.PoolClient, names: StatementNames, tracing: StatementTracing | null) {
    super(client, names, tracing);
    this.#client = client;
    this.#names = names;
    this.#tracing = tracing;
  }

  async transaction<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    this.isInTransaction = true;
    await this.#client.query("begin");
    const tx = new Transaction(this.#client, this.#names, this.#tracing);
    let result: T;
    try {
      result = await run(tx);
    } catch (error) {
      // If the rollback fails too, the connection is broken, and `error` says why.
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
    // Sent without waiting for the revisions: where they are refused, it is a rollback.
    const { command } = await this.#client.query("commit");
    this.isInTransaction = false;
    await raised;
    if (command === "ROLLBACK")
      throw new Error("The transaction was rolled back, because a statement in it had failed");
    return result;
  }
}

/** What the statements of one database run on. */
interface DatabaseParts extends Pool {
  names: StatementNames;
  /** Where single statements run if one of them has got as far as the primary; null: there are none. */
  replicas: Replicas | null;
  tracing: StatementTracing | null;
}

/** The pool of connections to Postgres. A connection is made when it is first needed. */
export class Database extends Runner {
  readonly #opened: DatabaseParts;
  readonly #names: StatementNames;

  constructor(opened: DatabaseParts, signal: AbortSignal | null = null) {
    const { names, replicas, tracing } = opened;
    const primary = clientOf(opened, signal);
    super(replicas ? replicas.before(primary, signal) : primary, names, tracing);
    this.#opened = opened;
    this.#names = names;
  }

  /**
   * The same pool, for statements that are useless once the signal has fired. Then they fail, and Postgres cancels
   * them.
   */
  until(signal: AbortSignal): Database {
    return new Database(this.#opened, signal);
  }

  /**
   * The same pool, for single statements that only read: replicas run them where they show all that the primary does.
   */
  readingFrom(replicas: Replicas | null): Database {
    return new Database({ ...this.#opened, replicas });
  }

  /**
   * Runs what takes effect together or not at all. No request to others is made in it: a connection and locks would be
   * held as long.
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
    const connection = new PoolConnection(client, this.#names, this.#opened.tracing);
    try {
      return await connection.transaction(run);
    } finally {
      client.release(connection.isInTransaction);
    }
  }

  /** Waits for the statements that are under way. */
  async close(): Promise<void> {
    await this.#opened.pool.end();
  }
}

/**
 * Opens a pool of at most `maxConnections`. Opening never fails, and waits for nothing.
 * @param options.isPooled `url` leads to a pooler that lends a connection for a transaction alone: what is planned once
 * per
 *   connection is planned each time there, and what was abandoned runs to its end or limit
 * @param options.statementTimeoutMs Postgres cancels a statement that takes longer
 * @param options.cancelBy where Postgres is asked to cancel a statement that was abandoned; see `until`
 * @param options.tracing where statements are told
 */
export function openDatabase(
  url: string,
  {
    isPooled = false,
    maxConnections = 10,
    applicationName = "tain",
    statementTimeoutMs = 0,
    cancelBy,
    tracing = null,
  }: {
    isPooled?: boolean;
    maxConnections?: number;
    applicationName?: string;
    statementTimeoutMs?: number;
    cancelBy?: Queries;
    tracing?: StatementTracing | null;
  } = {},
): Database {
  const pool = openPool(url, { maxConnections, applicationName });
  const told = { replicas: null, tracing };
  if (isPooled) {
    const run = statementTimeoutMs > 0 ? runWithin(statementTimeoutMs) : null;
    return new Database({ pool, names: new StatementNames(0), cancel: async () => false, run, ...told });
  }
  const cancel = cancelBy
    ? limitStatements(pool, {
        statementTimeoutMs,
        cancelProcess: (process) => cancelBy.count(sql`select pg_cancel_backend(${process})`),
      })
    : async () => false;
  return new Database({ pool, names: new StatementNames(MAX_NAMED), cancel, run: null, ...told });
}

/** A connection keeps each named statement, and filters combine without end: so the names are bounded. */
const MAX_NAMED = 300;

/** The names of prepared statements, by their texts. */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Undefined: too many statements have names already. */
  of(text: string): string | undefined {
    let name = this.#names.get(text);
    if (name === undefined && this.#names.size < this.#most) {
      name = createHash("sha256").update(text).digest("hex").slice(0, 16);
      this.#names.set(text, name);
    }
    return name;
  }
}

/** Tells the statements of whatever is under way; see `Tracing`. */
export interface StatementTracing {
  readonly isOn: boolean;
  within<T>(name: string, about: () => StatementAbout, run: () => Promise<T>): Promise<T>;
}

interface StatementAbout {
  kind: "client";
  attributes: Record<string, string>;
}

/** Neither a function nor the column of `extract(epoch from …)`. */
const TABLE = /\b(?:from|into|update|join)\s+"?([a-z_]+)(?![a-z_.(])/;

/** The kind of a statement and the first table that it names, such as `select issues`. Pure. */
function summaryOf(text: string): string {
  const [, verb = "statement"] = /^\s*(\w+)/.exec(text) ?? [];
  const [, table] = TABLE.exec(text) ?? [];
  return table === undefined ? verb : `${verb} ${table}`;
}

/** Values are no part of a statement's text; what is written out in it is left out as well. Pure. */
function aboutStatement(text: string): StatementAbout {
  const shown = text
    .replaceAll(/'(?:[^']|'')*'/g, "?")
    .replaceAll(/\s+/g, " ")
    .trim();
  return { kind: "client", attributes: { "db.system.name": "postgresql", "db.query.text": shown } };
}

function aboutTransaction(): StatementAbout {
  return { kind: "client", attributes: { "db.system.name": "postgresql" } };
}

/**
 * The results of statements of one transaction, which are sent without waiting for each other's answers. They run in
 * order.
 * @throws what went wrong first, once no statement is under way any more
 */
export async function together<const T extends readonly Promise<unknown>[]>(
  statements: T,
): Promise<{ -readonly [At in keyof T]: Awaited<T[At]> }> {
  const outcomes = await Promise.allSettled(statements);
  const failures = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length > 0) throw failures.find((failure) => !isAftermath(failure)) ?? failures[0];
  return await Promise.all(statements);
}

/** 25P02, in_failed_sql_transaction: an earlier statement has failed. */
function isAftermath({ code, cause }: { code?: unknown; cause?: { code?: unknown } }): boolean {
  return (cause?.code ?? code) === "25P02";
}
