import type { ReplicaState } from "../../db/replica.ts";
import type { SyncState } from "../../db/schema/states.ts";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { type QueueCounts, queueCounts } from "../queues/counts.ts";
import { QueueUnavailableError } from "../queues/unavailable.ts";
import { VERSION } from "../version.ts";
import { loadCommonProblems, loadRepositoryProblems } from "./problems.ts";

/** The answer of `GET /-/status`. It names private repositories. */
export interface Status<Quota = unknown> {
  version: string;
  /** `UPSTREAM_URL` */
  upstream: string;
  repositories: RepositoryStatus[];
  /** Failures of an installation, a token or the App's webhook, in words. They concern no single repository. */
  problems: string[];
  /** Null: unknown, since Redis does not answer. */
  queues: Record<string, QueueCounts> | null;
  /** The quota that upstream leaves each credential. */
  quota: Quota[];
  /** The replicas that callers' reads go to, as this process finds them. */
  replicas: ReplicaState[];
  /** When all first copies will be done; null when none is under way, or while that is not known. */
  forecast: Forecast | null;
}

/** The backfills: how much is left of them, and how fast they go. */
export interface Work {
  /** Pages still to be read. */
  requests: number;
  /** Pages read in a second, on average since the copies began. */
  perSecond: number;
}

export interface Forecast {
  /** ISO 8601, by our clock. */
  finishesAt: string;
  /** Whether the quota will run out meanwhile, so that the work has to wait. */
  waitsForQuota: boolean;
}

export interface RepositoryStatus {
  owner: string;
  /** The name after the owner; `*` for a selection `owner/*` that has led to no repository yet. */
  name: string;
  state: SyncState;
  /** How far the first full copy has come; null when it has not begun. */
  progress: BackfillProgress | null;
  /** When upstream last confirmed what we hold; ISO 8601, by our clock. */
  confirmedAt: string | null;
  /** Whole seconds since then. */
  lagSeconds: number | null;
  /** The problem in words. */
  problem: string | null;
}

interface BackfillProgress {
  /** The first phase that has not ended; null when all have. */
  phase: string | null;
  pages: number;
  resources: number;
  /** Null until upstream has said so for every phase. */
  expectedPages: number | null;
  /** 0 to 100; null as long as `expectedPages` is. */
  percent: number | null;
}

/** One row of `backfill_phases`, as the status query brings it. */
interface PhaseProgress {
  phase: string;
  pages: number;
  resources: number;
  expectedPages: number | null;
  isFinished: boolean;
  /** ISO 8601; null when it has not begun. */
  startedAt: string | null;
}

/**
 * @param forecast estimates when the remaining work will be done, from that work and the result of `quota`
 * @param replicas the states of the replicas
 */
export async function loadStatus<Quota>(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
  quota: () => Promise<Quota[]>,
  forecast: (work: Work, quota: Quota[], now: number) => Forecast | null = () => null,
  replicas: () => ReplicaState[] | Promise<ReplicaState[]> = () => [],
): Promise<Status<Quota>> {
  const [{ repositories, work }, problems, queues, quotas, replicaStates] = await Promise.all([
    loadRepositories(ctx),
    loadCommonProblems(ctx),
    countQueues(ctx),
    quota(),
    replicas(),
  ]);
  return {
    version: VERSION,
    upstream: ctx.config.upstreamUrl,
    repositories,
    problems,
    queues,
    quota: quotas,
    replicas: replicaStates,
    forecast: work && forecast(work, quotas, ctx.clock.now().getTime()),
  };
}

/** The queues' counts. Null: unknown, and the log says why. The status is useful without them. */
async function countQueues(
  ctx: Pick<Context, "queues" | "redis" | "log">,
): Promise<Record<string, QueueCounts> | null> {
  try {
    return await queueCounts(ctx);
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
    ctx.log.debug({ reason: error.message }, "The queues could not be counted for the status");
    return null;
  }
}

/**
 * The work left in the backfills under way. Null if there is none, or while upstream has not said how long it is. Pure.
 */
function workLeft(backfills: PhaseProgress[][], now: number): Work | null {
  const begun = backfills.map(backfillProgress).filter((progress) => progress !== null);
  const starts = backfills.flat().flatMap(({ startedAt }) => (startedAt === null ? [] : [Date.parse(startedAt)]));
  const seconds = (now - Math.min(...starts)) / 1_000;
  if (backfills.length === 0 || begun.length < backfills.length || !(seconds > 0)) return null;
  if (begun.some(({ expectedPages }) => expectedPages === null)) return null;
  const requests = sum(begun.map(({ expectedPages, pages }) => Math.max(0, (expectedPages ?? 0) - pages)));
  return { requests, perSecond: sum(begun.map(({ pages }) => pages)) / seconds };
}

/** Pure. Phases in the order in which they are worked through. */
function backfillProgress(phases: PhaseProgress[]): BackfillProgress | null {
  if (phases.length === 0) return null;
  const pages = sum(phases.map((phase) => phase.pages));
  const resources = sum(phases.map((phase) => phase.resources));
  const current = phases.find((phase) => !phase.isFinished);
  // A finished phase had as many pages as it read, whatever was expected of it.
  const expected = phases.map((phase) => (phase.isFinished ? phase.pages : phase.expectedPages));
  const expectedPages = expected.every((count) => count !== null) ? sum(expected) : null;
  const percent = !current ? 100 : percentOf(pages, expectedPages);
  return { phase: current?.phase ?? null, pages, resources, expectedPages, percent };
}

/** Below 100 until the end: the number of pages grows while they are read. */
function percentOf(pages: number, expectedPages: number | null): number | null {
  if (expectedPages === null) return null;
  return expectedPages === 0 ? 0 : Math.min(99, Math.floor((100 * pages) / expectedPages));
}

export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

interface RepositoryRow {
  /** Null for a selection. */
  repository_id: number | null;
  owner: string;
  name: string;
  state: SyncState;
  confirmed_at: Date | null;
  problem: string | null;
  phases: PhaseProgress[] | null;
}

async function loadRepositories({
  db,
  clock,
}: Pick<Context, "db" | "clock">): Promise<{ repositories: RepositoryStatus[]; work: Work | null }> {
  // Selections that have led to no mirrored repository yet are listed with the repositories: they are still being
  // resolved, or have a problem.
  const problems = await loadRepositoryProblems(db);
  const rows = await db.query<RepositoryRow>(sql`select * from (
    select s.repository_id, split_part(r.full_name, '/', 1) as owner, r.name, s.state, s.confirmed_at, s.problem, p.phases
      from repository_syncs s
      join repositories r on r.id = s.repository_id
      left join lateral (
        select json_agg(json_build_object('phase', b.phase, 'pages', b.pages, 'resources', b.resources,
            'expectedPages', b.expected_pages, 'isFinished', b.finished_at is not null, 'startedAt', b.started_at)
            order by b.finished_at nulls last, b.started_at nulls last, b.phase) as phases
          from backfill_phases b where b.repository_id = s.repository_id
      ) p on true
    union all
    select null, split_part(w.pattern, '/', 1), split_part(w.pattern, '/', 2), 'backfilling', null, p.problem, null
      from selections w left join problems p on p.task = 'select' and p.key = w.pattern
      -- Each by equality, so that none is looked for among all.
      where not exists (select from repository_syncs s join repositories r on r.id = s.repository_id
          where folded(r.full_name) = w.pattern)
        and not exists (select from repository_syncs s join former_names f using (repository_id) where f.full_name = w.pattern)
        and not (p.problem is null and split_part(w.pattern, '/', 2) = '*' and split_part(w.pattern, '/', 1) in (
          select folded(split_part(r.full_name, '/', 1)) from repository_syncs s join repositories r on r.id = s.repository_id))
    ) listed order by folded(owner), folded(name)`);
  const now = clock.now().getTime();
  const backfilling = rows.filter(({ state, problem }) => state === "backfilling" && problem === null);
  const backfills = backfilling.map(({ phases }) => phases ?? []);
  const repositories = rows.map(
    ({ repository_id: id, owner, name, state, confirmed_at: confirmedAt, problem, phases }) => ({
      owner,
      name,
      state,
      progress: backfillProgress(phases ?? []),
      confirmedAt: confirmedAt?.toISOString() ?? null,
      lagSeconds: confirmedAt ? Math.max(0, Math.round((now - confirmedAt.getTime()) / 1_000)) : null,
      // The reason of a paused or gone repository takes precedence over problems of its tasks.
      problem: problem ?? (id === null ? null : (problems.get(id) ?? null)),
    }),
  );
  return { repositories, work: workLeft(backfills, now) };
}
