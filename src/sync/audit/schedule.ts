import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { enqueueAudits } from "../../queues/queues.ts";
import { askSoon, endOrPause } from "../following/pause.ts";
import { RemovedError } from "../problems/errors.ts";
import { tryAlone } from "../problems/isolated.ts";
import { findProblems, problemName, rests, type Subject } from "../problems/problems.ts";
import { RepositoryUnavailableError } from "../reads/pages.ts";
import { AuditUnderWayError, audit } from "./audit.ts";
import { driftCount } from "./report.ts";

/** How often parts of audits are given out. */
export const AUDIT_TICK_MS = 60_000;
/** A part has this many pages: some seconds of work. */
const PAGES_A_PART = 25;
/** After so many failures in a row, some two hours, a list that still fails holds up the others no longer. */
const MOST_FAILURES = 12;

/**
 * Gives out enough parts to audit everything once within AUDIT_PERIOD. Audits under way come first, then repositories
 * by the age of their last audit, and at the end those whose audit fails. Parts that Redis forgets are given out again.
 */
export async function scheduleAudits(ctx: Context): Promise<void> {
  const due = new Date(ctx.clock.now().getTime() - ctx.config.auditPeriodMs);
  const sizes = await ctx.db.query<{ parts: number }>(sql`
    select coalesce(sum(1 + coalesce((a.report->>'pages')::int, 0) / ${PAGES_A_PART}), 0) as parts
      from repository_syncs s left join audits a using (repository_id) where s.state = 'live'`);
  // A repository that was never audited counts as one part until its pages are known.
  const parts = Math.max(1, Math.ceil(((sizes[0]?.parts ?? 0) * AUDIT_TICK_MS) / ctx.config.auditPeriodMs));
  const key = sql`s.repository_id::text`;
  const hasFailed = sql`exists (select from problems p where p.task = 'audit' and p.key = ${key})`;
  const rows = await ctx.db.query<{ id: number }>(sql`
    select s.repository_id as id from repository_syncs s left join audits a using (repository_id)
      where s.state = 'live' and (a.repository_id is null and s.backfilled_at < ${due} or a.finished_at < ${due}
        or (a.finished_at is null and a.started_at is not null)) and not ${rests(ctx, "audit", key)}
      order by ${hasFailed}, (a.started_at is not null and a.finished_at is null) desc, a.finished_at nulls first limit ${parts}`);
  await enqueueAudits(
    ctx,
    rows.map(({ id }) => id),
  );
}

/** One part of a repository's audit, with repair. An audit that fails is left alone for a while. */
export async function auditPart(
  ctx: Context,
  { repositoryId }: { repositoryId: number },
  signal: AbortSignal,
): Promise<void> {
  const subject = { task: "audit", key: String(repositoryId), repositoryId } as const;
  await tryAlone(ctx, subject, () => auditPartNow(ctx, subject, signal));
}

async function auditPartNow(
  ctx: Context,
  subject: Subject & { repositoryId: number },
  signal: AbortSignal,
): Promise<void> {
  const { repositoryId } = subject;
  try {
    const failures = (await findProblems(ctx, [subject])).get(problemName(subject))?.failures ?? 0;
    const leavesFailing = failures >= MOST_FAILURES;
    const report = await audit(ctx, { repositoryId, repair: true, signal, maxPages: PAGES_A_PART, leavesFailing });
    if (!report?.finishedAt) return;
    const { repository, pages, unchangedPages, resources, notCompared, counts } = report;
    ctx.log[driftCount(report) > 0 ? "warn" : "info"](
      { repository, pages, unchangedPages, resources, notCompared, drift: counts },
      driftCount(report) > 0 ? "An audit found and repaired drift" : "An audit found no drift",
    );
  } catch (error) {
    if (error instanceof AuditUnderWayError || error instanceof RemovedError) return;
    if (!(error instanceof RepositoryUnavailableError)) throw error;
    ctx.log.warn({ repositoryId, reason: error.message }, "Upstream does not show a mirrored repository");
    await endOrPause(ctx, repositoryId, { from: ["live", "paused"], problem: error.message });
    await askSoon(ctx, repositoryId);
    throw error;
  }
}
