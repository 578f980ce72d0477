import type { Queries } from "../../db/database.ts";
import { holdersEnd, lockHolders } from "../../db/holders.ts";
import { sql } from "../../db/sql.ts";
import { RETRIES } from "../waits/retries.ts";

/** At most this many events are counted. With more, the locks are asked instead. */
const MOST_COUNTED = 1_000;

interface FoundEnd {
  /** Every place up to this one is settled. */
  place: number;
  /** False: later places may be settled too, but a transaction that does not end hides it. */
  isCertain: boolean;
}

/**
 * The end of the log: a statement that begins now sees every place up to it, except places that will never be used.
 * Transactions give out places side by side, so a later place may be committed first. A reader that went past an
 * earlier one would miss it.
 */
export class LogEnd {
  readonly #db: Queries;
  readonly #random: () => number;
  #known: number | null = null;
  #asking: Promise<FoundEnd> | null = null;
  #next: Promise<FoundEnd> | null = null;

  constructor(db: Queries, random: () => number) {
    this.#db = db;
    this.#random = random;
  }

  /**
   * The end of the log at some moment after this call. Calls during a look share the next look. @throws Postgres' error
   */
  now(): Promise<FoundEnd> {
    if (!this.#asking) return this.#begin();
    this.#next ??= this.#asking.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<FoundEnd> {
    this.#next = null;
    this.#asking = this.#find().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #find(): Promise<FoundEnd> {
    const known = this.#known;
    const end = (known === null ? null : await this.#unbroken(known)) ?? (await this.#settled());
    if (end === null) return { place: known ?? 0, isCertain: false };
    this.#known = Math.max(end, known ?? 0);
    return { place: this.#known, isCertain: true };
  }

  /** The last place, if no place is missing since the known end; null: some may be on their way. */
  async #unbroken(known: number): Promise<number | null> {
    const [row] = await this.#db.prepared<{ last: number; count: number; given: number }>(sql`
      select coalesce(max(id), ${known}) as last, count(*) as count,
          (select case when is_called then last_value else 0 end from event_place) as given
        from (select id from events where id > ${known} order by id limit ${MOST_COUNTED}) e`);
    if (!row || row.count === MOST_COUNTED) return null;
    // A place that was given out but is not visible may be committed any moment.
    return row.last === known + row.count && row.given <= row.last ? row.last : null;
  }

  /**
   * The last place that was given out, once all transactions of that time have ended; null: one of them does not end.
   */
  async #settled(): Promise<number | null> {
    const [row] = await this.#db.prepared<{ given: number }>(
      sql`select case when is_called then last_value else 0 end as given from event_place`,
    );
    // The locks are read after the number, so a transaction with an earlier place still locks the sequence or has ended.
    const look = () => this.#db.prepared<{ holder: string }>(lockHolders("event_place", "RowExclusiveLock"));
    const haveEnded = await holdersEnd(look, { policy: RETRIES.logEnd, random: this.#random });
    return haveEnded ? (row?.given ?? 0) : null;
  }
}
