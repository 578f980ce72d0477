import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { levelOf } from "../failure.ts";
import type { WriteRefusal } from "../inbox/write-probe.ts";
import { type RoleLife, readLives } from "../operations/heartbeat.ts";
import { type Note, readNote } from "../operations/notes.ts";
import { countFailedJobs, type FailedJobs } from "../queues/failed.ts";
import { type QuotaReport, quotaReport } from "../upstream/quota/report.ts";
import { findLacking, type Lacking } from "./readiness.ts";

/** What is looked at to say whether all is well. A part is null if it could not be asked: that is not "none". */
export interface Signs {
  /** Epoch milliseconds, by our clock. */
  now: number;
  stores: Lacking[];
  processes: RoleLife[] | null;
  quota: QuotaReport[] | null;
  upstream: { outage: Note | null } | null;
  webhooks: { refused: Note | null } | null;
  jobs: FailedJobs | null;
  mirror: MirrorSigns | null;
}

/** How many there are, since when, and the first names. */
export interface Some {
  count: number;
  /** The earliest; null: none, or its time is not known. */
  since: Date | null;
  names: string[];
}

/** What the mirror's tables say. */
interface MirrorSigns {
  /** Whether a first copy is under way. */
  isCopying: boolean;
  failedDeliveries: Some;
  waitingDeliveries: Some;
  /** Hooks that we knew and that upstream shows no more, that cannot be checked, or that did not tell of a change. */
  hooks: Some;
  paused: Some;
  /** Live repositories that upstream has not confirmed for three intervals. */
  late: Some;
  /** What fails on its own: repositories, selections, installations. */
  failing: Some;
  /** Disabled targets. */
  targets: Some;
  /** Repositories whose last audit found differences. */
  drift: Some;
}

export type HealthContext = Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">;

/** Looks at everything at once. What does not answer is null. @param refusal whether Postgres takes writes */
export async function readSigns(ctx: HealthContext, refusal?: () => Promise<WriteRefusal | null>): Promise<Signs> {
  const stores = await findLacking(ctx, refusal);
  const lacks = (...checks: Lacking["check"][]) => stores.some(({ check }) => checks.includes(check));
  const hasPostgres = !lacks("postgres-away", "schema");
  const hasRedis = !lacks("redis-away");
  // A process cannot note in a full Redis that it lives.
  const hasBeats = hasRedis && !lacks("redis-full");
  const asked = async <T>(isThere: boolean, ask: () => Promise<T>): Promise<T | null> => {
    if (!isThere) return null;
    try {
      return await ask();
    } catch (error) {
      ctx.log[levelOf(error, "debug")]({ err: error }, "A part of the health is not known");
      return null;
    }
  };
  const [processes, quota, upstream, webhooks, jobs, mirror] = await Promise.all([
    asked(hasBeats, () => readLives(ctx)),
    asked(hasRedis && hasPostgres, () => quotaReport(ctx)),
    asked(hasRedis, async () => ({ outage: await readNote(ctx, "upstream") })),
    asked(hasRedis, async () => ({ refused: await readNote(ctx, "webhooks") })),
    asked(hasRedis, () => countFailedJobs(ctx)),
    asked(hasPostgres, () => readMirror(ctx)),
  ]);
  return { now: ctx.clock.now().getTime(), stores, processes, quota, upstream, webhooks, jobs, mirror };
}

/** A delivery that has waited longer is told. */
const DELIVERY_WAITS_MS = 60_000;
/** As docs/operations.md says. */
const LATE_INTERVALS = 3;
/** A change that no webhook told of is told for so long. */
const UNTOLD_MS = 3_600_000;

async function readMirror({ db, clock, config }: Pick<Context, "db" | "clock" | "config">): Promise<MirrorSigns> {
  const now = clock.now().getTime();
  const before = (ms: number) => new Date(now - ms);
  const late = before(LATE_INTERVALS * config.catchUpIntervalMs);
  const rows = await db.query<Some & { sign: keyof MirrorSigns }>(sql`
    with signs (sign, name, since) as (
      select 'isCopying', null::text, null::timestamptz from repository_syncs where state = 'backfilling'
      union all select 'failedDeliveries', event, settled_at from deliveries where status = 'failed'
      union all select 'waitingDeliveries', event, received_at from deliveries
        where status = 'pending' and received_at < ${before(DELIVERY_WAITS_MS)}
      union all select 'hooks', r.full_name, h.since from (
          select repository_id, since from problems where task = 'hook' and repository_id is not null
          union select k.repository_id, n.checked_until from hook_checks k
            join hook_checks n on n.repository_id = k.repository_id and n.hook_id = 0
            where k.hook_id > 0 and (k.checked_until is null or n.checked_until > k.checked_until)
              and not exists (select from deliveries d where d.repository_id = k.repository_id and d.hook_id > 0
                and d.received_at > n.checked_until)
          union select w.repository_id, w.untold_at from sweeps w where w.untold_at > ${before(UNTOLD_MS)}
            and exists (select from hook_checks k where k.repository_id = w.repository_id and k.hook_id > 0)
        ) h join repository_syncs s using (repository_id) join repositories r on r.id = s.repository_id
        where s.state = 'live'
      union all select 'paused', r.full_name, null from repository_syncs s join repositories r on r.id = s.repository_id
        where s.state = 'paused'
      union all select 'late', r.full_name, s.confirmed_at from repository_syncs s join repositories r on r.id = s.repository_id
        where s.state = 'live' and s.confirmed_at < ${late}
      union all select 'failing', coalesce(r.full_name, p.key), p.since from problems p
        left join repositories r on r.id = p.repository_id where p.task <> 'hook' or p.repository_id is null
      union all select 'targets', id::text, disabled_at from targets where disabled_at is not null
      union all select 'drift', r.full_name, a.finished_at from audits a join repositories r on r.id = a.repository_id
        where a.finished_at is not null and a.report->>'counts' <> '{}'
    )
    select sign, count(*) as count, min(since) as since,
        coalesce((array_agg(distinct name) filter (where name is not null))[1:3], '{}') as names
      from signs group by sign`);
  const of = (sign: keyof MirrorSigns): Some => {
    const { count = 0, since = null, names = [] } = rows.find((row) => row.sign === sign) ?? {};
    return { count, since, names };
  };
  return {
    isCopying: of("isCopying").count > 0,
    failedDeliveries: of("failedDeliveries"),
    waitingDeliveries: of("waitingDeliveries"),
    hooks: of("hooks"),
    paused: of("paused"),
    late: of("late"),
    failing: of("failing"),
    targets: of("targets"),
    drift: of("drift"),
  };
}
