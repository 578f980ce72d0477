import { randomUUID } from "node:crypto";
import type { Database } from "./database.ts";
import { isPostgresOutage } from "./outage.ts";
import { type SQL, sql } from "./sql.ts";

/**
 * How long a hold lasts unless it is renewed. A queue takes longer to hand on the job of a killed process
 * (`workers/worker.ts`), so the next process finds the work free.
 */
const ALONE_HELD_MS = 5_000;
const RENEW_MS = 1_500;
/**
 * If a hold could not be renewed for this part of its length, the work's signal aborts. The work has the rest to stop.
 */
const GIVEN_UP_AFTER = 0.8;

interface Holding {
  db: Database;
  log: { warn(what: object, text: string): void };
}

/** Another process may do the same work by now, so this one must stop. */
export class NotAloneError extends Error {
  override name = "NotAloneError";
}

/**
 * Does work that must not run twice at once in any process. Answers null when another process does it already.
 *
 * The hold is a row that is renewed while the work goes on, so it takes no session of its own and passes any pooler. A
 * killed process holds nothing up for longer than `heldMs`. A process that is frozen, or cut off from Postgres, loses
 * its hold: `work`'s signal aborts before another process can begin, unless the process itself is frozen.
 * @param options.signal aborts `work`'s signal, too
 */
export async function alone<T>(
  { db, log }: Holding,
  name: string,
  work: (signal: AbortSignal) => Promise<T>,
  {
    signal,
    heldMs = ALONE_HELD_MS,
    renewMs = RENEW_MS,
  }: { signal?: AbortSignal | undefined; heldMs?: number; renewMs?: number } = {},
): Promise<T | null> {
  const hold = new Hold({ db, log }, { name, heldMs, renewMs });
  if (!(await hold.take())) return null;
  try {
    return await work(signal ? AbortSignal.any([hold.signal, signal]) : hold.signal);
  } finally {
    await hold.end();
  }
}

/** The hold on a piece of work. Once taken, it is renewed until it ends or is lost. */
class Hold {
  readonly #db: Database;
  readonly #log: Holding["log"];
  readonly #name: string;
  readonly #heldMs: number;
  readonly #renewMs: number;
  readonly #holder = randomUUID();
  readonly #until: SQL;
  readonly #lost = new AbortController();
  /** The error of the last attempt to renew. */
  #failure: unknown;
  #givenUpAt = 0;
  #giveUp: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #hasEnded = false;

  constructor({ db, log }: Holding, { name, heldMs, renewMs }: { name: string; heldMs: number; renewMs: number }) {
    this.#db = db;
    this.#log = log;
    this.#name = name;
    this.#heldMs = heldMs;
    this.#renewMs = renewMs;
    this.#until = sql`clock_timestamp() + ${heldMs} * interval '1 ms'`;
  }

  /** Aborts when the hold is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** False: another process has it. */
  async take(): Promise<boolean> {
    const askedAt = performance.now();
    // If two processes try at once, the second waits for the first's commit, and then sees the first's hold.
    const held = await this.#db.count(sql`
      insert into exclusive_work as w (name, holder, held_until) values (${this.#name}, ${this.#holder}, ${this.#until})
        on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
          where w.held_until < clock_timestamp()`);
    if (held === 0) return false;
    this.#holdFrom(askedAt);
    this.#plan();
    return true;
  }

  /** Ends the hold. It never throws: an error here would hide the outcome of the work, and the hold expires anyway. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    clearTimeout(this.#next);
    clearTimeout(this.#giveUp);
    await this.#renewing;
    const [name, holder] = [this.#name, this.#holder];
    try {
      await this.#db.count(sql`delete from exclusive_work where name = ${name} and holder = ${holder}`);
    } catch (error) {
      if (!isPostgresOutage(error))
        this.#log.warn({ name, err: error }, "The hold on exclusive work could not be ended; it expires by itself");
    }
  }

  /**
   * Counts from the moment before the statement was sent. Postgres counts from a later moment, so its hold ends no
   * earlier.
   */
  #holdFrom(askedAt: number): void {
    clearTimeout(this.#giveUp);
    this.#givenUpAt = askedAt + GIVEN_UP_AFTER * this.#heldMs;
    // A timer of its own, because a renewal may wait for a connection, and no time-out of a statement bounds that wait.
    const ms = Math.max(0, this.#givenUpAt - performance.now());
    this.#giveUp = setTimeout(() => this.#lose({ cause: this.#failure }), ms);
  }

  #plan(): void {
    if (this.#hasEnded || this.signal.aborted) return;
    this.#next = setTimeout(() => {
      this.#renewing = this.#renew();
    }, this.#renewMs);
  }

  async #renew(): Promise<void> {
    const askedAt = performance.now();
    if (askedAt >= this.#givenUpAt) return this.#lose({ cause: this.#failure });
    const [name, holder] = [this.#name, this.#holder];
    try {
      // The hold can be renewed even after it expired, as long as no other process has taken it.
      const renewed = await this.#db.count(
        sql`update exclusive_work set held_until = ${this.#until} where name = ${name} and holder = ${holder}`,
        { timeoutMs: Math.max(1, Math.floor(this.#givenUpAt - askedAt)) },
      );
      if (renewed === 0) return this.#lose();
      if (!this.#hasEnded) this.#holdFrom(askedAt);
    } catch (error) {
      this.#failure = error;
      this.#log.warn({ name, err: error }, "The hold on exclusive work could not be renewed");
    }
    this.#plan();
  }

  #lose(options?: ErrorOptions): void {
    this.#lost.abort(new NotAloneError(`Another process may have begun ${this.#name} meanwhile`, options));
  }
}
