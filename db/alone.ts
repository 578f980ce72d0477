import { randomUUID } from "node:crypto";
import type { Database } from "./database.ts";
import { isPostgresOutage } from "./outage.ts";
import { type Sql, sql } from "./sql.ts";

/**
 * How long work is held without being renewed. Shorter than a queue takes to hand a killed process's job over
 * (`workers/worker.ts`), so that the next process finds it free.
 */
const HELD_MS = 5_000;
const RENEW_MS = 1_500;
/**
 * The part of a hold after which work that could not be renewed is told to stop. The rest is its time to hear of that.
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
 * killed process holds nothing up for longer than `heldMs`. A process that stood still, or was cut off from Postgres,
 * soon loses its hold:
 * `work`'s signal aborts before another process can begin, if this one runs at all.
 * @param options.signal aborts `work`'s signal, too
 */
export async function alone<T>(
  { db, log }: Holding,
  name: string,
  work: (signal: AbortSignal) => Promise<T>,
  {
    signal,
    heldMs = HELD_MS,
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
  readonly #until: Sql;
  readonly #lost = new AbortController();
  /** What went wrong when it was last renewed. */
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
    // Where two ask at once, the second waits for the first's commit, and then sees its hold.
    const held = await this.#db.count(sql`
      insert into exclusive_work as w (name, holder, held_until) values (${this.#name}, ${this.#holder}, ${this.#until})
        on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
          where w.held_until < clock_timestamp()`);
    if (held === 0) return false;
    this.#holdFrom(askedAt);
    this.#plan();
    return true;
  }

  /**
   * Ends the hold. It never throws: the work's own outcome is what has to be told, and the hold ends by itself anyway.
   */
  async end(): Promise<void> {
    this.#hasEnded = true;
    clearTimeout(this.#next);
    clearTimeout(this.#giveUp);
    await this.#renewing;
    const [name, holder] = [this.#name, this.#holder];
    try {
      await this.#db.count(sql`delete from exclusive_work where name = ${name} and holder = ${holder}`);
    } catch (error) {
      if (!isPostgresOutage(error)) this.#log.warn({ name, err: error }, "What was held could not be let go");
    }
  }

  /** Counts from the moment at which the hold was asked for. Postgres counts from later, and so ends it no earlier. */
  #holdFrom(askedAt: number): void {
    clearTimeout(this.#giveUp);
    this.#givenUpAt = askedAt + GIVEN_UP_AFTER * this.#heldMs;
    // Also where a renewal waits for a connection, which no time-out of a statement bounds.
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
      // What nobody else has taken is still ours, however late.
      const renewed = await this.#db.count(
        sql`update exclusive_work set held_until = ${this.#until} where name = ${name} and holder = ${holder}`,
        { timeoutMs: Math.max(1, Math.floor(this.#givenUpAt - askedAt)) },
      );
      if (renewed === 0) return this.#lose();
      if (!this.#hasEnded) this.#holdFrom(askedAt);
    } catch (error) {
      this.#failure = error;
      this.#log.warn({ name, err: error }, "What must not run twice at once could not be renewed");
    }
    this.#plan();
  }

  #lose(options?: ErrorOptions): void {
    this.#lost.abort(new NotAloneError(`Another process may have begun ${this.#name} meanwhile`, options));
  }
}
