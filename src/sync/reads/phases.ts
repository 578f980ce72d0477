import { and, eq } from "drizzle-orm";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { problems } from "../../schema.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { refuseRemoved } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/errors.ts";
import { tryAlone } from "../problems/isolated.ts";
import { forgetProblems, rests, type Subject } from "../problems/problems.ts";
import { RepositoryUnavailableError } from "./pages.ts";

/**
 * Every repository is backfilled in these phases, in this order. Upstream may show some and not others: a permission is
 * missing, issues are off, one page always fails. Then the other phases are backfilled and followed without it. Its
 * problems stand in the status as those of the task "part", whose name operators know.
 */
export const PHASES = [
  "labels",
  "milestones",
  "issues",
  "pulls",
  "issue comments",
  "review comments",
  "reviews",
] as const;
export type Phase = (typeof PHASES)[number];

/** Upstream shows neither issues nor pull requests, so there is nothing to follow. */
class NothingShownError extends AbsentError {
  override name = "NothingShownError";
}

function phaseSubject({ id }: MirroredRepository, phase: Phase): Subject {
  return { task: "part", key: `${id} ${phase}`, repositoryId: id };
}

/**
 * Does the work for one phase. False: upstream does not show it, the status says why, and it is left alone for a while.
 * @throws an error that is not the phase's fault, or that mostly passes within seconds; RepositoryUnavailableError when
 *   upstream does not show the whole repository
 */
export async function tryPhase(
  ctx: Context,
  repository: MirroredRepository,
  { phase, priority }: { phase: Phase; priority: Priority },
  work: () => Promise<unknown>,
): Promise<boolean> {
  const found: { gone?: RepositoryUnavailableError } = {};
  const isShown = await tryAlone(ctx, phaseSubject(repository, phase), async () => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof RepositoryUnavailableError) || (await isOfPartAlone(ctx, repository, error, priority)))
        throw error;
      found.gone = error;
    }
  });
  if (found.gone) throw found.gone;
  return isShown;
}

/**
 * Whether upstream does not show one part, and shows the repository itself. What it answers about a list says nothing
 * about the repository.
 */
export async function isOfPartAlone(
  ctx: Context,
  repository: MirroredRepository,
  error: unknown,
  priority: Priority,
): Promise<boolean> {
  if (error instanceof UpstreamRefusedError) return true;
  if (!(error instanceof RepositoryUnavailableError)) return false;
  await refuseRemoved(ctx, repository);
  const { kind } = await ctx.upstream.get(`/repositories/${repository.id}`, { priority });
  return kind === "ok" || kind === "unchanged";
}

/** The phase is not tried, since it depends on another one that is missing. */
export async function leavePhase(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  phase: Phase,
): Promise<void> {
  await forgetProblems(ctx.db, { task: "part", keys: [phaseSubject(repository, phase).key] });
}

/** @throws NothingShownError, with upstream's words, when both issues and pull requests are missing */
export async function refuseNothing(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  missing: readonly Phase[],
): Promise<void> {
  if (!missing.includes("issues") || !missing.includes("pulls")) return;
  const { task, key } = phaseSubject(repository, "issues");
  const [row] = await ctx.db
    .select({ problem: problems.problem })
    .from(problems)
    .where(and(eq(problems.task, task), eq(problems.key, key)));
  throw new NothingShownError(`Upstream shows neither issues nor pull requests: ${row?.problem ?? "it says no more"}`);
}

/** The phases that a repository's first copy still lacks; `due`: one of them may be tried again. */
export async function phasesNotBackfilled(
  ctx: Pick<Context, "db" | "clock" | "config">,
  repositoryId: number,
): Promise<{ phases: Set<string>; due: boolean }> {
  const rows = await ctx.db.query<{ phase: string; rests: boolean }>(sql`
    select b.phase, ${rests(ctx, "part", sql`b.repository_id || ' ' || b.phase`)} as rests from backfill_phases b
      where b.repository_id = ${repositoryId} and b.finished_at is null`);
  // Reviews belong to pull requests, and wait for that phase.
  const lacksPulls = rows.some(({ phase }) => phase === "pulls");
  const isDue = rows.some((row) => !row.rests && !(row.phase === "reviews" && lacksPulls));
  return { phases: new Set(rows.map(({ phase }) => phase)), due: isDue };
}
