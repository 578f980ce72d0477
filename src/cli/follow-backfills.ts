import { setTimeout as delay } from "node:timers/promises";
import type { Context } from "../context.ts";
import { loadStatus, type RepositoryStatus } from "../operations/status.ts";
import { type QuotaReport, quotaReport } from "../upstream/quota.ts";
import { Pacer, paceLine, progressLine, sampleOf } from "./backfill-pace.ts";
import { type Output, shownLength } from "./output.ts";

const TERMINAL_INTERVAL_MS = 500;
const PLAIN_INTERVAL_MS = 2_000;
/** More repositories than this do not fit above the summary line. */
const MAX_BARS = 20;
const CLEAR_DOWN = "\x1b[J";

type Followed = Pick<Context, "config" | "db" | "queues" | "redis" | "clock">;

/**
 * Shows how the first copies of the repositories that `concerns` picks come along, until none is under way or `signal`
 * aborts. Answers how they stand then. With --json each look is a document.
 */
export async function followBackfills(
  ctx: Followed,
  output: Output,
  { concerns, signal }: { concerns: (repository: RepositoryStatus) => boolean; signal: AbortSignal },
): Promise<RepositoryStatus[]> {
  const pacer = new Pacer();
  let drawn = 0;
  for (let isFirst = true; ; isFirst = false) {
    const status = await loadStatus(ctx, () => quotaReport(ctx));
    const repositories = status.repositories.filter(concerns);
    const pending = repositories.filter(isPending);
    const sample = sampleOf(repositories, ctx.clock.now().getTime());
    const pace = pacer.add(sample);
    const quota = quotaLeft(status.quota as QuotaReport[]);
    if (output.isTerminal) {
      const lines = [...bars(repositories), `${paceLine(sample, pace)}${quota === "" ? "" : `; ${quota}`}`];
      output.raw(`${drawn > 0 ? `\x1b[${drawn}A` : ""}\r${CLEAR_DOWN}${lines.map((line) => `${line}\n`).join("")}`);
      // A line that wraps takes more than one row.
      drawn = lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(shownLength(line) / output.width)), 0);
    } else if (!isFirst && (pending.length > 0 || signal.aborted)) {
      output.line(`Copying: ${repositories.length - pending.length} of ${repositories.length} done; ${paceLine(sample, pace)}${quota === "" ? "" : `; ${quota}`}`);
    }
    output.document({ event: "progress", repositories, ...sample, pace, quota: status.quota });
    if (pending.length === 0 || signal.aborted) return repositories;
    await delay(output.isTerminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}

/** One that has a problem is tried again by the scheduler, and nobody knows when: it is not waited for. */
function isPending({ state, problem }: RepositoryStatus): boolean {
  return state === "backfilling" && problem === null;
}

function bars(repositories: readonly RepositoryStatus[]): string[] {
  const unfinished = repositories.filter(({ state }) => state !== "live");
  const shown = repositories.length <= MAX_BARS ? repositories : unfinished.slice(0, MAX_BARS);
  const width = Math.max(0, ...shown.map(({ owner, name }) => owner.length + name.length + 1));
  const lines = shown.map((repository) => progressLine(repository, width));
  const rest = repositories.length - shown.length;
  return rest > 0 ? [...lines, `and ${rest} more`] : lines;
}

/** `quota left: core 4,990, graphql 4,998`: over all credentials. Empty while nobody knows. Pure. */
export function quotaLeft(reports: readonly Pick<QuotaReport, "bucket" | "remaining">[]): string {
  const left = new Map<string, number>();
  for (const { bucket, remaining } of reports) if (remaining !== null) left.set(bucket, (left.get(bucket) ?? 0) + remaining);
  if (left.size === 0) return "";
  return `quota left: ${[...left].map(([bucket, remaining]) => `${bucket} ${remaining.toLocaleString("en-US")}`).join(", ")}`;
}
