import { eq } from "drizzle-orm";
import { type FollowedState, MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { enqueueBackfill, enqueueBackfills, enqueueCatchUps } from "../../queues/queues.ts";
import { repositorySyncs } from "../../schema.ts";
import { saveValidators } from "../../upstream/conditional/validators.ts";
import { CredentialUnusableError } from "../../upstream/protocol/errors.ts";
import type { Validator } from "../../upstream/protocol/upstream.ts";
import { restartReviews } from "../following/backfill-progress.ts";
import { askSoon, endOrPause, pause } from "../following/pause.ts";
import { move } from "../following/state.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { RemovedError } from "../problems/errors.ts";
import { tryAlone } from "../problems/isolated.ts";
import { rests, tryAgain } from "../problems/problems.ts";
import { fetchAndStoreMergeability } from "../reads/mergeability.ts";
import {
  earlier,
  fetchAndStorePage,
  knownUpTo,
  newestOf,
  newestPast,
  PER_PAGE,
  RepositoryUnavailableError,
  type StoredPage,
} from "../reads/pages.ts";
import { PHASES, type Phase, phasesNotBackfilled, refuseNothing, tryPhase } from "../reads/phases.ts";
import { fetchAndStorePullDetails } from "../reads/pull-details.ts";
import { PUSHED_SINCE_CONFIRMED } from "../reads/pushed.ts";
import { fetchAndStoreRepository } from "../reads/repository.ts";
import { whenCommentsWereRead } from "./comment-ends.ts";
import {
  atMost,
  beforePage,
  beginningOf,
  COMMENTS,
  catchUpList,
  type FollowedList,
  ISSUES,
  REVIEW_COMMENTS,
} from "./followed-lists.ts";
import { isDeletionOpen } from "./sweep-told.ts";

/** Comments come before issues. The comment counts of issues then tell which comments no list of changes has shown. */
const FOLLOWED_PHASES = ["labels", "milestones", "issue comments", "review comments", "issues", "pulls"] as const;

/** Some pull requests never get a mergeability at upstream: stop asking this long after the last news of them. */
const PULLS_HEARD_MS = 15 * 60_000;

/** A catch-up starts in these states. It moves no repository that was removed, or is being backfilled, by its end. */
const CAUGHT_UP: readonly FollowedState[] = ["live", "paused"];

/**
 * Reads what changed in a repository since the watermarks, up to now. A watermark only moves to a time that was seen.
 * So an unchanged list is asked for by the same address again, and that costs nothing. A paused repository that
 * upstream shows again becomes live. One that fails is left alone for a while.
 * @throws InterruptedError between two pages, once `signal` is aborted
 */
export async function catchUp(
  ctx: Context,
  { repositoryId }: { repositoryId: number },
  signal: AbortSignal,
): Promise<void> {
  const subject = { task: "catch-up", key: String(repositoryId), repositoryId } as const;
  await tryAlone(ctx, subject, () => catchUpNow(ctx, repositoryId, signal));
}

async function catchUpNow(ctx: Context, repositoryId: number, signal: AbortSignal): Promise<void> {
  const known = await ctx.jobReads.repository(repositoryId);
  if (!known || known.state === "backfilling") return;
  try {
    const startedAt = ctx.clock.now();
    const { repository, asOf } = await fetchAndStoreRepository(ctx, known, "catch-up");
    if (!(await isBackfilled(ctx, repositoryId))) {
      if (await move(ctx.db, repositoryId, { from: CAUGHT_UP, to: "backfilling" })) {
        await tryAgain(ctx.db, { task: "backfill", keys: [String(repositoryId)] });
        await enqueueBackfill(ctx, { repositoryId });
      }
      return;
    }
    const lacking = await phasesNotBackfilled(ctx, repositoryId);
    if (lacking.due) return await backfillMissing(ctx, repositoryId);
    const readAt = await whenCommentsWereRead(ctx, repositoryId);
    const followComments = async (list: FollowedList) =>
      readAt.get(list.kind) ?? (await catchUpList(ctx, repository, list, signal));
    const heardSince = new Date(startedAt.getTime() - PULLS_HEARD_MS);
    const works: Record<Exclude<Phase, "reviews">, () => Promise<unknown>> = {
      labels: () =>
        followWhole(ctx, repository, { kind: "label", list: `labels?${PER_PAGE}`, conditional: true }, signal),
      milestones: async () => {
        const conditional = !(await wereMilestonesPushed(ctx, repositoryId));
        const list = `milestones?state=all&${PER_PAGE}`;
        await followWhole(ctx, repository, { kind: "milestone", list, conditional }, signal);
      },
      "issue comments": () => followComments(COMMENTS),
      "review comments": () => followComments(REVIEW_COMMENTS),
      issues: () => catchUpList(ctx, repository, ISSUES, signal),
      pulls: async () => {
        await followPulls(ctx, repository, { withDetails: !lacking.phases.has("reviews") }, signal);
        await fetchAndStoreMergeability(ctx, repository, { heardSince, priority: "catch-up", signal });
      },
    };
    const missing: Phase[] = [];
    for (const phase of FOLLOWED_PHASES) {
      // A phase that was not backfilled is not followed.
      const isFollowed =
        !lacking.phases.has(phase) && (await tryPhase(ctx, repository, { phase, priority: "catch-up" }, works[phase]));
      if (!isFollowed) missing.push(phase);
    }
    await refuseNothing(ctx, repository, missing);
    const caughtUpAt = earlier(startedAt, asOf);
    const confirmedAt = [...readAt.values()].reduce(earlier, caughtUpAt);
    const unshown = PHASES.filter((phase) => missing.includes(phase) || lacking.phases.has(phase));
    await move(ctx.db, repositoryId, {
      ...{ from: CAUGHT_UP, to: "live", missing: unshown, caughtUpAt },
      // A catch-up finds no deletion.
      ...((await isDeletionOpen(ctx.db, repositoryId)) ? {} : { confirmedAt }),
    });
  } catch (error) {
    if (error instanceof RemovedError) return;
    if (error instanceof CredentialUnusableError) {
      // A repository that is paused already keeps its reason.
      await pause(ctx, [repositoryId], { from: ["live"], problem: error.message });
      return;
    }
    if (!(error instanceof RepositoryUnavailableError)) throw error;
    ctx.log.warn({ repository: known.fullName, reason: error.message }, "Upstream does not show a mirrored repository");
    await endOrPause(ctx, repositoryId, { from: CAUGHT_UP, problem: error.message });
    if (known.state === "live") await askSoon(ctx, repositoryId);
    throw error;
  }
}

/** After this many intervals without a catch-up a repository gets one, though its sweeps found nothing. */
const UNSWEPT_INTERVALS = 144;
/** And after this many if a part of it is missing, and so no sweep looks after that part. */
const LACKING_INTERVALS = 24;
/** And after this many if its sweeps fail. */
const BLIND_INTERVALS = 12;

/** Asks for catch-ups of the repositories that no sweep looks after. Sweeps find all others that have changed. */
export async function scheduleCatchUps(ctx: Context): Promise<void> {
  const now = ctx.clock.now().getTime();
  const unswept = new Date(now - UNSWEPT_INTERVALS * ctx.config.catchUpIntervalMs);
  const lacking = new Date(now - LACKING_INTERVALS * ctx.config.catchUpIntervalMs);
  const blind = new Date(now - BLIND_INTERVALS * ctx.config.catchUpIntervalMs);
  const key = sql`s.repository_id::text`;
  const rows = await ctx.db.query<{ id: number; state: string }>(sql`
    select s.repository_id as id, s.state from repository_syncs s left join sweeps w using (repository_id)
      where ${MIRRORED} and (s.state <> 'live' or w.repository_id is null
        or s.caught_up_at is null or s.caught_up_at < ${unswept}
        or (s.caught_up_at < ${lacking} and s.parts_missing is not null)
        or (s.caught_up_at < ${blind} and exists (select from problems p where p.task = 'sweep'
          and p.key in (${key}, 'fields of ' || ${key}))))
        and not ${rests(ctx, "backfill", sql`case s.state when 'backfilling' then ${key} end`)}
        and not ${rests(ctx, "catch-up", sql`case s.state when 'backfilling' then null else ${key} end`)}`);
  const idsOf = (some: typeof rows) => some.map(({ id }) => id);
  const isBackfilling = ({ state }: (typeof rows)[number]) => state === "backfilling";
  // A backfill with a lost job continues where it stopped; a running backfill gets no second job.
  await enqueueBackfills(ctx, idsOf(rows.filter(isBackfilling)));
  await enqueueCatchUps(ctx, idsOf(rows.filter((row) => !isBackfilling(row))));
}

/** A phase that upstream did not show during the backfill may be tried again: the backfill goes on with it. */
async function backfillMissing(ctx: Context, repositoryId: number): Promise<void> {
  // One transaction: once the repository is moved, the scheduler goes on with the backfill at the cursor that it finds.
  const isMoved = await ctx.db.transaction(async (tx) => {
    if (!(await move(tx, repositoryId, { from: CAUGHT_UP, to: "backfilling" }))) return false;
    // Details of pull requests that changed meanwhile were not read.
    await restartReviews(tx, repositoryId);
    await tryAgain(tx, { task: "backfill", keys: [String(repositoryId)] });
    return true;
  });
  if (isMoved) await enqueueBackfill(ctx, { repositoryId });
}

async function isBackfilled(ctx: Pick<Context, "db">, repositoryId: number): Promise<boolean> {
  const [sync] = await ctx.db
    .select({ backfilledAt: repositorySyncs.backfilledAt })
    .from(repositorySyncs)
    .where(eq(repositorySyncs.repositoryId, repositoryId));
  return sync?.backfilledAt != null;
}

async function followWhole(
  ctx: Context,
  repository: MirroredRepository,
  { kind, list, conditional }: { kind: Kind; list: string; conditional: boolean },
  signal: AbortSignal,
): Promise<void> {
  for (let path: string | null = `/repositories/${repository.id}/${list}`; path !== null; ) {
    await beforePage(ctx, repository, signal);
    path = (await fetchAndStorePage(ctx, repository, kind, path, "catch-up", { conditional })).next;
  }
}

/**
 * Whether a webhook has changed a milestone since the last catch-up. Its counters move without `updated_at`. If a
 * webhook that took one back was lost, upstream's list is unchanged, and our row is wrong.
 */
async function wereMilestonesPushed({ db }: Pick<Context, "db">, repositoryId: number): Promise<boolean> {
  const pushed = await db.count(sql`
    select from milestones t join repository_syncs s using (repository_id)
      where t.repository_id = ${repositoryId} and t.deleted_at is null and ${PUSHED_SINCE_CONFIRMED} limit 1`);
  return pushed > 0;
}

/** Pull requests cannot be asked by `since`: read from the newest change down to the watermark. */
async function followPulls(
  ctx: Context,
  repository: MirroredRepository,
  { withDetails }: { withDetails: boolean },
  signal: AbortSignal,
): Promise<void> {
  const until = await beginningOf(ctx, repository, "pulls_synced_at");
  const changed = new Map<number, Date>();
  let first: StoredPage | undefined;
  const validators: Validator[] = [];
  for (
    let path: string | null = `/repositories/${repository.id}/pulls?state=all&sort=updated&direction=desc&${PER_PAGE}`;
    path !== null;
  ) {
    await beforePage(ctx, repository, signal);
    const page: StoredPage = await fetchAndStorePage(ctx, repository, "pull_request", path, "catch-up", {
      isDone: false,
    });
    // The time of the first page counts, since later pages may be newer.
    first ??= page;
    // A mirror may show a change here before it has read the details, and they move nothing on this page.
    const newestHere = newestOf(page);
    if (page.validator && newestHere === knownUpTo(newestHere, page.asOf)) validators.push(page.validator);
    const since = page.rows.filter(({ updatedAt }) => updatedAt && updatedAt >= until);
    for (const { key, updatedAt } of since) if (updatedAt) changed.set(key, updatedAt);
    path = since.length > 0 && since.length === page.rows.length ? page.next : null;
  }
  // The list shows no reviews and no sizes.
  if (withDetails) await fetchAndStorePullDetails(ctx, repository, [...changed.keys()], "catch-up", signal);
  const upstreamNow = first?.upstreamNow ?? until;
  const rows = [...changed].map(([key, updatedAt]) => ({ key, updatedAt }));
  const newest = knownUpTo(newestPast({ rows, upstreamNow }) ?? until, first?.asOf ?? null);
  await whileMirrored(ctx, repository, async (tx) => {
    await saveValidators(tx, validators);
    await tx.query(sql`
      update repository_syncs set pulls_synced_at = greatest(${atMost(sql`pulls_synced_at`, upstreamNow)}, ${newest})
        where repository_id = ${repository.id}`);
  });
}
