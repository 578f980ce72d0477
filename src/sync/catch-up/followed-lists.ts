import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { CLOCKS_APART_MS } from "../../mirror/store/merge-rule.ts";
import { forgetValidators } from "../../upstream/conditional/validators.ts";
import { mayGoOn } from "../following/while-mirrored.ts";
import { RemovedError } from "../problems/errors.ts";
import { fetchAndStoreMissingComments } from "../reads/missing-comments.ts";
import {
  BY_CHANGE,
  fetchAndStorePage,
  isInOrder,
  knownUpTo,
  newestPast,
  OVERLAP_MS,
  PER_PAGE,
  pathSince,
  type StoredPage,
} from "../reads/pages.ts";
import { giveWayToDeliveries } from "../turns/give-way.ts";
import type { ShownRow } from "./newest-changes.ts";
import { isSuspected } from "./sweep-due.ts";

/** A followed list, with its watermark. */
export interface FollowedList {
  kind: Kind;
  watermark: "issues_synced_at" | "comments_synced_at" | "review_comments_synced_at";
  path: string;
}

/** Oldest change first: what changes while we read moves to the end, where it is met again. */
export const COMMENTS: FollowedList = {
  kind: "issue_comment",
  watermark: "comments_synced_at",
  path: `issues/comments?${BY_CHANGE}`,
};
export const REVIEW_COMMENTS: FollowedList = {
  kind: "review_comment",
  watermark: "review_comments_synced_at",
  path: `pulls/comments?${BY_CHANGE}`,
};
export const ISSUES: FollowedList = {
  kind: "issue",
  watermark: "issues_synced_at",
  path: `issues?state=all&${BY_CHANGE}`,
};

/** Reads what changed in a list since its watermark, which moves to the newest change that was seen. */
export async function catchUpList(
  ctx: Context,
  repository: MirroredRepository,
  list: FollowedList,
  signal: AbortSignal,
): Promise<void> {
  const since = await beginningOf(ctx, repository, list.watermark);
  const first = pathSince(`/repositories/${repository.id}/${list.path}&${PER_PAGE}`, since);
  for (let path: string | null = first; path !== null; ) {
    await beforePage(ctx, repository, signal);
    path = (await fetchAndStoreChanges(ctx, repository, list, path)).next;
  }
}

/**
 * Reads a page of a list in the order of changes, its last: it shows how long the list is, and mostly all that changed
 * since the watermark. The watermark moves only then, or the rows before this page would never be met.
 * @param end how many rows the page has room for, its number, and when the list was last read so, by our clock
 */
export async function fetchAndStoreListEnd(
  ctx: Context,
  repository: MirroredRepository,
  list: FollowedList,
  end: { size: number; number: number; readAt: Date | null },
): Promise<StoredPage & { reachesBack: boolean }> {
  const { size, number, readAt } = end;
  const since = await beginningOf(ctx, repository, list.watermark, readAt);
  // The order of the parameters is ours alone: a page that a sweep has only looked at has another validator.
  const path = `/repositories/${repository.id}/${list.path}&page=${number}&per_page=${size}`;
  const reaches = ({ isUnchanged, rows: [first] }: StoredPage) =>
    isUnchanged || number === 1 || (first?.updatedAt != null && first.updatedAt <= since);
  const page = await fetchAndStoreChanges(ctx, repository, list, path, reaches);
  return { ...page, reachesBack: reaches(page) };
}

async function fetchAndStoreChanges(
  ctx: Context,
  repository: MirroredRepository,
  { kind, watermark }: FollowedList,
  path: string,
  isRead: (page: StoredPage) => boolean = () => true,
): Promise<StoredPage> {
  return await fetchAndStorePage(ctx, repository, kind, path, "catch-up", {
    isNews: true,
    prepare: (observed) => fetchAndStoreMissingComments(ctx, repository, observed, "catch-up"),
    remember: async (tx, stored) => {
      if (!isRead(stored)) return;
      const column = sql.identifier(watermark);
      const known = atMost(sql`s.${column}`, stored.upstreamNow);
      // Where rows are out of order, older ones may stand on the pages behind.
      const read = isInOrder(stored) || stored.next === null ? newestPast(stored) : null;
      const [{ hasMoved } = { hasMoved: false }] = await tx.query<{ hasMoved: boolean }>(sql`
        update repository_syncs s set ${column} = coalesce(greatest(${known}, ${knownUpTo(read, stored.asOf)}), s.${column})
          from repository_syncs before where s.repository_id = ${repository.id} and before.repository_id = s.repository_id
          returning s.${column} is distinct from before.${column} as "hasMoved"`);
      // The address has the watermark in it, so the page is not asked for again.
      if (hasMoved && stored.validator && path.includes("since=")) await forgetValidators(tx, stored.validator);
    },
  });
}

/** All repositories are caught up with at one time, and deliveries would wait behind their pages. */
export async function beforePage(ctx: Context, repository: MirroredRepository, signal: AbortSignal): Promise<void> {
  await giveWayToDeliveries(ctx, signal);
  await mayGoOn(ctx, repository, { job: "catch-up", signal });
}

/** Earlier versions moved watermarks to dates of rows that lay in the future. */
export function atMost(watermark: SQL, upstreamNow: Date): SQL {
  return sql`case when ${watermark} <= ${upstreamNow} then ${watermark} end`;
}

/**
 * A watermark has moved past changes whose webhooks came, and another change of the same second may be among them. So
 * where webhooks were lost lately, what was told since the last catch-up is read again, this far back.
 */
const READ_BACK_MS = 3_600_000;

/**
 * Where a read begins. A watermark in the future says nothing, so the read begins with the first copy.
 * @param readAt when the list was last read without a catch-up, by our clock
 * @throws RemovedError when there is none: the repository was purged, and a new backfill begins
 */
export async function beginningOf(
  ctx: Pick<Context, "db" | "clock">,
  { id, fullName }: MirroredRepository,
  column: string,
  readAt: Date | null = null,
): Promise<Date> {
  const at = sql.identifier(column);
  const now = ctx.clock.now().getTime();
  const latest = new Date(now + CLOCKS_APART_MS);
  const again = sql`greatest(s.caught_up_at, ${readAt}::timestamptz, ${new Date(now - READ_BACK_MS)})`;
  const [row] = await ctx.db.query<{ at: Date | null }>(sql`
    select case when s.${at} > ${latest} then coalesce(s.backfilled_at, to_timestamp(0))
        when ${isSuspected(ctx)} then least(s.${at}, ${again}) else s.${at} end as at
      from repository_syncs s left join sweeps w using (repository_id)
      where s.repository_id = ${id} and s.${at} is not null`);
  if (!row?.at) throw new RemovedError(`${fullName} was purged`);
  return new Date(row.at.getTime() - OVERLAP_MS);
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
