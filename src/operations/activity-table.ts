import type { Queries } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { isMistake } from "../failure.ts";
import { waitUnlessAborted } from "../waits/repeated.ts";
import { ACTIVITY_FIGURES, type ActivityFigure } from "./activity.ts";
import type { Logger } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { Outage } from "./outage.ts";

const MINUTE_MS = 60_000;
/** Minutes become rows of this length once they are older than two hours. So a day has few rows. */
const QUARTER_MS = 15 * MINUTE_MS;
const MINUTES_KEPT_MS = 120 * MINUTE_MS;
const KEPT_MS = 25 * 60 * MINUTE_MS;
/** Clocks of several machines differ by less. A row that is further ahead was counted before the clock was put back. */
const AHEAD_MS = 5 * MINUTE_MS;
/** While Postgres is away, a process keeps so many minutes. */
const MOST_UNWRITTEN = 120;
/** A minute is shown this long after its end: by then all processes have written it. */
const WRITTEN_WITHIN_MS = 10_000;
const WRITE_TIMEOUT_MS = 5_000;

interface ActivityContext {
  db: Queries;
  clock: { now(): Date };
}

/** What was counted in a stretch of time. Null: no process has told of the figure, so it is not known. */
type ActivitySlot = { at: Date } & Record<ActivityFigure, number | null>;

interface Activity {
  /** Up to when minutes are shown: the last full one. */
  until: Date;
  /** The last hour, by the minute, the oldest first. A minute of which nothing is known is missing. */
  hour: ActivitySlot[];
  /** The last 24 full hours, by the quarter of an hour. */
  day: ActivitySlot[];
}

// No type can say that the keys are these.
const FIGURES = Object.keys(ACTIVITY_FIGURES) as readonly ActivityFigure[];
const COLUMNS = FIGURES.map((figure) => {
  const name = figure.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return { figure, name, column: sql.identifier(name), of: ACTIVITY_FIGURES[figure] };
});
/** The quarter of an hour in which a row lies. */
const QUARTER = sql`date_bin('15 minutes', began_at, timestamptz 'epoch')`;
const NAMES = sql.join(COLUMNS.map(({ column }) => column));
/** Of rows that are grouped, the columns in the order of `NAMES`. A sum of nothing but nulls is null. */
const MERGED = sql.join(COLUMNS.map(({ column, of }) => sql`${sql.script(of)}(${column})::bigint`));
/** The same, as `ActivitySlot` has them. */
const SHOWN = sql.join(
  COLUMNS.map(({ figure, column, of }) => sql`${sql.script(of)}(${column})::float8 as ${sql.script(`"${figure}"`)}`),
);
/** What was counted is added to a row that is there. So each process adds its own, and a late one is not lost. */
const ADDED = sql`on conflict (minutes, began_at) do update set ${sql.join(
  COLUMNS.map(({ column, of }) =>
    of === "sum"
      ? sql`${column} = coalesce(a.${column} + excluded.${column}, a.${column}, excluded.${column})`
      : sql`${column} = greatest(a.${column}, excluded.${column})`,
  ),
)}`;

/** Adds what this process counts to the table, a row for each minute. */
export class ActivityWriter {
  readonly #ctx: ActivityContext & { metrics: Pick<Metrics, "activity"> };
  readonly #outage: Outage;
  readonly #stopping = new AbortController();
  #unwritten: object[] = [];
  #countsSince: Date;
  #writing: Promise<void> | null = null;

  constructor(ctx: ActivityContext & { metrics: Pick<Metrics, "activity">; log: Logger }) {
    this.#ctx = ctx;
    this.#countsSince = ctx.clock.now();
    this.#outage = new Outage(ctx.log, "warn", {
      begins: "Postgres does not take what is counted for the charts of the operator's page",
      ends: "Postgres takes what is counted for the charts again",
    });
  }

  /** Writes at the end of each minute. */
  begin(): void {
    this.#writing ??= this.#writeOnAndOn();
  }

  async #writeOnAndOn(): Promise<void> {
    for (;;) {
      const now = this.#ctx.clock.now().getTime();
      await waitUnlessAborted(MINUTE_MS - (now % MINUTE_MS), this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      await this.write();
    }
  }

  /**
   * Writes what was counted since the last time. While Postgres is away, it is kept for the next time. What Postgres took
   * without being able to say so counts twice.
   */
  async write(): Promise<void> {
    const { db, clock, metrics } = this.#ctx;
    const at = new Date(Math.floor(this.#countsSince.getTime() / MINUTE_MS) * MINUTE_MS);
    this.#countsSince = clock.now();
    this.#unwritten.push({ began_at: at, ...Object.fromEntries(columnsOf(metrics.activity.take())) });
    const rows = this.#unwritten.splice(0).slice(-MOST_UNWRITTEN);
    try {
      const statement = sql`
        insert into activity as a (minutes, began_at, ${NAMES})
          select 1, began_at, ${MERGED} from json_populate_recordset(null::activity, ${sql.json(rows)}) group by began_at
        ${ADDED}`;
      await db.query(statement, { timeoutMs: WRITE_TIMEOUT_MS });
      this.#outage.met();
    } catch (error) {
      this.#outage.missed(error);
      if (!isMistake(error)) this.#unwritten.unshift(...rows);
    }
  }

  /** Writes what the last minute has brought. Call it after the work that is counted. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
    await this.write();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function columnsOf(sums: ReadonlyMap<ActivityFigure, number>): [column: string, sum: number][] {
  return COLUMNS.flatMap(({ figure, name }) => {
    const sum = sums.get(figure);
    return sum === undefined ? [] : [[name, sum] as [string, number]];
  });
}

/** Makes quarters of an hour of minutes that are older than two hours, and deletes what is older than a day. */
export async function pruneActivity({ db, clock }: ActivityContext): Promise<void> {
  const before = (ms: number) => new Date(clock.now().getTime() - ms);
  await db.query(sql`delete from activity where began_at < ${before(KEPT_MS)} or began_at > ${before(-AHEAD_MS)}`);
  // Of two processes that do it at once, the second one finds the minutes gone.
  await db.query(sql`
    with old as (delete from activity where minutes = 1 and began_at < ${before(MINUTES_KEPT_MS)} returning *)
    insert into activity as a (minutes, began_at, ${NAMES})
      select 15, ${QUARTER} as began_at, ${MERGED} from old group by 2
    ${ADDED}`);
}

/** What all processes have counted lately. */
export async function recentActivity({ db, clock }: ActivityContext): Promise<Activity> {
  const now = clock.now().getTime();
  const until = floorOf(now - WRITTEN_WITHIN_MS, MINUTE_MS);
  const quarter = floorOf(now - WRITTEN_WITHIN_MS, QUARTER_MS);
  const [hour, day] = await Promise.all([
    db.query<ActivitySlot>(sql`
      select began_at as at, ${SHOWN} from activity
        where minutes = 1 and began_at >= ${new Date(until - 3_600_000)} and began_at < ${new Date(until)}
        group by began_at order by 1`),
    db.query<ActivitySlot>(sql`
      select ${QUARTER} as at, ${SHOWN} from activity
        where began_at >= ${new Date(quarter - 24 * 3_600_000)} and began_at < ${new Date(quarter)}
        group by 1 order by 1`),
  ]);
  return { until: new Date(until), hour, day };
}

function floorOf(at: number, lengthMs: number): number {
  return Math.floor(at / lengthMs) * lengthMs;
}
