import { and, eq, gt, isNotNull, isNull } from "drizzle-orm";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { parseStored } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { marksForMergeability, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { overruling, type Seen } from "../../mirror/store/observation.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { pullRequestReviews, pullRequests } from "../../schema.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { graphqlOrRest } from "../reads/beyond-graphql.ts";
import { PAGE_SIZE, PER_PAGE, RepositoryUnavailableError } from "../reads/pages.ts";
import { marksForUnclear, type PullsPlace, pullDetailsOf, readPullDetails } from "../reads/pull-details.ts";
import { findPullNumbers, isShownOf } from "../reads/pull-numbers.ts";
import { compareWithStored, withoutMergeability } from "./comparison.ts";
import { auditUnmet } from "./gone.ts";
import { type AuditedPage, auditPage } from "./page.ts";
import type { Drift } from "./report.ts";
import { auditThreads } from "./threads.ts";

interface Auditing {
  repair: boolean;
  startedAt: Date;
  signal: AbortSignal;
}

/**
 * Compares the reviews and details of a page of pull requests, for a point, or of a few by REST where GraphQL cannot
 * give them. `cursor` and `next` are places as text.
 */
export async function auditReviews(
  ctx: Context,
  repository: MirroredRepository,
  { cursor, ...auditing }: Auditing & { cursor: string | null },
): Promise<AuditedPage> {
  const place = auditPlace(cursor);
  if ("byRest" in place) return await auditByRest(ctx, repository, place.byRest, auditing);
  return await graphqlOrRest(
    ctx,
    () => auditByGraphql(ctx, repository, place, auditing),
    () => auditByRest(ctx, repository, 0, auditing),
  );
}

/**
 * GraphQL does not show some reviews well enough: those by deleted accounts, and more than a hundred. REST reads those.
 */
async function auditByGraphql(
  ctx: Context,
  repository: MirroredRepository,
  place: PullsPlace,
  auditing: Auditing,
): Promise<AuditedPage> {
  const { repair, signal } = auditing;
  const page = await readPullDetails(ctx, repository, place, { priority: "audit", signal });
  const read = await pullDetailsOf(ctx, repository, page);
  const computing = await beingComputed(ctx, repository, read.observed.seen);
  const observed = overruling({
    ...read.observed,
    seen: read.observed.seen.map((one) => (computing.has(one.key) ? withoutMergeability(one) : one)),
  });
  const numbers = [...page.pulls.map((pull) => pull.number), ...page.left];
  const marks = repair
    ? marksForUnclear(ctx, repository, [...(await notYetClear(ctx, repository, read.unclear)), ...computing])
    : [];
  const drift = await whileMirrored(ctx, repository, async (tx) => {
    // Users are seen here with less than REST shows of them, and are compared by their own pages.
    const compared = { ...observed, seen: observed.seen.filter((one) => one.kind !== "user") };
    const found = await compareWithStored(tx, compared, { withParts: true });
    if (repair) {
      await mergeObserved(tx, observed);
      marks.push(...(await marksForMergeability(tx, observed.seen, page.seenAt)));
    }
    await storeMarks(tx, marks);
    return found.drift;
  });
  await enqueueMarks(ctx, marks);

  const met = new Set(observed.seen.filter((one) => one.kind === "review").map((one) => one.key));
  // Pull requests that are too heavy for GraphQL even alone.
  for (const number of page.left) {
    const found = await auditUnmet(ctx, repository, "pull_request", number, repair);
    if (found !== "off") drift.push(...found);
  }
  drift.push(...(await auditLists(ctx, repository, [...read.unfinished, ...page.left], met, auditing)));
  drift.push(...(await auditUnmetReviews(ctx, repository, numbers, met, auditing)));
  drift.push(...(await auditThreads(ctx, repository, numbers, auditing)));
  return {
    next:
      page.next === null ? null : JSON.stringify({ after: page.next, pageSize: page.pageSize } satisfies PullsPlace),
    keys: [...met],
    isUnchanged: false,
    drift,
    changing: [],
  };
}

/** Each pull request costs at most two requests, which are free if nothing has changed. */
const AUDITED_A_STEP = 10;

/** The same by REST, of a few pull requests numbered above `after`. */
async function auditByRest(
  ctx: Context,
  repository: MirroredRepository,
  after: number,
  auditing: Auditing,
): Promise<AuditedPage> {
  const later = [isShownOf(repository), gt(pullRequests.number, after)];
  const numbers = await findPullNumbers(ctx, later, AUDITED_A_STEP);
  const met = new Set<number>();
  const drift: Drift[] = [];
  for (const number of numbers) {
    const found = await auditUnmet(ctx, repository, "pull_request", number, auditing.repair);
    if (found === "off") return { next: null, keys: [...met], isUnchanged: false, drift, changing: [] };
    drift.push(...found);
    // A pull request that was just found to be gone has no list.
    if (found.some((one) => one.drift === "gone")) continue;
    drift.push(...(await auditLists(ctx, repository, [number], met, auditing)));
  }
  drift.push(...(await auditUnmetReviews(ctx, repository, numbers, met, auditing)));
  const last = numbers.at(-1);
  return {
    next: last === undefined ? null : JSON.stringify({ byRest: last } satisfies RestPlace),
    keys: [...met],
    isUnchanged: false,
    drift,
    changing: [],
  };
}

/** Compares whole lists of reviews, and notes in `met` what is on them. */
async function auditLists(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  met: Set<number>,
  { repair, signal }: Auditing,
): Promise<Drift[]> {
  const drift: Drift[] = [];
  for (const number of numbers) {
    let path: string | null = `/repositories/${repository.id}/pulls/${number}/reviews?page=1&${PER_PAGE}`;
    try {
      while (path !== null) {
        const page = await auditPage(ctx, repository, { kind: "review", path, repair, signal }, async () => {});
        for (const key of page.keys) met.add(key);
        drift.push(...page.drift);
        path = page.next;
      }
    } catch (error) {
      if (!(error instanceof RepositoryUnavailableError)) throw error;
      // The pull request may have been deleted a moment ago.
      const found = await auditUnmet(ctx, repository, "pull_request", number, repair);
      if (found === "off" || found.every((one) => one.drift !== "gone")) throw error;
      drift.push(...found);
    }
  }
  return drift;
}

/** Asks for the reviews of these pull requests that were met nowhere. */
async function auditUnmetReviews(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  met: ReadonlySet<number>,
  { repair, startedAt }: Auditing,
): Promise<Drift[]> {
  const drift: Drift[] = [];
  for (const key of await reviewsUnder(ctx, repository, numbers, startedAt)) {
    const found = met.has(key) ? [] : await auditUnmet(ctx, repository, "review", key, repair);
    if (found === "off") break;
    drift.push(...found);
  }
  return drift;
}

/** The place of a walk by REST, where GraphQL cannot give the reviews. The pull requests up to this number are done. */
interface RestPlace {
  byRest: number;
}

/** Earlier versions stored GraphQL's cursor by itself, which is base64 and so never begins like an object. */
function auditPlace(cursor: string | null): PullsPlace | RestPlace {
  return cursor?.startsWith("{") ? parseStored<PullsPlace | RestPlace>(cursor) : { after: cursor, pageSize: PAGE_SIZE };
}

/**
 * Open pull requests whose mergeability we know and upstream is computing again. Upstream computes it when asked, and
 * this audit's read asked. So a null in the answer says nothing.
 */
async function beingComputed(ctx: Context, repository: MirroredRepository, seen: Seen[]): Promise<Set<number>> {
  const unknown = seen.filter((one) => one.kind === "pull_request" && one.fields.mergeable === null);
  const numbers = unknown.map((one) => one.key);
  const known = [eq(pullRequests.repositoryId, repository.id), isNotNull(pullRequests.mergeable)];
  const open = [among(pullRequests.number, numbers), eq(pullRequests.state, "open")];
  return new Set(await findPullNumbers(ctx, [...known, ...open], numbers.length));
}

/**
 * Pull requests for which REST has not yet said how it shows a deleted account. They were never read alone, or still
 * show another account here. One read alone settles it, even if upstream then shows no merger.
 */
async function notYetClear(ctx: Context, repository: MirroredRepository, numbers: number[]): Promise<number[]> {
  const rows = await ctx.db.query<{ number: number }>(sql`
    select number from pull_requests
      where repository_id = ${repository.id} and number = any(${numbers}) and (detail -> 'merged_by' is null
        or merged_by_id is not null and merged_by_id not in (select id from users where login = 'ghost'))`);
  return rows.map((row) => row.number);
}

async function reviewsUnder(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  startedAt: Date,
): Promise<number[]> {
  const rows = await ctx.db
    .select({ id: pullRequestReviews.id })
    .from(pullRequestReviews)
    .where(
      and(
        eq(pullRequestReviews.repositoryId, repository.id),
        among(pullRequestReviews.pullNumber, numbers),
        isNull(pullRequestReviews.deletedAt),
        seenBefore(sql`${pullRequestReviews.seenAt}`, { readAt: startedAt, now: ctx.clock.now() }),
      ),
    );
  return rows.map((row) => row.id);
}
