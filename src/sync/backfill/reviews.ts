import { and, count, eq, gt, gte, isNull } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { among } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { parseStored } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { marksForConflicts, mergeabilityMark, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { pullRequestReviews, pullRequests } from "../../schema.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { graphqlOrRest } from "../reads/beyond-graphql.ts";
import { fetchAndStoreMergeabilityAfter, isMergeabilityKnown } from "../reads/mergeability.ts";
import { fetchAndStorePage, PAGE_SIZE, reviewLists, type StoredPage } from "../reads/pages.ts";
import { fetchAndStorePullDetails, learnPullDetails, marksForUnclear, readPullDetails } from "../reads/pull-details.ts";
import { findPullNumbers, isShownOf } from "../reads/pull-numbers.ts";
import { fetchAndStorePullsByRest } from "../reads/pulls-by-rest.ts";

/**
 * The last phase of a backfill: details that the lists of pull requests do not show. A whole one reads GraphQL's pages,
 * then the lists of reviews that GraphQL leaves to REST. At the end it asks again about open pull requests with unknown
 * mergeability. A repeated backfill only reads what has changed since the last read of the details.
 */
interface WholePlace {
  /** GraphQL's cursor; null at both ends. */
  after: string | null;
  /** Lists to be read by REST before anything else. */
  lists: string[];
  /** Null until GraphQL's last page; from then on the last open pull request that was asked about again. */
  openAfter: number | null;
  /**
   * How many pull requests the next of GraphQL's pages is asked for; places that earlier versions stored do not say.
   */
  pageSize?: number;
  /** The last pull request of the pages so far; undefined: none, or a place that an earlier version stored. */
  last?: number;
  /** Where GraphQL cannot give details: the last pull request that REST has shown. */
  byRest?: number;
}

/** ISO 8601, by upstream's clock. */
interface ChangedPlace {
  changedSince: string;
}

/** The place where the phase begins if it has to read only what has changed. */
export function placeOfChanges(changedSince: Date): string {
  return JSON.stringify({ changedSince } satisfies Record<keyof ChangedPlace, Date>);
}

/** What a step stores beside its rows, in their transaction. */
export type RememberStep = (
  tx: Transaction,
  step: Pick<StoredPage, "next" | "resources" | "pagesLeft"> & { pages?: number },
) => Promise<void>;

/** One step from `cursor` on. Answers the next place, null at the end. */
export async function backfillReviews(
  ctx: Context,
  repository: MirroredRepository,
  cursor: string | null,
  signal: AbortSignal,
  remember: RememberStep,
): Promise<string | null> {
  const place = cursor === null ? null : parseStored<WholePlace | ChangedPlace>(cursor);
  if (place !== null && "changedSince" in place) {
    if (await backfillChanged(ctx, repository, place, signal, remember)) return null;
    return backfillWhole(ctx, repository, null, signal, remember);
  }
  return backfillWhole(ctx, repository, place, signal, remember);
}

/** More pull requests are cheaper by the page. */
const MOST_CHANGED = 250;

/** False: too many pull requests have changed. */
async function backfillChanged(
  ctx: Context,
  repository: MirroredRepository,
  { changedSince }: ChangedPlace,
  signal: AbortSignal,
  remember: RememberStep,
): Promise<boolean> {
  const changed = [isShownOf(repository), gte(pullRequests.updatedAt, new Date(changedSince))];
  const numbers = await findPullNumbers(ctx, changed, MOST_CHANGED + 1);
  if (numbers.length > MOST_CHANGED) return false;
  await fetchAndStorePullDetails(ctx, repository, numbers, "backfill", signal);
  await whileMirrored(ctx, repository, async (tx) =>
    remember(tx, { next: null, resources: await countReviews(tx, repository, numbers), pagesLeft: 1 }),
  );
  return true;
}

async function backfillWhole(
  ctx: Context,
  repository: MirroredRepository,
  known: WholePlace | null,
  signal: AbortSignal,
  remember: RememberStep,
): Promise<string | null> {
  const place = known ?? { after: null, lists: [], openAfter: null };
  // Progress counts pages of pull requests, and GraphQL's pages have them all.
  const rememberPlace = (tx: Transaction, next: string | null, resources = 0) =>
    remember(tx, { next, pages: 0, resources, pagesLeft: null });

  const [list, ...lists] = place.lists;
  if (list !== undefined) {
    const placeAfter = ({ next }: StoredPage) =>
      placeText({ ...place, lists: next === null ? lists : [next, ...lists] });
    const page = await fetchAndStorePage(ctx, repository, "review", list, "backfill", {
      remember: (tx, stored) => rememberPlace(tx, placeAfter(stored), stored.resources),
    });
    return placeAfter(page);
  }
  if (place.byRest !== undefined && place.openAfter === null)
    return backfillByRest(ctx, repository, place, place.byRest, remember);
  if (place.openAfter !== null) {
    const placeAfter = (openAfter: number) => placeText({ ...place, openAfter });
    const from = { after: place.openAfter, heardSince: null, priority: "backfill", signal } as const;
    const last = await fetchAndStoreMergeabilityAfter(ctx, repository, from, (tx, number) =>
      rememberPlace(tx, placeAfter(number)),
    );
    if (last !== null) return placeAfter(last);
    const marks = (await isMergeabilityKnown(ctx.db, repository.id))
      ? []
      : [mergeabilityMark(repository.id, ctx.clock.now())];
    await whileMirrored(ctx, repository, async (tx) => {
      await storeMarks(tx, marks);
      await rememberPlace(tx, null);
    });
    await enqueueMarks(ctx, marks);
    return null;
  }
  return await graphqlOrRest(
    ctx,
    () => backfillPullsPage(ctx, repository, place, known === null, signal, remember),
    () => backfillByRest(ctx, repository, place, place.last ?? 0, remember),
  );
}

/** Each costs two requests, so a stopped backfill reads few again. */
const PULLS_A_STEP = 10;

async function backfillByRest(
  ctx: Context,
  repository: MirroredRepository,
  place: WholePlace,
  after: number,
  remember: RememberStep,
): Promise<string> {
  const numbers = await findPullNumbers(ctx, [isShownOf(repository), gt(pullRequests.number, after)], PULLS_A_STEP);
  await fetchAndStorePullsByRest(ctx, repository, numbers, "backfill");
  const last = numbers.at(-1);
  const next = placeText({ ...place, byRest: last ?? after, openAfter: last === undefined ? 0 : null });
  await whileMirrored(ctx, repository, async (tx) =>
    remember(tx, { next, resources: await countReviews(tx, repository, numbers), pagesLeft: null }),
  );
  return next;
}

async function backfillPullsPage(
  ctx: Context,
  repository: MirroredRepository,
  place: WholePlace,
  isFirst: boolean,
  signal: AbortSignal,
  remember: RememberStep,
): Promise<string | null> {
  const { after, pageSize = PAGE_SIZE } = place;
  const page = await readPullDetails(ctx, repository, { after, pageSize }, { priority: "backfill", signal });
  await fetchAndStorePullsByRest(ctx, repository, page.left, "backfill");
  const details = await learnPullDetails(ctx, repository, page, "backfill");
  const next = placeText({
    after: page.next,
    pageSize: page.pageSize,
    last: Math.max(place.last ?? 0, ...page.pulls.map(({ number }) => number), ...page.left),
    lists: reviewLists(repository, details.unfinished),
    openAfter: page.next === null ? 0 : null,
  });
  const marks = marksForUnclear(ctx, repository, details.unclear);
  const left = isFirst && page.next !== null ? (await countPulls(ctx, repository)) - page.pulls.length : 0;
  const pagesLeft = isFirst ? 1 + Math.ceil(Math.max(0, left) / page.pageSize) : null;
  await whileMirrored(ctx, repository, async (tx) => {
    marks.push(...marksForConflicts(await mergeObserved(tx, details.observed), page.seenAt));
    await storeMarks(tx, marks);
    // The lists of the others come next, and are counted page by page.
    const whole = [...page.pulls.map(({ number }) => number), ...page.left].filter(
      (number) => !details.unfinished.includes(number),
    );
    await remember(tx, { next, resources: await countReviews(tx, repository, whole), pagesLeft });
  });
  await enqueueMarks(ctx, marks);
  return next;
}

/**
 * How many reviews are held of these pull requests: what the phase has brought. The pull requests themselves were
 * counted with their list.
 */
async function countReviews(tx: Transaction, { id }: MirroredRepository, numbers: readonly number[]): Promise<number> {
  const { repositoryId, pullNumber, deletedAt } = pullRequestReviews;
  const rows = await tx
    .select({ count: count() })
    .from(pullRequestReviews)
    .where(and(eq(repositoryId, id), among(pullNumber, numbers), isNull(deletedAt)));
  return rows[0]?.count ?? 0;
}

async function countPulls(ctx: Pick<Context, "db">, repository: MirroredRepository): Promise<number> {
  const rows = await ctx.db.select({ count: count() }).from(pullRequests).where(isShownOf(repository));
  return rows[0]?.count ?? 0;
}

/** As text for the cursor column. */
function placeText(place: WholePlace): string {
  return JSON.stringify(place);
}
