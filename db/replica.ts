import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { reasonOf } from "../src/failure.ts";
import { type Client, clientOf, limitStatements, openPool, type Pool, type RunStatement } from "./lending.ts";
import { isPostgresConflict, isPostgresOutage } from "./outage.ts";
import { type Sql, sql } from "./sql.ts";

/** How far a server has got: which history of the database it follows, and where in that one's log it is. */
export interface LogPosition {
  /** Empty: the history has no name yet. */
  era: string;
  lsn: bigint;
}

/** What a replica says of itself. */
interface SeenReplica extends LogPosition {
  /** False: it takes writes, and so is none. */
  isReplica: boolean;
}

/** How a replica stands, for operators. */
export interface ReplicaStanding {
  /** The replica's host, port and database. */
  name: string;
  /** Why it is left out, in words; null: callers' reads go to it. */
  leftOut: string | null;
  /**
   * How much of the primary's log it had not replayed when it was last asked; null: not known, or of another history.
   */
  bytesBehind: number | null;
}

export interface ReplicaOptions {
  maxConnections: number;
  applicationName: string;
  /** The replica cancels a statement that takes longer. */
  statementTimeoutMs: number;
  /** How long a read waits for the replica to reach the primary's position. */
  waitMs: number;
  random: () => number;
  /** Where the primary is now. */
  position: () => Promise<LogPosition>;
  /** Called when the replica is left out, or read again. */
  changed: (standing: ReplicaStanding) => void;
}

/** The replica's position, read before the statement. The statement shows everything up to there, or more. */
const LOOK = sql`
  select pg_is_in_recovery() as is_replica, (pg_last_wal_replay_lsn() - '0/0')::text as lsn, (select id::text from eras) as era`;

const LOOKING = { name: "replica position", text: LOOK.compiled().text };

interface LookRow {
  is_replica: boolean;
  lsn: string | null;
  era: string | null;
}

/** A server that does not answer for this long is given up. */
const SILENT_MS = 1_000;
/** A statement may take its whole time, and its answer the way. */
const LATE_MS = 1_000;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1, 8];
/** When a replica that was left out is asked again: at first, and at most. */
const [FIRST_TRIAL_MS, LATEST_TRIAL_MS] = [200, 10_000];
/** After this long without a fault, the trials begin anew with the first wait. */
const PROVED_MS = 30_000;

/** The replica is not where it was said to be: it has started again, or another server answers at its address. */
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
  readonly #reads: Pool;
  /** One connection: asks where the replica is, and cancels. No read holds it up. */
  readonly #watch: pg.Pool;
  readonly #positions = new WeakMap<pg.QueryConfig, LogPosition>();
  #seen: SeenReplica | null = null;
  /** The latest position of the primary that was asked for here. */
  #wanted: LogPosition | null = null;
  #looking: Promise<SeenReplica> | null = null;
  #leftOut: string | null = "not asked yet";
  #readSince = Number.NEGATIVE_INFINITY;
  #trialMs = FIRST_TRIAL_MS;
  #timer: NodeJS.Timeout | undefined;
  #trying: Promise<void> | null = null;
  #isClosed = false;

  constructor(url: string, options: ReplicaOptions) {
    const { host, pathname } = new URL(url);
    this.name = host + pathname;
    this.#options = options;
    const { applicationName, maxConnections, statementTimeoutMs } = options;
    const common = { applicationName, connectTimeoutMs: SILENT_MS };
    const watch = openPool(url, { ...common, maxConnections: 1 });
    const pool = openPool(url, { ...common, maxConnections });
    const cancel = limitStatements(pool, {
      statementTimeoutMs,
      cancelProcess: (process) => watch.query("select pg_cancel_backend($1)", [process]),
    });
    this.#watch = watch;
    this.#reads = { pool, cancel, run: this.#run };
    this.#try();
  }

  /** Whether it is read. */
  get isRead(): boolean {
    return this.#leftOut === null;
  }

  get standing(): ReplicaStanding {
    const [seen, wanted] = [this.#seen, this.#wanted];
    const isKnown = seen !== null && wanted !== null && seen.era === wanted.era;
    const behind = isKnown ? Math.max(0, Number(wanted.lsn - seen.lsn)) : null;
    return { name: this.name, leftOut: this.#leftOut, bytesBehind: behind };
  }

  /** Where statements run that were asked `at` a position. */
  client(signal: AbortSignal | null): Client {
    return clientOf(this.#reads, signal);
  }

  /** The statement, which is to be answered from where the position is. */
  at(position: LogPosition, config: pg.QueryConfig): pg.QueryConfig {
    const late = { query_timeout: this.#options.statementTimeoutMs + LATE_MS };
    const asked = { ...late, ...config };
    this.#positions.set(asked, position);
    return asked;
  }

  /**
   * Whether it gets there in the time that a read waits. If not, it is left out. @throws what the replica's connection
   * does
   */
  async reaches(position: LogPosition): Promise<boolean> {
    this.#wanted = position;
    if (isThere(this.#seen, position)) return true;
    const end = performance.now() + this.#options.waitMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const seen = await this.#look();
      if (isThere(seen, position)) return true;
      const leftMs = end - performance.now();
      if (leftMs <= 0) break;
      await delay(Math.min(pauseMs, leftMs));
    }
    this.leaveOut(this.#shortfall(position));
    return false;
  }

  /** Sends no read there until it was tried again. @param why in words */
  leaveOut(why: string): void {
    if (this.#isClosed) return;
    const wasRead = this.#leftOut === null;
    this.#leftOut = why;
    if (!wasRead) return;
    if (performance.now() - this.#readSince > PROVED_MS) this.#trialMs = FIRST_TRIAL_MS;
    this.#options.changed(this.standing);
    this.#tryLater();
  }

  async tried(): Promise<void> {
    await this.#trying;
  }

  load(): { open: number; idle: number; waiting: number } {
    const { totalCount: open, idleCount: idle, waitingCount: waiting } = this.#reads.pool;
    return { open, idle, waiting };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#trying;
    await Promise.all([this.#reads.pool.end(), this.#watch.end()]);
  }

  /**
   * Goes out together with the question where the replica is, so it costs no more time, and no other server can answer.
   */
  readonly #run: RunStatement = async <Row extends pg.QueryResultRow>(
    client: pg.PoolClient,
    config: pg.QueryConfig,
  ) => {
    const looked = look(client);
    const answered = client.query<Row>(config);
    // Nobody waits for it where the replica says nothing; then its connection is closed.
    answered.catch(() => {});
    const seen = this.#note(await looked);
    const position = this.#positions.get(config);
    if (!position || isThere(seen, position)) return await answered;
    // Others get the connection next.
    await Promise.allSettled([answered]);
    throw new NotThereError(`${this.name} is not where it was`);
  };

  #note(seen: SeenReplica): SeenReplica {
    this.#seen = seen;
    return seen;
  }

  /** Those who wait ask together. */
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
    return `it did not catch up with the primary in ${waitMs} ms: ${this.standing.bytesBehind} bytes were missing`;
  }

  #try(): void {
    this.#trying = this.#trial().finally(() => {
      this.#trying = null;
    });
  }

  #tryIn(ms: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    // Web processes do not ask all at once.
    this.#timer = setTimeout(() => this.#try(), ms * (0.75 + this.#options.random() / 2)).unref();
  }

  #tryLater(): void {
    this.#tryIn(this.#trialMs);
    this.#trialMs = Math.min(2 * this.#trialMs, LATEST_TRIAL_MS);
  }

  /** Asks whether the replica has caught up, even if it is being read: perhaps nobody else will ask for long. */
  async #trial(): Promise<void> {
    const wasRead = this.isRead;
    const position = await this.#primaryPosition();
    if (position) {
      try {
        if (await this.reaches(position)) return this.#passed();
      } catch (error) {
        // Its replay stands against the question: it has not caught up.
        this.leaveOut(isPostgresConflict(error) ? this.#shortfall(position) : reasonOf(error));
      }
    }
    if (!wasRead) this.#tryLater();
    else if (this.isRead) this.#tryIn(LATEST_TRIAL_MS);
  }

  /** Null: without the primary nothing can be said of a replica. */
  async #primaryPosition(): Promise<LogPosition | null> {
    try {
      return await this.#options.position();
    } catch (error) {
      if (!isPostgresOutage(error)) this.leaveOut(untold(error));
      return null;
    }
  }

  #passed(): void {
    this.#tryIn(LATEST_TRIAL_MS);
    if (this.isRead) return;
    this.#leftOut = null;
    this.#readSince = performance.now();
    this.#options.changed(this.standing);
  }
}

/** Why no replica is read where the primary answers, but does not tell where it is. */
export function untold(error: unknown): string {
  return `the primary does not say where it is: ${reasonOf(error)}`;
}

function isThere(seen: SeenReplica | null, { era, lsn }: LogPosition): boolean {
  return seen?.isReplica === true && era !== "" && seen.era === era && seen.lsn >= lsn;
}

/** Whether the replica that runs the statements has got there. */
export async function hasReached(run: (look: Sql) => Promise<LookRow[]>, position: LogPosition): Promise<boolean> {
  return isThere(seenIn(await run(LOOK)), position);
}

async function look(client: Pick<pg.ClientBase, "query"> | pg.Pool): Promise<SeenReplica> {
  // The driver's types do not know the limit.
  const limited: pg.QueryConfig & { query_timeout: number } = { ...LOOKING, query_timeout: SILENT_MS };
  return seenIn((await client.query<LookRow>(limited)).rows);
}

function seenIn([row]: readonly LookRow[]): SeenReplica {
  return { isReplica: row?.is_replica === true, lsn: BigInt(row?.lsn ?? 0), era: row?.era ?? "" };
}
