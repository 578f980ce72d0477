import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import type { Priority } from "../../upstream/client/upstream.ts";
import { refuseRemoved } from "../following/while-mirrored.ts";
import { AbsentError } from "../problems/causes.ts";
import { tryAlone } from "../problems/isolated.ts";
import { forgetProblems, rests, type Subject } from "../problems/problems.ts";
import { RepositoryUnavailableError } from "./pages.ts";

/**
 * The parts of a mirrored repository, in the order in which they are copied. Upstream may show some and not
 * others: a permission is missing, issues are off, one page always fails. Then the others are followed without them.
 */
export const PARTS = [
  "labels",
  "milestones",
  "issues",
  "pulls",
  "issue comments",
  "review comments",
  "reviews",
] as const;
export type CopiedPart = (typeof PARTS)[number];

/** Upstream shows neither issues nor pull requests, so there is nothing to follow. */
class NothingShownError extends AbsentError {
  override name = "NothingShownError";
}

function subjectOf({ id }: MirroredRepository, part: CopiedPart): Subject {
  return { task: "part", key: `${id} ${part}`, repositoryId: id };
}

/**
 * Does the work for one part. False: upstream does not show it, the status says why, and it is left alone for a while.
 * @throws what is not the part's fault, or mostly passes within seconds; RepositoryUnavailableError when the whole
 *   repository is not shown
 */
export async function tryPart(
  ctx: Context,
  repository: MirroredRepository,
  { part, priority }: { part: CopiedPart; priority: Priority },
  work: () => Promise<unknown>,
): Promise<boolean> {
  const found: { gone?: RepositoryUnavailableError } = {};
  const isShown = await tryAlone(ctx, subjectOf(repository, part), async () => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof RepositoryUnavailableError) || (await isRepositoryShown(ctx, repository, priority)))
        throw error;
      found.gone = error;
    }
  });
  if (found.gone) throw found.gone;
  return isShown;
}

async function isRepositoryShown(ctx: Context, repository: MirroredRepository, priority: Priority): Promise<boolean> {
  await refuseRemoved(ctx, repository);
  const { kind } = await ctx.upstream.get(`/repositories/${repository.id}`, { priority });
  return kind === "ok" || kind === "unchanged";
}

/** The part is not tried, since it depends on another one that is missing. */
export async function leavePart(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  part: CopiedPart,
): Promise<void> {
  await forgetProblems(ctx.db, { task: "part", keys: [subjectOf(repository, part).key] });
}

/** @throws NothingShownError when of these parts neither issues nor pull requests are shown, in upstream's words */
export async function refuseNothing(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  missing: readonly CopiedPart[],
): Promise<void> {
  if (!missing.includes("issues") || !missing.includes("pulls")) return;
  const [row] = await ctx.db.query<{ problem: string }>(sql`
    select problem from problems where task = 'part' and key = ${subjectOf(repository, "issues").key}`);
  throw new NothingShownError(`Upstream shows neither issues nor pull requests: ${row?.problem ?? "it says no more"}`);
}

/** The parts that the copy of a repository still lacks; `due`: one of them may be tried again. */
export async function partsNotCopied(
  ctx: Pick<Context, "db" | "clock" | "config">,
  repositoryId: number,
): Promise<{ parts: Set<string>; due: boolean }> {
  const rows = await ctx.db.query<{ phase: string; rests: boolean }>(sql`
    select b.phase, ${rests(ctx, "part", sql`b.repository_id || ' ' || b.phase`)} as rests from backfill_phases b
      where b.repository_id = ${repositoryId} and b.finished_at is null`);
  // Reviews are those of pull requests, and wait for them.
  const lacksPulls = rows.some(({ phase }) => phase === "pulls");
  const isDue = rows.some((row) => !row.rests && !(row.phase === "reviews" && lacksPulls));
  return { parts: new Set(rows.map(({ phase }) => phase)), due: isDue };
}
