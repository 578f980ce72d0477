import { and, eq, gt, isNotNull } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { backfillPhases, repositorySyncs } from "../../schema.ts";
import { nullable, object, type Read, whole } from "../../upstream/protocol/field-readers.ts";
import { RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import { forgetProgress } from "../following/backfill-progress.ts";
import { endOrPause } from "../following/pause.ts";
import { FOLLOWED, move } from "../following/state.ts";
import { mayGoOn, whileMirrored } from "../following/while-mirrored.ts";
import { classifyFailure } from "../problems/causes.ts";
import { RemovedError } from "../problems/errors.ts";
import { tryAlone } from "../problems/isolated.ts";
import {
  BY_CHANGE,
  fetchAndStorePage,
  knownUpTo,
  OVERLAP_MS,
  PAGE_SIZE,
  PER_PAGE,
  RepositoryUnavailableError,
  type StoredPage,
} from "../reads/pages.ts";
import { leavePhase, PHASES, type Phase, refuseNothing, tryPhase } from "../reads/phases.ts";
import { fetchAndStoreRepository } from "../reads/repository.ts";
import { giveWay } from "../turns/give-way.ts";
import { backfillReviews, placeOfChanges } from "./reviews.ts";
import { analyzeCopied } from "./statistics.ts";
import { addressOf, resumedCursor, stepAfter, storedCursor } from "./windows.ts";

/**
 * Makes a repository's first copy, phase by phase and page by page. Each page is stored in one transaction with the
 * place of the next page, and only then is that page asked for. So a crash costs at most the page under way, and memory
 * holds one page of any repository.
 */
const JOB = "backfill";

/**
 * Lists are read by creation where upstream offers that order, so that rows do not move between pages. Deleted issues
 * do no harm, since pages of issues begin at a cursor. Pages of comments have no cursor, so comments are read by
 * change. Their addresses differ from a catch-up's, since a backfill goes through pages in windows: see `windows.ts`.
 */
const BACKFILLED_LISTS: Readonly<Record<Exclude<Phase, "reviews">, { kind: Kind; path: string }>> = {
  labels: { kind: "label", path: `labels?${PER_PAGE}` },
  milestones: { kind: "milestone", path: `milestones?state=all&${PER_PAGE}` },
  issues: { kind: "issue", path: `issues?state=all&sort=created&direction=asc&${PER_PAGE}` },
  pulls: { kind: "pull_request", path: `pulls?state=all&sort=created&direction=asc&${PER_PAGE}` },
  "issue comments": { kind: "issue_comment", path: `issues/comments?${PER_PAGE}&${BY_CHANGE}` },
  "review comments": { kind: "review_comment", path: `pulls/comments?${PER_PAGE}&${BY_CHANGE}` },
};

/**
 * Copies the repository, or goes on where an earlier run stopped. At the end the repository is live, also without a
 * phase that upstream does not show: catch-ups have it backfilled once it is. A backfill that fails as a whole is left
 * alone for a while.
 * @throws InterruptedError between two pages, once `signal` is aborted
 */
export async function backfill(
  ctx: Context,
  { repositoryId }: { repositoryId: number },
  signal: AbortSignal,
): Promise<void> {
  const subject = { task: "backfill", key: String(repositoryId), repositoryId } as const;
  await tryAlone(ctx, subject, () => backfillNow(ctx, repositoryId, signal));
}

async function backfillNow(
  ctx: Context,
  repositoryId: number,
  signal: AbortSignal,
  { isAnew = false }: { isAnew?: boolean } = {},
): Promise<void> {
  const known = await ctx.jobReads.repository(repositoryId);
  if (!known) return;
  try {
    const { repository, upstreamNow, asOf } = await fetchAndStoreRepository(ctx, known, "backfill");
    await beginBackfill(ctx, repository, knownUpTo(upstreamNow, asOf), signal);
    const missing: Phase[] = [];
    for (const phase of PHASES) {
      // Without pull requests there are no reviews to ask for.
      const hasNothing = phase === "reviews" && missing.includes("pulls");
      if (hasNothing) await leavePhase(ctx, repository, phase);
      const hasRun =
        !hasNothing &&
        (await tryPhase(ctx, repository, { phase, priority: JOB }, () => runPhase(ctx, repository, phase, signal)));
      if (!hasRun) missing.push(phase);
    }
    await refuseNothing(ctx, repository, missing);
    await endBackfill(ctx, repository, missing);
    await analyzeCopied(ctx);
  } catch (error) {
    // The repository may have been selected again by now. The job of that new backfill was dropped in favour of this
    // one, so this job does its work, once. If that happens again, the queue runs it later.
    if (error instanceof RemovedError && !isAnew) return await backfillNow(ctx, repositoryId, signal, { isAnew: true });
    if (!(error instanceof RepositoryUnavailableError)) throw error;
    // Deleted, hidden or no longer allowed: upstream answers all three alike, so nothing is thrown away.
    ctx.log.warn({ repository: known.fullName, reason: error.message }, "The backfill pauses");
    await endOrPause(ctx, repositoryId, { from: FOLLOWED, problem: error.message });
    throw error;
  }
}

/**
 * Forgets how far an earlier backfill came, so that the next one reads every page again (conditionally). False: the
 * repository is not mirrored any more.
 */
export async function restartBackfill(ctx: Pick<Context, "db">, repositoryId: number): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    const isMirrored = await move(tx, repositoryId, { from: FOLLOWED, to: "backfilling" });
    if (isMirrored) await forgetProgress(tx, repositoryId);
    return isMirrored;
  });
}

/** A repeated backfill continues from the watermarks of catch-ups, if the last catch-up is no older than this. */
const FOLLOWED_MS = 24 * 3_600_000;

/**
 * The watermarks of a first copy are upstream's time at its beginning: whatever changes meanwhile is read by the first
 * catch-up. A repeated backfill keeps those that it finds.
 */
async function beginBackfill(
  ctx: Context,
  repository: MirroredRepository,
  upstreamNow: Date,
  signal: AbortSignal,
): Promise<void> {
  const begun = await ctx.db.count(sql`
    select from backfill_phases where repository_id = ${repository.id} and phase = any(${PHASES})`);
  if (begun === PHASES.length) return; // The backfill had begun before: upstream is not asked again for its size.
  await mayGoOn(ctx, repository, { job: JOB, signal });
  const followedSince = await findFollowedSince(ctx, repository.id);
  const expected = expectedPages(
    followedSince ? await countMirrored(ctx, repository) : await countUpstream(ctx, repository),
  );
  await whileMirrored(ctx, repository, async (tx) => {
    const now = ctx.clock.now();
    const cursors = PHASES.map((phase) =>
      phase === "reviews" && followedSince ? placeOfChanges(followedSince) : null,
    );
    const pages = PHASES.map((phase) => expected[phase] ?? null);
    await tx.query(sql`
      insert into backfill_phases (repository_id, phase, cursor, expected_pages, started_at)
        select ${repository.id}, x.phase, x.cursor, x.pages, ${now}
          from unnest(${PHASES}::text[], ${cursors}::text[], ${pages}::integer[]) as x(phase, cursor, pages)
        on conflict do nothing`);
    await move(tx, repository.id, { from: FOLLOWED, to: "backfilling" });
    if (followedSince) return;
    await tx
      .update(repositorySyncs)
      .set({
        issuesSyncedAt: upstreamNow,
        commentsSyncedAt: upstreamNow,
        reviewCommentsSyncedAt: upstreamNow,
        pullsSyncedAt: upstreamNow,
      })
      .where(eq(repositorySyncs.repositoryId, repository.id));
  });
}

/**
 * Since when changed pull requests need their details read; null: all need it, since no catch-up has followed them
 * lately.
 */
async function findFollowedSince(ctx: Pick<Context, "db" | "clock">, repositoryId: number): Promise<Date | null> {
  const since = new Date(ctx.clock.now().getTime() - FOLLOWED_MS);
  const [followed] = await ctx.db
    .select({ at: repositorySyncs.pullsSyncedAt })
    .from(repositorySyncs)
    .where(
      and(
        eq(repositorySyncs.repositoryId, repositoryId),
        isNotNull(repositorySyncs.backfilledAt),
        gt(repositorySyncs.confirmedAt, since),
      ),
    );
  return followed?.at ? new Date(followed.at.getTime() - OVERLAP_MS) : null;
}

const COUNTS = `query($id: ID!) { ${RATE_LIMIT}
  node(id: $id) { ... on Repository { issues { totalCount } pullRequests { totalCount } labels { totalCount } milestones { totalCount } } } }`;

const count = nullable(object({ totalCount: whole }));
const COUNTED_LISTS = { issues: count, pullRequests: count, labels: count, milestones: count };
type Counts = Record<keyof typeof COUNTED_LISTS, Read<typeof count>>;

/**
 * The expected number of pages of each phase, for the progress bar alone. A phase with an unknown count is left out.
 * Pure.
 */
function expectedPages(counts: Partial<Counts>): Partial<Record<Phase, number>> {
  const together = (...of: (keyof Counts)[]) => {
    const totals = of.map((each) => counts[each]?.totalCount);
    return totals.every((total) => total !== undefined)
      ? Math.max(1, Math.ceil(totals.reduce((sum, total) => sum + total, 0) / PAGE_SIZE))
      : undefined;
  };
  const expected = {
    labels: together("labels"),
    milestones: together("milestones"),
    issues: together("issues", "pullRequests"),
    pulls: together("pullRequests"),
    reviews: together("pullRequests"),
  };
  return Object.fromEntries(Object.entries(expected).filter(([, pages]) => pages !== undefined));
}

/** A followed repository has about as many rows as the mirror holds, so upstream need not be asked. */
async function countMirrored({ db }: Pick<Context, "db">, { id }: MirroredRepository): Promise<Partial<Counts>> {
  const own = (table: SQL, is = sql`true`) =>
    sql`(select count(*) from ${table} where repository_id = ${id} and deleted_at is null and ${is})`;
  const [row] = await db.query<Record<keyof Counts, number>>(sql`
    select ${own(sql`issues`, sql`not is_pull_request`)} as issues, ${own(sql`pull_requests`)} as "pullRequests",
      ${own(sql`labels`)} as labels, ${own(sql`milestones`)} as milestones`);
  return Object.fromEntries(Object.entries(row ?? {}).map(([of, totalCount]) => [of, { totalCount }]));
}

/**
 * One point, since lists paged by cursor do not say how long they are. A token that may not read a kind gets null for
 * it.
 */
async function countUpstream(ctx: Context, { id, nodeId }: MirroredRepository): Promise<Partial<Counts>> {
  try {
    const read = { priority: "backfill", repository: id } as const;
    const { data } = await ctx.upstream.graphql(COUNTS, { id: nodeId }, read);
    return nullable(object(COUNTED_LISTS))(data.node, "node") ?? {};
  } catch (error) {
    // If upstream refuses the lists as well, they say why. If the points are spent, the backfill goes on without
    // these counts.
    const { kind } = classifyFailure(error);
    if (kind === "away" || kind === "ended") throw error;
    return {};
  }
}

async function runPhase(
  ctx: Context,
  repository: MirroredRepository,
  phase: Phase,
  signal: AbortSignal,
): Promise<void> {
  const [row] = await ctx.db
    .select({
      cursor: backfillPhases.cursor,
      place: backfillPhases.windowPlace,
      finishedAt: backfillPhases.finishedAt,
    })
    .from(backfillPhases)
    .where(and(eq(backfillPhases.repositoryId, repository.id), eq(backfillPhases.phase, phase)));
  if (!row) throw begunAnew(repository);
  if (row.finishedAt) return;
  for (let cursor: string | null = resumedCursor(row), isLast = false; !isLast; ) {
    await giveWay(ctx, signal);
    await mayGoOn(ctx, repository, { job: JOB, signal });
    const next: string | null =
      phase === "reviews"
        ? await backfillReviews(ctx, repository, cursor, signal, (tx, step) =>
            rememberPage(ctx, tx, repository, phase, step),
          )
        : await backfillListPage(ctx, repository, phase, cursor);
    isLast = next === null;
    cursor = next;
  }
}

async function backfillListPage(
  ctx: Context,
  repository: MirroredRepository,
  phase: Exclude<Phase, "reviews">,
  cursor: string | null,
): Promise<string | null> {
  const { kind, path } = BACKFILLED_LISTS[phase];
  const at = cursor ?? `/repositories/${repository.id}/${path}`;
  const page = await fetchAndStorePage(ctx, repository, kind, addressOf(at), "backfill", {
    inWindows: true,
    remember: (tx, stored) => rememberPage(ctx, tx, repository, phase, stepAfter(at, stored)),
  });
  return stepAfter(at, page).next;
}

async function rememberPage(
  ctx: Pick<Context, "clock">,
  tx: Transaction,
  repository: MirroredRepository,
  phase: Phase,
  page: Pick<StoredPage, "next" | "resources" | "pagesLeft"> & { pages?: number },
): Promise<void> {
  const finishedAt = page.next === null ? ctx.clock.now() : null;
  const { cursor, place } = phase === "reviews" ? { cursor: page.next, place: null } : storedCursor(page.next);
  const updated = await tx.count(sql`
    update backfill_phases set cursor = ${cursor}, window_place = ${place}, pages = pages + ${page.pages ?? 1},
        resources = resources + ${page.resources}, finished_at = ${finishedAt},
        expected_pages = coalesce(pages + ${page.pagesLeft}::integer, expected_pages)
      where repository_id = ${repository.id} and phase = ${phase}`);
  if (updated === 0) throw begunAnew(repository);
}

async function endBackfill(ctx: Context, repository: MirroredRepository, missing: readonly Phase[]): Promise<void> {
  await whileMirrored(ctx, repository, async (tx) => {
    // The first catch-up reads what changed meanwhile. Until then upstream has confirmed the state at the beginning.
    const [backfilled] = await tx.query<{ finished: number; since: Date }>(sql`
      select count(p.finished_at) as finished,
          least(min(p.started_at), min(s.issues_synced_at) filter (where s.backfilled_at is null)) as since
        from backfill_phases p join repository_syncs s using (repository_id) where repository_id = ${repository.id}`);
    if (!backfilled || backfilled.finished + missing.length !== PHASES.length) throw begunAnew(repository);
    const change = { to: "live", confirmedAt: backfilled.since, backfilledAt: ctx.clock.now(), missing } as const;
    await move(tx, repository.id, { from: FOLLOWED, ...change });
  });
}

/** Another job forgot the phases while this backfill worked on them. */
function begunAnew({ fullName }: MirroredRepository): RemovedError {
  return new RemovedError(`${fullName} was removed, or is to be copied anew`);
}
