import { eq } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { type FollowedState, MIRRORED } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { CLOCKS_APART_MS } from "../../mirror/store/merge-rule.ts";
import { enqueueBackfill, enqueueBackfills, enqueueCatchUps } from "../../queues/queues.ts";
import { repositorySyncs } from "../../schema.ts";
import { forgetValidators, saveValidators } from "../../upstream/conditional/validators.ts";
import { CredentialUnusableError } from "../../upstream/protocol/errors.ts";
import type { Validator } from "../../upstream/protocol/upstream.ts";
import { restartReviews } from "../following/backfill-progress.ts";
import { askSoon, endOrPause, pause } from "../following/pause.ts";
import { move } from "../following/state.ts";
import { mayGoOn, whileMirrored } from "../following/while-mirrored.ts";
import { RemovedError } from "../problems/errors.ts";
import { tryAlone } from "../problems/isolated.ts";
import { rests, tryAgain } from "../problems/problems.ts";
import { fetchAndStoreMergeability } from "../reads/mergeability.ts";
import { fetchAndStoreMissingComments } from "../reads/missing-comments.ts";
import {
  BY_CHANGE,
  earlier,
  fetchAndStorePage,
  isInOrder,
  knownUpTo,
  newestOf,
  newestPast,
  OVERLAP_MS,
  PER_PAGE,
  pathSince,
  RepositoryUnavailableError,
  type StoredPage,
} from "../reads/pages.ts";
import { PHASES, type Phase, phasesNotBackfilled, refuseNothing, tryPhase } from "../reads/phases.ts";
import { fetchAndStorePullDetails } from "../reads/pull-details.ts";
import { PUSHED_SINCE_CONFIRMED } from "../reads/pushed.ts";
import { fetchAndStoreRepository } from "../reads/repository.ts";
import { giveWayToDeliveries } from "../turns/give-way.ts";
import type { ShownRow } from "./newest-changes.ts";
import { isSuspected } from "./sweep-due.ts";

/** A followed list, with its watermark. */
interface FollowedList {
  kind: Kind;
  watermark: "issues_synced_at" | "comments_synced_at" | "review_comments_synced_at";
  path: string;
}

/** Oldest change first: what changes while we read moves to the end, where it is met again. */
const COMMENTS: FollowedList = {
  kind: "issue_comment",
  watermark: "comments_synced_at",
  path: `issues/comments?${BY_CHANGE}&${PER_PAGE}`,
};
const REVIEW_COMMENTS: FollowedList = {
  kind: "review_comment",
  watermark: "review_comments_synced_at",
  path: `pulls/comments?${BY_CHANGE}&${PER_PAGE}`,
};
const ISSUES: FollowedList = {
  kind: "issue",
  watermark: "issues_synced_at",
  path: `issues?state=all&${BY_CHANGE}&${PER_PAGE}`,
};

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
    const heardSince = new Date(startedAt.getTime() - PULLS_HEARD_MS);
    const works: Record<Exclude<Phase, "reviews">, () => Promise<void>> = {
      labels: () =>
        followWhole(ctx, repository, { kind: "label", list: `labels?${PER_PAGE}`, conditional: true }, signal),
      milestones: async () => {
        const conditional = !(await wereMilestonesPushed(ctx, repositoryId));
        const list = `milestones?state=all&${PER_PAGE}`;
        await followWhole(ctx, repository, { kind: "milestone", list, conditional }, signal);
      },
      "issue comments": () => catchUpList(ctx, repository, COMMENTS, signal),
      "review comments": () => catchUpList(ctx, repository, REVIEW_COMMENTS, signal),
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
    const confirmedAt = earlier(startedAt, asOf);
    const unshown = PHASES.filter((phase) => missing.includes(phase) || lacking.phases.has(phase));
    await move(ctx.db, repositoryId, { from: CAUGHT_UP, to: "live", confirmedAt, missing: unshown });
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

async function catchUpList(
  ctx: Context,
  repository: MirroredRepository,
  { kind, watermark, path: list }: FollowedList,
  signal: AbortSignal,
): Promise<void> {
  const since = new Date((await watermarkOf(ctx, repository, watermark)).getTime() - OVERLAP_MS);
  for (let path: string | null = pathSince(`/repositories/${repository.id}/${list}`, since); path !== null; ) {
    await beforePage(ctx, repository, signal);
    const page: StoredPage = await fetchAndStorePage(ctx, repository, kind, path, "catch-up", {
      isNews: true,
      prepare: (observed) => fetchAndStoreMissingComments(ctx, repository, observed, "catch-up"),
      remember: async (tx, stored) => {
        const column = sql.identifier(watermark);
        const known = atMost(sql`s.${column}`, stored.upstreamNow);
        // Where rows are out of order, older ones may stand on the pages behind.
        const read = isInOrder(stored) || stored.next === null ? newestPast(stored) : null;
        const [{ hasMoved } = { hasMoved: false }] = await tx.query<{ hasMoved: boolean }>(sql`
          update repository_syncs s set ${column} = coalesce(greatest(${known}, ${knownUpTo(read, stored.asOf)}), s.${column})
            from repository_syncs before where s.repository_id = ${repository.id} and before.repository_id = s.repository_id
            returning s.${column} is distinct from before.${column} as "hasMoved"`);
        // The address has the watermark in it, so the page is not asked for again.
        if (hasMoved && stored.validator) await forgetValidators(tx, stored.validator);
      },
    });
    path = page.next;
  }
}

/** Pull requests cannot be asked by `since`: read from the newest change down to the watermark. */
async function followPulls(
  ctx: Context,
  repository: MirroredRepository,
  { withDetails }: { withDetails: boolean },
  signal: AbortSignal,
): Promise<void> {
  const watermark = await watermarkOf(ctx, repository, "pulls_synced_at");
  const until = new Date(watermark.getTime() - OVERLAP_MS);
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
  const upstreamNow = first?.upstreamNow ?? watermark;
  const rows = [...changed].map(([key, updatedAt]) => ({ key, updatedAt }));
  const newest = knownUpTo(newestPast({ rows, upstreamNow }) ?? watermark, first?.asOf ?? null);
  await whileMirrored(ctx, repository, async (tx) => {
    await saveValidators(tx, validators);
    await tx.query(sql`
      update repository_syncs set pulls_synced_at = greatest(${atMost(sql`pulls_synced_at`, upstreamNow)}, ${newest})
        where repository_id = ${repository.id}`);
  });
}

/** All repositories are caught up with at one time, and deliveries would wait behind their pages. */
async function beforePage(ctx: Context, repository: MirroredRepository, signal: AbortSignal): Promise<void> {
  await giveWayToDeliveries(ctx, signal);
  await mayGoOn(ctx, repository, { job: "catch-up", signal });
}

/** Earlier versions moved watermarks to dates of rows that lay in the future. */
function atMost(watermark: SQL, upstreamNow: Date): SQL {
  return sql`case when ${watermark} <= ${upstreamNow} then ${watermark} end`;
}

/**
 * A watermark has moved past changes whose webhooks came, and another change of the same second may be among them. So
 * where webhooks were lost lately, what was told since the last catch-up is read again, this far back.
 */
const READ_BACK_MS = 3_600_000;

/**
 * Where the read begins. A watermark in the future says nothing, so the read begins with the first copy.
 * @throws RemovedError when there is none: the repository was purged, and a new backfill begins
 */
async function watermarkOf(
  ctx: Pick<Context, "db" | "clock">,
  { id, fullName }: MirroredRepository,
  column: string,
): Promise<Date> {
  const at = sql.identifier(column);
  const now = ctx.clock.now().getTime();
  const latest = new Date(now + CLOCKS_APART_MS);
  const again = sql`greatest(s.caught_up_at, ${new Date(now - READ_BACK_MS)})`;
  const [row] = await ctx.db.query<{ at: Date | null }>(sql`
    select case when s.${at} > ${latest} then coalesce(s.backfilled_at, to_timestamp(0))
        when ${isSuspected(ctx)} then least(s.${at}, ${again}) else s.${at} end as at
      from repository_syncs s left join sweeps w using (repository_id)
      where s.repository_id = ${id} and s.${at} is not null`);
  if (!row?.at) throw new RemovedError(`${fullName} was purged`);
  return row.at;
}

/** Rows that a list shows later than this are not late, but missing. Some eight minutes were reported in public. */
const LATE_MS = 3_600_000;

/**
 * Lets the next catch-up of each repository begin before these rows, which the mirror does not hold. A list may show a
 * row minutes late, when the watermark has passed it.
 */
export async function moveWatermarksBack(tx: Transaction, rows: readonly ShownRow[]): Promise<void> {
  const timed = rows.filter(({ at }) => at !== undefined && !Number.isNaN(Date.parse(at)));
  if (timed.length === 0) return;
  const back = (watermark: string, kinds: readonly ShownRow["kind"][]) => {
    const column = sql.identifier(watermark);
    const at = sql`(select min(x.at) from ${late} where x.r = s.repository_id and x.kind = any(${kinds}::text[])
      and x.at > s.${column} - ${`${LATE_MS} milliseconds`}::interval)`;
    return sql`${column} = least(${column}, ${at})`;
  };
  const late = sql`json_to_recordset(${sql.json(timed)}) as x(r bigint, kind text, at timestamptz)`;
  await tx.query(sql`
    update repository_syncs s set ${sql.join([
      back("issues_synced_at", ["issue", "pull_request"]),
      back("pulls_synced_at", ["issue", "pull_request"]),
      back("comments_synced_at", ["issue_comment"]),
      back("review_comments_synced_at", ["review_comment"]),
    ])} where repository_id = any(${timed.map(({ r }) => r)}::bigint[])`);
}
