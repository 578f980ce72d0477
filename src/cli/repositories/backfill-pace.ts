import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type RepositoryStatus, sum } from "../../health/status.ts";
import { counted, grouped, spanOf, styled } from "../terminal/output.ts";

/** How much of the backfills is done, at a moment. */
export interface Sample {
  /** Epoch milliseconds. */
  at: number;
  pages: number;
  /** Null until upstream has said so for every repository. */
  expectedPages: number | null;
  resources: number;
}

export function sampleOf(repositories: readonly RepositoryStatus[], at: number): Sample {
  const progresses = repositories.map(({ progress }) => progress);
  const isKnown = progresses.every((progress) => progress?.expectedPages != null);
  return {
    at,
    pages: sum(progresses.map((progress) => progress?.pages ?? 0)),
    expectedPages: isKnown ? sum(progresses.map((progress) => progress?.expectedPages ?? 0)) : null,
    resources: sum(progresses.map((progress) => progress?.resources ?? 0)),
  };
}

export interface BackfillPace {
  resourcesPerSecond: number;
  /** How long the rest will take at this pace; null while that is unknown. */
  remainingMs: number | null;
}

/** The pace between two samples; null when nothing was read between them. Pure. */
export function paceBetween(before: Sample, now: Sample): BackfillPace | null {
  const ms = now.at - before.at;
  const pages = now.pages - before.pages;
  if (ms <= 0 || pages <= 0) return null;
  const left = now.expectedPages === null ? null : Math.max(0, now.expectedPages - now.pages);
  return {
    resourcesPerSecond: Math.max(0, now.resources - before.resources) / (ms / 1_000),
    remainingMs: left === null ? null : (left * ms) / pages,
  };
}

const PACE_WINDOW_MS = 30_000;

/** The pace of the last half minute, from samples as they come. */
export class Pacer {
  readonly #samples: Sample[] = [];

  add(sample: Sample): BackfillPace | null {
    this.#samples.push(sample);
    // The oldest sample that is kept is the last one from before the window.
    const begin = this.#samples.findLastIndex(({ at }) => sample.at - at > PACE_WINDOW_MS);
    if (begin > 0) this.#samples.splice(0, begin);
    return paceBetween(this.#samples[0] ?? sample, sample);
  }
}

/** Each repository's pace since its backfill began, for a reader who has not watched it. */
export async function loadPaces({ db, clock }: Pick<Context, "db" | "clock">): Promise<Map<string, BackfillPace>> {
  const rows = await db.query<{
    full_name: string;
    started_at: Date;
    pages: number;
    expected: number | null;
    resources: number;
  }>(sql`
    select r.full_name, min(b.started_at) as started_at, sum(b.pages) as pages, sum(b.resources) as resources,
      case when bool_and(b.finished_at is not null or b.expected_pages is not null)
        then sum(case when b.finished_at is not null then b.pages else b.expected_pages end) end as expected
    from backfill_phases b join repository_syncs s on s.repository_id = b.repository_id join repositories r on r.id = b.repository_id
    where s.state = 'backfilling' and b.started_at is not null group by r.full_name`);
  const at = clock.now().getTime();
  const paces = rows.map(({ full_name: name, started_at: startedAt, pages, expected, resources }) => {
    const begun = { at: startedAt.getTime(), pages: 0, expectedPages: null, resources: 0 };
    return [name, paceBetween(begun, { at, pages, expectedPages: expected, resources })] as const;
  });
  return new Map(paces.filter((entry): entry is [string, BackfillPace] => entry[1] !== null));
}

/** `octo/demo  ████████░░░░  66 %  pulls`. Pure but for colours. */
export function progressLine(
  { owner, name, state, progress, problem }: RepositoryStatus,
  nameWidth: number,
  barWidth = 24,
): string {
  const label = `${owner}/${name}`.padEnd(nameWidth);
  if (problem !== null) return `${label}  ${styled("yellow", state)}: ${problem}`;
  // Upstream says how long some lists are only when they are begun: until then the whole is unknown.
  const percent = state === "live" ? 100 : progress === null ? 0 : progress.percent;
  const bar = progressBar(percent ?? 0, state === "live", barWidth);
  const share = percent === null ? "  ?  " : `${String(percent).padStart(3)} %`;
  return `${label}  ${bar} ${share}  ${wordsFor(state, progress)}`;
}

/** Pure but for colours. */
export function progressBar(percent: number, isDone: boolean, width = 24): string {
  const full = Math.round((percent * width) / 100);
  return styled(isDone ? "green" : "cyan", "█".repeat(full)) + styled("dim", "░".repeat(width - full));
}

function wordsFor(state: RepositoryStatus["state"], progress: RepositoryStatus["progress"]): string {
  if (state === "live") return styled("green", "live");
  if (state !== "backfilling") return state;
  return progress === null
    ? "waiting for its turn"
    : `${progress.phase ?? "finishing"}, ${counted(progress.pages, "page")} read`;
}

/** `2,412 resources in 38 of 44 pages, 1,250/s, about 2s to go`. Pure. */
export function paceLine({ pages, expectedPages, resources }: Sample, pace: BackfillPace | null): string {
  const of = expectedPages === null ? "" : ` of ${grouped(expectedPages)}`;
  const parts = [`${counted(resources, "resource")} in ${grouped(pages)}${of} pages`];
  if (pace) parts.push(`${grouped(pace.resourcesPerSecond)}/s`);
  if (pace?.remainingMs != null) parts.push(`about ${spanOf(pace.remainingMs)} to go`);
  return parts.join(", ");
}
