import { setTimeout as sleep } from "node:timers/promises";
import type { Queries } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { PLACING } from "./log.ts";

/** How long to wait before looking again at transactions that give out places: at first, and at most. They end within ms. */
const FIRST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 200;
/** After some three seconds the end is said to be where it was. */
const MOST_LOOKS = 20;

/** So many events at most are looked at one by one. Beyond that the locks are asked at once. */
const MOST_COUNTED = 1_000;

interface FoundEnd {
  /** Everything up to there is settled. */
  place: number;
  /** False: there may be more behind it, and a transaction that does not end keeps that from being known. */
  isCertain: boolean;
}

/**
 * Where the log ends: every place up to there is taken, and shown by statements that begin now, or will never be. Places are
 * given out in transactions side by side, so a later one may be committed first. Who read past an earlier one would miss it.
 */
export class LogEnd {
  readonly #db: Queries;
  #known: number | null = null;
  #asking: Promise<FoundEnd> | null = null;
  #next: Promise<FoundEnd> | null = null;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** The end, not older than this question. Those who ask meanwhile share the next answer. @throws whatever Postgres refuses */
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

  /** The last place, if none is lacking since the known end; null: some may be on their way. */
  async #unbroken(known: number): Promise<number | null> {
    const [row] = await this.#db.prepared<{ last: number; count: number; given: number }>(sql`
      select coalesce(max(id), ${known})::float8 as last, count(*)::int as count,
          (select case when is_called then last_value else 0 end from event_place)::float8 as given
        from (select id from events where id > ${known} order by id limit ${MOST_COUNTED}) e`);
    if (!row || row.count === MOST_COUNTED) return null;
    // A place that was given out and is not to be seen may be committed any moment.
    return row.last === known + row.count && row.given <= row.last ? row.last : null;
  }

  /** The last place that was given out, once all that gave out places at that time are over; null: one of them goes on and on. */
  async #settled(): Promise<number | null> {
    const [row] = await this.#db.prepared<{ given: number }>(
      sql`select case when is_called then last_value else 0 end::float8 as given from event_place`,
    );
    // Asked after the number: what has given out one up to there holds the lock, or is over.
    let holders = await this.#holders(null);
    let waitMs = FIRST_WAIT_MS;
    for (let look = 0; holders.length > 0; look++) {
      if (look === MOST_LOOKS) return null;
      await sleep(waitMs);
      waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      holders = await this.#holders(holders);
    }
    return row?.given ?? 0;
  }

  /** The transactions that may be giving out places, those among `some` where that is given. */
  async #holders(some: readonly string[] | null): Promise<string[]> {
    const rows = await this.#db.prepared<{ holder: string }>(sql`
      select l.virtualtransaction || ' ' || l.pid as holder from pg_locks l
        where l.locktype = 'advisory' and l.classid = 0 and l.objid = ${PLACING} and l.objsubid = 1 and l.granted
          and l.database = (select oid from pg_database where datname = current_database())`);
    const holders = rows.map(({ holder }) => holder);
    return some === null ? holders : holders.filter((holder) => some.includes(holder));
  }
}
