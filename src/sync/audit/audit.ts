import { and, eq, isNull, lt } from "drizzle-orm";
import { alone } from "../../../db/alone.ts";
import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { reasonOf } from "../../failure.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { auditPages, audits } from "../../schema.ts";
import { QuotaSpentError } from "../../upstream/protocol/errors.ts";
import { mayGoOn, whileMirrored } from "../following/while-mirrored.ts";
import { classifyFailure } from "../problems/causes.ts";
import { endNameless, PER_PAGE } from "../reads/pages.ts";
import { isOfPartAlone, PHASES, type Phase } from "../reads/phases.ts";
import { tombstonesOf } from "../reads/read-anew.ts";
import { giveWay } from "../turns/give-way.ts";
import { auditUnmet, findUnmet, labelsStillUnmet } from "./gone.ts";
import { type AuditedPage, auditPage } from "./page.ts";
import { type AuditReport, addDrift, type Drift, newReport, reportOf } from "./report.ts";
import { auditReviews } from "./reviews.ts";

/**
 * A full comparison of mirror and upstream, for about one request per hundred resources, and free for pages that
 * upstream confirms as unchanged. It finds changes that no `updated_at` shows: deletions, renamed users, changed
 * labels.
 */
const AUDIT_PHASES = ["repository", ...PHASES] as const;
export type AuditPhase = (typeof AUDIT_PHASES)[number];

// Other jobs ask for the same lists with the parameters in another order, so their validators differ. Their validators
// say that a page was merged; the audit's say that the page was equal.
const AUDITED_LISTS: Readonly<Record<Exclude<AuditPhase, "reviews">, { kind: Kind; path: string }>> = {
  // A repository has no parameters, so upstream overlooks this one.
  repository: { kind: "repository", path: "?page=1" },
  labels: { kind: "label", path: `/labels?page=1&${PER_PAGE}` },
  milestones: { kind: "milestone", path: `/milestones?${PER_PAGE}&state=all` },
  issues: { kind: "issue", path: `/issues?${PER_PAGE}&state=all&sort=created&direction=asc` },
  pulls: { kind: "pull_request", path: `/pulls?${PER_PAGE}&state=all&sort=created&direction=asc` },
  "issue comments": { kind: "issue_comment", path: `/issues/comments?${PER_PAGE}&sort=created&direction=asc` },
  "review comments": { kind: "review_comment", path: `/pulls/comments?${PER_PAGE}&sort=created&direction=asc` },
};

export interface AuditInput {
  repositoryId: number;
  /** Put right what is found; otherwise it is only reported. */
  repair: boolean;
  signal: AbortSignal;
  /** Stop after so many pages, where the next call goes on. */
  maxPages?: number;
  /** Begin a new audit, also where one has stopped on the way. */
  anew?: boolean;
  /** Leave out a part that fails, too. Otherwise its failure ends the call, and the next call tries it again. */
  leavesFailing?: boolean;
  /** Waits until the quota lets it go on; without it a spent quota ends the call. */
  untilQuota?: (error: QuotaSpentError) => Promise<void>;
  onProgress?: (progress: { phase: AuditPhase; report: AuditReport }) => void;
}

/** A run of an audit: where it stands, as it is stored. */
interface AuditRun {
  repository: MirroredRepository;
  startedAt: Date;
  repair: boolean;
  phase: AuditPhase;
  cursor: string | null;
  report: AuditReport;
}

/** Another audit of the repository is under way. Two at once would overwrite each other's place. */
export class AuditUnderWayError extends Error {
  override name = "AuditUnderWayError";
}

/**
 * Audits a live repository, or continues where the last audit stopped. Null: the repository is not mirrored, or not
 * copied yet.
 * @throws RepositoryUnavailableError when upstream does not show the repository: that is no drift, and nothing is
 *   deleted
 * @throws InterruptedError between two pages, once `signal` is aborted
 * @throws AuditUnderWayError when another process audits it
 * @throws RemovedError when it is removed meanwhile
 */
export async function audit(ctx: Context, input: AuditInput): Promise<AuditReport | null> {
  const repository = await ctx.jobReads.repository(input.repositoryId);
  if (!repository || repository.state === "backfilling") return null;
  const report = await alone(
    ctx,
    `audit ${repository.id}`,
    (signal) => auditAlone(ctx, repository, { ...input, signal }),
    {
      signal: input.signal,
    },
  );
  if (!report) throw new AuditUnderWayError(`Another audit of ${repository.fullName} is under way`);
  return report;
}

async function auditAlone(ctx: Context, repository: MirroredRepository, input: AuditInput): Promise<AuditReport> {
  const run = await beginOrResume(ctx, repository, input);
  let pagesLeft = input.maxPages ?? Number.POSITIVE_INFINITY;
  while (run.report.finishedAt === null && pagesLeft > 0) {
    await giveWay(ctx, input.signal);
    await mayGoOn(ctx, repository, { job: "audit", signal: input.signal });
    try {
      await stepOrLeave(ctx, run, input);
      pagesLeft -= 1;
    } catch (error) {
      if (!(error instanceof QuotaSpentError && input.untilQuota)) throw error;
      await input.untilQuota(error);
    }
    input.onProgress?.({ phase: run.phase, report: run.report });
  }
  return run.report;
}

async function beginOrResume(
  ctx: Context,
  repository: MirroredRepository,
  { repair, anew = false }: Pick<AuditInput, "repair" | "anew">,
): Promise<AuditRun> {
  const [stopped] = await ctx.db
    .select({
      startedAt: audits.startedAt,
      repair: audits.repair,
      phase: sql<AuditPhase>`${audits.phase}`,
      cursor: audits.cursor,
      report: sql<AuditReport>`${audits.report}`,
    })
    .from(audits)
    .where(and(eq(audits.repositoryId, repository.id), isNull(audits.finishedAt), eq(audits.repair, repair)));
  if (!anew && stopped) return { repository, ...stopped, report: reportOf(stopped.report) };
  const startedAt = ctx.clock.now();
  const report = newReport(repository.fullName, startedAt, repair);
  const phase = AUDIT_PHASES[0];
  const begun = { repair, startedAt, finishedAt: null, phase, cursor: null, report };
  await whileMirrored(ctx, repository, (tx) =>
    tx
      .insert(audits)
      .values({ repositoryId: repository.id, ...begun })
      .onConflictDoUpdate({ target: audits.repositoryId, set: begun }),
  );
  return { repository, startedAt, repair, phase, cursor: null, report };
}

/**
 * A part that upstream does not show is left out, and named in the report: pull requests are switched off, or a
 * permission is missing. Only the answer about the repository itself says that the repository is not shown.
 */
async function stepOrLeave(ctx: Context, run: AuditRun, { signal, leavesFailing }: AuditInput): Promise<void> {
  const { repository, phase, report } = run;
  // Reviews are read with their pull requests.
  const pulls = phase === "reviews" ? report.notCompared.find(({ part }) => part === "pulls") : undefined;
  if (pulls) return await leaveOut(ctx, run, "reviews", pulls.reason);
  try {
    await step(ctx, run, signal);
  } catch (error) {
    const isLeft =
      phase !== "repository" &&
      ((await isOfPartAlone(ctx, repository, error, "audit")) ||
        (leavesFailing && classifyFailure(error).kind === "failed"));
    if (!isLeft) throw error;
    await leaveOut(ctx, run, phase, reasonOf(error));
  }
}

async function leaveOut(ctx: Context, run: AuditRun, part: Phase, reason: string): Promise<void> {
  run.report.notCompared.push({ part, reason });
  await whileMirrored(ctx, run.repository, (tx) =>
    advance(ctx, tx, run, { next: null, keys: [], isUnchanged: false, drift: [], changing: [] }, 0),
  );
}

/**
 * Audits one page, or for reviews as many pull requests as a point buys. After the last page it asks for the rows that
 * no page had.
 */
async function step(ctx: Context, run: AuditRun, signal: AbortSignal): Promise<void> {
  const { repository, repair, phase } = run;
  if (phase === "reviews") {
    const seen = await auditReviews(ctx, repository, { ...run, signal });
    await whileMirrored(ctx, repository, (tx) => advance(ctx, tx, run, seen));
    return;
  }
  const { kind, path: list } = AUDITED_LISTS[phase];
  const path = run.cursor ?? `/repositories/${repository.id}${list}`;
  const seen = await auditPage(ctx, repository, { kind, path, repair, signal }, async (tx, found) => {
    // The phase ends only after a request for each row that no page had. Until then the cursor stays at the last page.
    await advance(ctx, tx, run, found.next === null ? { ...found, next: path } : found);
  });
  if (seen.next !== null) return;
  await endNameless(ctx, repository, kind, run.startedAt);
  const drift = kind === "repository" ? [] : await auditUnmetRows(ctx, run, kind, signal);
  await whileMirrored(ctx, repository, (tx) =>
    advance(ctx, tx, run, { next: null, keys: [], isUnchanged: false, drift, changing: [] }, 0),
  );
}

/** The rows of a kind that were on no page. */
async function auditUnmetRows(ctx: Context, run: AuditRun, kind: Kind, signal: AbortSignal): Promise<Drift[]> {
  const { repository, repair, startedAt } = run;
  await ctx.db
    .delete(auditPages)
    .where(
      and(eq(auditPages.repositoryId, repository.id), eq(auditPages.kind, kind), lt(auditPages.walkedAt, startedAt)),
    );
  const unmet = await findUnmet(ctx, repository, kind, startedAt);
  const drift: Drift[] = [];
  if (kind === "label") {
    for (const key of unmet.length > 0 ? await labelsStillUnmet(ctx, repository, unmet) : []) {
      drift.push({ kind, key, drift: "gone" });
      const tombstones = tombstonesOf(ctx, { kind, repositoryId: repository.id, key });
      if (repair) await whileMirrored(ctx, repository, (tx) => mergeObserved(tx, tombstones));
    }
    return drift;
  }
  for (const key of unmet) {
    await mayGoOn(ctx, repository, { job: "audit", signal });
    const found = await auditUnmet(ctx, repository, kind, key, repair);
    if (found === "off") break;
    drift.push(...found);
  }
  return drift;
}

/** Stores how far the run has come, unless another run has taken its place. */
async function advance(ctx: Context, tx: Transaction, run: AuditRun, seen: AuditedPage, pages = 1): Promise<void> {
  const { report, cursor: before, phase: phaseBefore } = run;
  report.pages += pages;
  if (seen.isUnchanged) report.unchangedPages += pages;
  report.resources += seen.keys.length;
  report.changing += seen.changing.length;
  addDrift(report, seen.drift);
  run.cursor = seen.next;
  if (seen.next === null) {
    const next = AUDIT_PHASES[AUDIT_PHASES.indexOf(run.phase) + 1];
    if (next) run.phase = next;
    else report.finishedAt = ctx.clock.now().toISOString();
  }
  const updated = await tx.count(sql`
    update audits set phase = ${run.phase}, cursor = ${run.cursor}, report = ${JSON.stringify(report)},
        finished_at = ${report.finishedAt}::timestamptz
      where repository_id = ${run.repository.id} and started_at = ${run.startedAt.toISOString()}::timestamptz
        and phase = ${phaseBefore} and cursor is not distinct from ${before}::text`);
  if (updated === 0) throw new AuditUnderWayError(`Another audit of ${run.repository.fullName} is under way`);
}
