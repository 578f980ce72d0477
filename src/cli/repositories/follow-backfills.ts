import { stripVTControlCharacters } from "node:util";
import { isPostgresOutage } from "../../../db/outage.ts";
import type { Context } from "../../context.ts";
import { loadStatus, type RepositoryStatus, sum } from "../../health/status.ts";
import { type QuotaReport, quotaReport } from "../../upstream/quota/report.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { waitUnlessAborted } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { counted, type Output, PLAIN_MS, shownLength } from "../terminal/output.ts";
import { Pacer, paceLine, progressBar, progressLine, sampleOf } from "./backfill-pace.ts";

/** More repositories than this do not fit above the summary line. */
const MAX_BARS = 20;
const CLEAR_DOWN = "\x1b[J";

type Followed = Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "random" | "log">;

/** How often a log is told how far the first copies are. */
const LOGGED_MS = 60_000;

/**
 * Shows the progress of the backfills of those repositories that `concerns` accepts, until all have ended or
 * `signal` aborts. Returns the last states that were read. With --json each report is a document.
 * @param view "bars": a line for each repository, and a summary. "line": one for all, which is gone at the end
 */
export async function followBackfills(
  ctx: Followed,
  output: Output,
  {
    concerns,
    signal,
    view: form = "bars",
  }: { concerns: (repository: RepositoryStatus) => boolean; signal: AbortSignal; view?: "bars" | "line" },
): Promise<RepositoryStatus[]> {
  const view = new BackfillView(output, form);
  let repositories: RepositoryStatus[] = [];
  for (let lastRead = performance.now(); ; ) {
    try {
      const status = await loadStatus(ctx, () => quotaReport(ctx));
      lastRead = performance.now();
      repositories = status.repositories.filter(concerns);
      const pending = repositories.filter(isAwaited);
      view.show(repositories, {
        pending: pending.length,
        quota: status.quota,
        at: ctx.clock.now().getTime(),
      });
      if (pending.length === 0) return repositories;
    } catch (error) {
      // While the database restarts, the backfills only pause for a moment.
      if (!isPostgresOutage(error) || performance.now() - lastRead > RETRIES.backfills.withinMs) throw error;
    }
    if (signal.aborted) return repositories;
    await waitUnlessAborted(waitAfterMs(1, RETRIES.backfills, ctx.random), signal);
  }
}

interface Look {
  pending: number;
  quota: QuotaReport[];
  /** Epoch milliseconds. */
  at: number;
}

/** Shows the progress: bars drawn over each other on a terminal, otherwise a line or a document now and then. */
class BackfillView {
  readonly #output: Output;
  readonly #form: "bars" | "line";
  readonly #pacer = new Pacer();
  #rows = 0;
  #saidAt = performance.now();

  constructor(output: Output, form: "bars" | "line") {
    this.#output = output;
    this.#form = form;
  }

  show(repositories: RepositoryStatus[], { pending, quota, at }: Look): void {
    const output = this.#output;
    const sample = sampleOf(repositories, at);
    const pace = this.#pacer.add(sample);
    const summary = [paceLine(sample, pace), quotaLeft(quota)].filter((part) => part !== "").join("; ");
    const isOneLine = this.#form === "line";
    if (output.isTerminal) {
      const lines = isOneLine
        ? oneLine(repositories, { pending, summary: paceLine(sample, pace), width: output.width })
        : [...bars(repositories), summary];
      const up = this.#rows > 0 ? `\x1b[${this.#rows}A` : "";
      output.raw(`${up}\r${CLEAR_DOWN}${lines.map((line) => `${line}\n`).join("")}`);
      // A line that wraps takes more than one row.
      this.#rows = lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(shownLength(line) / output.width)), 0);
      return;
    }
    const everyMs = isOneLine && !output.json ? LOGGED_MS : PLAIN_MS;
    if ((pending > 0 || everyMs === LOGGED_MS) && performance.now() - this.#saidAt < everyMs) return;
    this.#saidAt = performance.now();
    output.document({ event: "progress", repositories, ...sample, pace, quota });
    output.line(`Copying: ${repositories.length - pending} of ${repositories.length} done; ${summary}`);
  }
}

/** A repository with a problem is not waited for, since the scheduler tries it again at an unknown time. */
function isAwaited({ state, problem }: RepositoryStatus): boolean {
  return state === "backfilling" && problem === null;
}

/** All copies as one line, no longer than the terminal is wide. Empty once none is awaited. */
function oneLine(
  repositories: readonly RepositoryStatus[],
  { pending, summary, width }: { pending: number; summary: string; width: number },
): string[] {
  if (pending === 0) return [];
  const shares = repositories.map(({ state, progress }) => (state === "live" ? 100 : (progress?.percent ?? 0)));
  const percent = Math.floor(sum(shares) / repositories.length);
  const line = `${progressBar(percent, false)} ${String(percent).padStart(3)} %  ${repositories.length - pending} of ${counted(repositories.length, "repository", "repositories")} copied; ${summary}`;
  return [shownLength(line) < width ? line : stripVTControlCharacters(line).slice(0, width - 1)];
}

function bars(repositories: readonly RepositoryStatus[]): string[] {
  const unfinished = repositories.filter(({ state }) => state !== "live");
  const shown = repositories.length <= MAX_BARS ? repositories : unfinished.slice(0, MAX_BARS);
  const width = Math.max(0, ...shown.map(({ owner, name }) => owner.length + name.length + 1));
  const lines = shown.map((repository) => progressLine(repository, width));
  const rest = repositories.length - shown.length;
  return rest > 0 ? [...lines, `and ${rest} more`] : lines;
}

/** `quota left: core 4,990, graphql 4,998`: over all credentials. Empty while it is unknown. Pure. */
function quotaLeft(reports: readonly Pick<QuotaReport, "bucket" | "remaining">[]): string {
  const left = new Map<string, number>();
  for (const { bucket, remaining } of reports)
    if (remaining !== null) left.set(bucket, (left.get(bucket) ?? 0) + remaining);
  if (left.size === 0) return "";
  return `quota left: ${[...left].map(([bucket, remaining]) => `${bucket} ${remaining.toLocaleString("en-US")}`).join(", ")}`;
}
