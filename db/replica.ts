import type pg from "pg";
import { reasonOf } from "../src/failure.ts";
import { jittered, waitAfterMs } from "../src/waits/backoff.ts";
import { lookUntil } from "../src/waits/repeated.ts";
import { RETRIES } from "../src/waits/retries.ts";
import { type Client, clientOf, limitStatements, openPool, type Pool, type RunStatement } from "./lending.ts";
import { isPostgresConflict, isPostgresOutage } from "./outage.ts";
import { compiled, type SQL, sql } from "./sql.ts";

/** A position in the log (WAL) of one history of the database. The era names the history. */
export interface LogPosition {
  /** The history's name. Empty: it has none yet. */
  era: string;
  lsn: bigint;
}

/** What a replica says of itself. */
interface SeenReplica extends LogPosition {
  /** False: the server takes writes, so it is a primary. */
  isReplica: boolean;
}

/** The state of a replica, for operators. */
export interface ReplicaState {
  /** The replica's host, port and database. */
  name: string;
  /** Why it is left out, in words; null: callers' reads go to it. */
  leftOut: string | null;
  /**
   * How many bytes of the primary's log the replica still had to replay when it was last asked. Null: unknown, or the
   * replica follows another history.
   */
  bytesBehind: number | null;
}

/** What a pool is for. Statements of one never take the connections of the other. */
export type Lane = "reads" | "searches";

/** The bounds of one pool. */
interface LaneBounds {
  maxConnections: number;
  /** The replica cancels a statement that takes longer. */
  statementTimeoutMs: number;
  isSerial?: boolean;
}

export interface ReplicaOptions {
  lanes: Readonly<Record<Lane, LaneBounds>>;
  applicationName: string;
  /** How long a read waits for the replica to reach the primary's position. */
  waitMs: number;
  /** Adds chance to waits, so that many web processes do not try at once. */
  random: () => number;
  /** Where the primary is now. */
  position: () => Promise<LogPosition>;
  /** Called when the replica is left out, or read again. */
  changed: (state: ReplicaState) => void;
}

/**
 * Reads the replica's position. It is sent before a statement, so the statement sees everything up to that position, or
 * more.
 */
const LOOK = sql`
  select pg_is_in_recovery() as is_replica, (pg_last_wal_replay_lsn() - '0/0')::text as lsn, (select id::text from eras) as era`;

const LOOKING = { name: "replica position", text: compiled(LOOK).text };

interface LookRow {
  is_replica: boolean;
  lsn: string | null;
  era: string | null;
}

/** A server that does not answer for this long is given up. */
const SERVER_SILENT_MS = 1_000;
/** The time for an answer's way, added to the time that a statement may take. */
const ANSWER_WAY_MS = 1_000;
/** After this long without a fault, the trials begin anew with the first wait. */
const PROVED_MS = 30_000;

/**
 * The server does not have the position that was seen before: it was restarted, or another server answers at its
 * address.
 */
class NotThereError extends Error {
  override name = "NotThereError";
}

/**
 * A replica of Postgres. It is left out of reads if it cannot be reached, is behind, follows another history than the
 * primary, or is no longer a replica. Then it is tried again, less and less often: it must reach the primary's position
 * in the time that a read waits.
 */
export class Replica {
  readonly name: string;
  readonly #options: ReplicaOptions;
  readonly #pools: Readonly<Record<Lane, Pool>>;
  /**
   * A pool with one connection, which asks for the replica's position and cancels statements. Reads do not use it, so
   * it is never held up.
   */
  readonly #watch: pg.Pool;
  readonly #positions = new WeakMap<pg.QueryConfig, LogPosition>();
  #seen: SeenReplica | null = null;
  /** The latest position of the primary that a read needed. */
  #wanted: LogPosition | null = null;
  #looking: Promise<SeenReplica> | null = null;
  #leftOut: string | null = "not asked yet";
  #readSince = Number.NEGATIVE_INFINITY;
  /** The trials since the replica was last proved. */
  #trials = 0;
  #timer: NodeJS.Timeout | undefined;
  #trying: Promise<void> | null = null;
  #isClosed = false;

  constructor(url: string, options: ReplicaOptions) {
    const { host, pathname } = new URL(url);
    this.name = host + pathname;
    this.#options = options;
    const { applicationName, lanes } = options;
    const common = { applicationName, connectTimeoutMs: SERVER_SILENT_MS };
    const watch = openPool(url, { ...common, maxConnections: 1 });
    const cancelProcess = (process: number) => watch.query("select pg_cancel_backend($1)", [process]);
    const open = ({ maxConnections, ...bounds }: LaneBounds): Pool => {
      const pool = openPool(url, { ...common, maxConnections });
      return { pool, cancel: limitStatements(pool, { ...bounds, cancelProcess }), run: this.#run };
    };
    this.#watch = watch;
    this.#pools = { reads: open(lanes.reads), searches: open(lanes.searches) };
    this.#try();
  }

  /** Whether reads are sent to this replica. */
  get isRead(): boolean {
    return this.#leftOut === null;
  }

  get state(): ReplicaState {
    const [seen, wanted] = [this.#seen, this.#wanted];
    const isKnown = seen !== null && wanted !== null && seen.era === wanted.era;
    const behind = isKnown ? Math.max(0, Number(wanted.lsn - seen.lsn)) : null;
    return { name: this.name, leftOut: this.#leftOut, bytesBehind: behind };
  }

  /** Runs the statements that `at` makes. */
  client({ signal, lane }: { signal: AbortSignal | null; lane: Lane }): Client {
    return clientOf(this.#pools[lane], signal);
  }

  /** The statement, with the log position that the replica must have reached before it answers. */
  at(position: LogPosition, config: pg.QueryConfig, lane: Lane): pg.QueryConfig {
    const late = { query_timeout: this.#options.lanes[lane].statementTimeoutMs + ANSWER_WAY_MS };
    const asked = { ...late, ...config };
    this.#positions.set(asked, position);
    return asked;
  }

  /**
   * Whether the replica reaches the position within the time that a read waits. If not, the replica is left out.
   * @throws the error of the replica's connection
   */
  async reaches(position: LogPosition): Promise<boolean> {
    this.#wanted = position;
    if (hasReplayed(this.#seen, position)) return true;
    const look = async () => hasReplayed(await this.#look(), position);
    const { waitMs: withinMs, random } = this.#options;
    const isReached = await lookUntil(look, { policy: { ...RETRIES.replicaPosition, withinMs }, random });
    if (!isReached) this.leaveOut(this.#shortfall(position));
    return isReached;
  }

  /** Sends no reads to the replica until a trial succeeds. @param why in words */
  leaveOut(why: string): void {
    if (this.#isClosed) return;
    const wasRead = this.#leftOut === null;
    this.#leftOut = why;
    if (!wasRead) return;
    if (performance.now() - this.#readSince > PROVED_MS) this.#trials = 0;
    this.#options.changed(this.state);
    this.#tryLater();
  }

  async tried(): Promise<void> {
    await this.#trying;
  }

  load(): { open: number; idle: number; waiting: number } {
    const pools = [this.#pools.reads.pool, this.#pools.searches.pool];
    const sum = (of: (pool: pg.Pool) => number) => pools.reduce((all, pool) => all + of(pool), 0);
    return {
      open: sum(({ totalCount }) => totalCount),
      idle: sum(({ idleCount }) => idleCount),
      waiting: sum(({ waitingCount }) => waitingCount),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#trying;
    const { reads, searches } = this.#pools;
    await Promise.all([reads.pool.end(), searches.pool.end(), this.#watch.end()]);
  }

  /**
   * Sends the statement together with the question for the replica's position. This saves a round trip, and proves that
   * the same server answers both.
   */
  readonly #run: RunStatement = async <Row extends pg.QueryResultRow>(
    client: pg.PoolClient,
    config: pg.QueryConfig,
  ) => {
    const looked = look(client);
    const answered = client.query<Row>(config);
    // If the replica stays silent, nobody awaits this promise: the connection is closed, and its rejection must not end
    // the process.
    answered.catch(() => {});
    const seen = this.#note(await looked);
    const position = this.#positions.get(config);
    if (!position || hasReplayed(seen, position)) return await answered;
    // The connection goes back to the pool only after both answers have arrived.
    await Promise.allSettled([answered]);
    throw new NotThereError(`${this.name} is not where it was`);
  };

  #note(seen: SeenReplica): SeenReplica {
    this.#seen = seen;
    return seen;
  }

  /** Reads that wait at the same time share one question. */
  #look(): Promise<SeenReplica> {
    this.#looking ??= look(this.#watch)
      .then((seen) => this.#note(seen))
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  #shortfall({ era }: LogPosition): string {
    const { waitMs } = this.#options;
    const seen = this.#seen;
    if (seen && !seen.isReplica) return "it takes writes itself, and so is no replica";
    if (seen && seen.era !== era) return "it follows another history of the database than the primary does";
    return `it did not catch up with the primary in ${waitMs} ms: ${this.state.bytesBehind} bytes were missing`;
  }

  #try(): void {
    this.#trying = this.#trial().finally(() => {
      this.#trying = null;
    });
  }

  #tryIn(ms: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#try(), ms).unref();
  }

  #tryLater(): void {
    this.#trials += 1;
    this.#tryIn(waitAfterMs(this.#trials, RETRIES.replica, this.#options.random));
  }

  /** A replica in use is asked, too, since no read may come for a long time. */
  #tryAsUsual(): void {
    this.#tryIn(jittered(RETRIES.replica.longestMs, this.#options.random));
  }

  /** Asks whether the replica has caught up. */
  async #trial(): Promise<void> {
    const wasRead = this.isRead;
    const position = await this.#primaryPosition();
    if (position) {
      try {
        if (await this.reaches(position)) return this.#passed();
      } catch (error) {
        // A conflict with the replay means that the replica has not caught up.
        this.leaveOut(isPostgresConflict(error) ? this.#shortfall(position) : reasonOf(error));
      }
    }
    if (!wasRead) this.#tryLater();
    else if (this.isRead) this.#tryAsUsual();
  }

  /** Null: the primary is away, so no replica can be judged. */
  async #primaryPosition(): Promise<LogPosition | null> {
    try {
      return await this.#options.position();
    } catch (error) {
      if (!isPostgresOutage(error)) this.leaveOut(untold(error));
      return null;
    }
  }

  #passed(): void {
    this.#tryAsUsual();
    if (this.isRead) return;
    this.#leftOut = null;
    this.#readSince = performance.now();
    this.#options.changed(this.state);
  }
}

/** The reason for leaving out all replicas: the primary answers, but does not give its position. */
export function untold(error: unknown): string {
  return `the primary does not say where it is: ${reasonOf(error)}`;
}

function hasReplayed(seen: SeenReplica | null, { era, lsn }: LogPosition): boolean {
  return seen?.isReplica === true && era !== "" && seen.era === era && seen.lsn >= lsn;
}

/** Whether the replica behind `run` has reached the position. */
export async function hasReached(run: (look: SQL) => Promise<LookRow[]>, position: LogPosition): Promise<boolean> {
  return hasReplayed(seenIn(await run(LOOK)), position);
}

/** The name of the history that the server behind `run` follows. */
export async function eraOf(run: (look: SQL) => Promise<LookRow[]>): Promise<string> {
  return seenIn(await run(LOOK)).era;
}

async function look(client: Pick<pg.ClientBase, "query"> | pg.Pool): Promise<SeenReplica> {
  // `query_timeout` is missing in the driver's types.
  const limited: pg.QueryConfig & { query_timeout: number } = { ...LOOKING, query_timeout: SERVER_SILENT_MS };
  return seenIn((await client.query<LookRow>(limited)).rows);
}

function seenIn([row]: readonly LookRow[]): SeenReplica {
  return { isReplica: row?.is_replica === true, lsn: BigInt(row?.lsn ?? 0), era: row?.era ?? "" };
}
