import { count, min } from "drizzle-orm";
import type { SyncState } from "../../db/schema/states.ts";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { levelOf } from "../failure.ts";
import { readLives } from "../operations/heartbeat.ts";
import { queueCounts } from "../queues/counts.ts";
import { problems, repositorySyncs } from "../schema.ts";
import type { QuotaReport } from "../upstream/quota/report.ts";

type FleetContext = Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log" | "metrics">;

/** One state of mirrored repositories. */
interface StateRow {
  state: SyncState;
  count: number;
  /** Null: upstream has confirmed none of them yet. */
  oldest: Date | null;
}

interface WaitingRow {
  deliveries: number;
  oldestDelivery: Date | null;
  marks: number;
  oldestMark: Date | null;
  audits: number;
  drifted: number;
  partial: number;
  missed: number;
  /** Null: no live repository is there. */
  oldestSweep: Date | null;
  untold: number;
  unhooked: number;
  hooked: number;
  /** When the oldest event was received that waits for a target which is sent to; null: none waits. */
  oldestUnsent: Date | null;
}

const UNTOLD_MS = 3_600_000;

/** The gauges whose values come from one store. */
interface Figures {
  /** Removes old values, such as the count of a state that no repository is in any more. */
  reset(): void;
  /** @throws whatever the store answers instead */
  read(): Promise<void>;
}

/**
 * Adds metrics about the whole mirror, read from the stores. Each web process reports the same values, so a dashboard
 * takes their maximum. While a store is away, its values are left out, and `tain_store_up` names it.
 */
export function watchFleet(ctx: FleetContext, quota: () => Promise<QuotaReport[]>): void {
  const { metrics, log } = ctx;
  const up = metrics.gauge("tain_store_up", "1: the store answers.", ["store"]);
  const stores = { postgres: mirrorFigures(ctx), redis: queueFigures(ctx) };
  const ofQuota = quotaFigures(ctx, quota);
  const isRead = async (figures: Figures, missing: (error: unknown) => void): Promise<boolean> => {
    try {
      await figures.read();
      return true;
    } catch (error) {
      missing(error);
      return false;
    }
  };
  metrics.beforeScrape(async () => {
    for (const figures of [...Object.values(stores), ofQuota]) figures.reset();
    await Promise.all(
      Object.entries(stores).map(async ([store, figures]) => {
        const isUp = await isRead(figures, (err) =>
          log[levelOf(err, "warn")]({ store, err }, "Figures of a store are missing"),
        );
        up.set({ store }, isUp ? 1 : 0);
      }),
    );
    await isRead(ofQuota, (err) => log[levelOf(err, "warn")]({ err }, "Figures of upstream's quota are missing"));
  });
}

/** The metrics about Postgres' contents. */
function mirrorFigures({ metrics, clock, db }: Pick<FleetContext, "metrics" | "clock" | "db">): Figures {
  const gauges = mirrorGauges(metrics);
  const read = async () => {
    const now = clock.now();
    const rows = await readMirror(db, now);
    setRepositories(gauges, rows, now);
    if (rows.waiting) setWaiting(gauges, rows.waiting, now);
  };
  const reset = () => {
    for (const each of [gauges.repositories, gauges.lag, gauges.problems]) each.reset();
  };
  return { reset, read };
}

type MirrorGauges = ReturnType<typeof mirrorGauges>;

function mirrorGauges(metrics: FleetContext["metrics"]) {
  return {
    repositories: metrics.gauge("tain_repositories", "Mirrored repositories, by their state.", ["state"]),
    lag: metrics.gauge(
      "tain_repository_lag_seconds",
      "Since upstream last confirmed the repository of this state that it was longest ago for.",
      ["state"],
    ),
    problems: metrics.gauge("tain_problems", "What fails by itself and says so in the status.", ["task"]),
    pending: metrics.gauge("tain_deliveries_pending", "Acknowledged deliveries that are not applied yet.", []),
    pendingAge: metrics.gauge("tain_deliveries_oldest_pending_seconds", "Age of the oldest of them.", []),
    marks: metrics.gauge("tain_marks_due", "Resources that upstream is to be asked about by now.", []),
    marksAge: metrics.gauge("tain_marks_oldest_due_seconds", "How long the first of them is due.", []),
    audits: metrics.gauge("tain_audited_repositories", "Repositories whose last audit has ended.", ["outcome"]),
    missed: metrics.gauge("tain_deliveries_missed", "Deliveries that upstream lists and we never got.", []),
    sweepAge: metrics.gauge(
      "tain_sweep_oldest_seconds",
      "Since the last sweep of the live repository that was swept longest ago.",
      [],
    ),
    untold: metrics.gauge(
      "tain_repositories_untold",
      "Repositories that a sweep of the last hour found changed without a webhook that told of it.",
      [],
    ),
    hooks: metrics.gauge("tain_hooks", "Repositories by whether upstream shows a webhook of ours.", ["state"]),
    targets: metrics.gauge("tain_targets", "Targets of events, by their state.", ["state"]),
    unsentAge: metrics.gauge(
      "tain_targets_oldest_waiting_seconds",
      "Age of the oldest event that waits for a target which is neither off nor disabled.",
      [],
    ),
  };
}

interface MirrorRows {
  states: StateRow[];
  failing: { task: string; count: number }[];
  targets: { state: string; count: number }[];
  waiting: WaitingRow | undefined;
}

async function readMirror(db: FleetContext["db"], now: Date): Promise<MirrorRows> {
  const [states, failing, targets, [waiting]] = await Promise.all([
    db
      .select({ state: repositorySyncs.state, count: count(), oldest: min(repositorySyncs.confirmedAt) })
      .from(repositorySyncs)
      .groupBy(repositorySyncs.state),
    db.select({ task: problems.task, count: count() }).from(problems).groupBy(problems.task),
    db.query<{ state: string; count: number }>(sql`
      select case when disabled_at is not null then 'disabled' when active then 'on' else 'off' end as state,
        count(*) as count from targets group by 1`),
    db.query<WaitingRow>(sql`select
      (select count(*) from deliveries where status = 'pending') as deliveries,
      (select min(received_at) from deliveries where status = 'pending') as "oldestDelivery",
      (select count(*) from refresh_marks where not_before <= ${now}) as marks,
      (select min(not_before) from refresh_marks where not_before <= ${now}) as "oldestMark",
      (select count(*) from audits where finished_at is not null) as audits,
      (select count(*) from audits where finished_at is not null and report->>'counts' <> '{}') as drifted,
      (select count(*) from audits where finished_at is not null and report->>'counts' = '{}'
        and report->>'notCompared' <> '[]') as partial,
      (select coalesce(sum(missed), 0)::float8 from hook_checks) as missed,
      (select min(coalesce(shown_at, added_at)) from repository_syncs left join sweeps using (repository_id)
        where state = 'live') as "oldestSweep",
      (select count(*) from sweeps where untold_at > ${new Date(now.getTime() - UNTOLD_MS)}) as untold,
      (select count(distinct repository_id) from hook_checks where hook_id = 0) as unhooked,
      (select count(distinct repository_id) from hook_checks where hook_id <> 0) as hooked,
      (select min(e.received_at) from target_cursors c join targets t on t.id = c.target_id
        cross join lateral (select received_at from events where repository_id = c.repository_id and id > c.done_id
          and id <= c.wanted_id order by id limit 1) e
        where t.active and t.disabled_at is null and c.wanted_id > c.done_id) as "oldestUnsent"`),
  ]);
  return { states, failing, targets, waiting };
}

function setRepositories(gauges: MirrorGauges, { states, failing, targets }: MirrorRows, now: Date): void {
  for (const { state, count, oldest } of states) {
    gauges.repositories.set({ state }, count);
    if (oldest) gauges.lag.set({ state }, secondsSince(oldest, now));
  }
  for (const { task, count } of failing) gauges.problems.set({ task }, count);
  for (const state of ["on", "off", "disabled"])
    gauges.targets.set({ state }, targets.find((one) => one.state === state)?.count ?? 0);
}

function setWaiting(gauges: MirrorGauges, waiting: WaitingRow, now: Date): void {
  gauges.pending.set(waiting.deliveries);
  gauges.pendingAge.set(secondsSince(waiting.oldestDelivery, now));
  gauges.marks.set(waiting.marks);
  gauges.marksAge.set(secondsSince(waiting.oldestMark, now));
  gauges.audits.set({ outcome: "drift" }, waiting.drifted);
  gauges.audits.set({ outcome: "partial" }, waiting.partial);
  gauges.audits.set({ outcome: "equal" }, waiting.audits - waiting.drifted - waiting.partial);
  gauges.missed.set(waiting.missed);
  gauges.sweepAge.set(secondsSince(waiting.oldestSweep, now));
  gauges.untold.set(waiting.untold);
  gauges.hooks.set({ state: "ours" }, waiting.hooked);
  gauges.hooks.set({ state: "none" }, waiting.unhooked);
  gauges.unsentAge.set(secondsSince(waiting.oldestUnsent, now));
}

/** Null means that nothing waits, and counts as zero seconds. */
function secondsSince(at: Date | null, now: Date): number {
  return at === null ? 0 : Math.max(0, (now.getTime() - at.getTime()) / 1_000);
}

/** The metrics about queues and processes, which Redis knows. */
function queueFigures(ctx: Pick<FleetContext, "config" | "clock" | "metrics" | "queues" | "redis">): Figures {
  const jobs = ctx.metrics.gauge("tain_queue_jobs", "Jobs in a queue.", ["queue", "state"]);
  const processes = ctx.metrics.gauge("tain_processes", "Processes that live, by what they are for.", ["role"]);
  const read = async () => {
    for (const { role, living } of await readLives(ctx)) processes.set({ role }, living);
    for (const [queue, counts] of Object.entries(await queueCounts(ctx)))
      for (const [state, count] of Object.entries(counts)) jobs.set({ queue, state }, count);
  };
  const reset = () => {
    for (const each of [jobs, processes]) each.reset();
  };
  return { reset, read };
}

/** The metrics about each credential's quota. */
function quotaFigures({ metrics }: Pick<FleetContext, "metrics">, quota: () => Promise<QuotaReport[]>): Figures {
  const labels = ["credential", "bucket"] as const;
  const limit = metrics.gauge("tain_quota_limit", "What upstream allows in a window.", labels);
  const remaining = metrics.gauge("tain_quota_remaining", "What is left of the window under way.", labels);
  const resetAt = metrics.gauge("tain_quota_reset_timestamp_seconds", "When the window ends.", labels);
  const refused = metrics.gauge(
    "tain_credential_refused",
    "1: it cannot be used: upstream rejects it, asks for silence, or its installation is suspended.",
    ["credential"],
  );
  const read = async () => {
    for (const one of await quota()) {
      const { credential, bucket } = one;
      refused.set({ credential }, one.problem !== null || one.blockedUntil ? 1 : 0);
      if (one.limit === null || one.remaining === null || one.resetAt === null) continue;
      limit.set({ credential, bucket }, one.limit);
      remaining.set({ credential, bucket }, one.remaining);
      resetAt.set({ credential, bucket }, one.resetAt.getTime() / 1_000);
    }
  };
  const reset = () => {
    for (const each of [limit, remaining, resetAt, refused]) each.reset();
  };
  return { reset, read };
}
