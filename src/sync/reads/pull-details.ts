import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, wholeOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Mark, marksForConflicts, marksForMergeability, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Observed } from "../../mirror/store/observation.ts";
import { inBearableSize } from "../../upstream/client/bearable-sizes.ts";
import { GraphqlTooHeavyError } from "../../upstream/protocol/errors.ts";
import { type FieldReader, nextCursor, object, readableRows, whole } from "../../upstream/protocol/field-readers.ts";
import { RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { PullsNotShownError } from "../problems/errors.ts";
import { graphqlOrRest } from "./beyond-graphql.ts";
import { type GoneAccounts, learnGoneAccounts, mergedByGone, reviewedByGone } from "./gone-accounts.ts";
import { areReviewsShown, isUnnamed, type Pull, readPull, readPullsPage, readSinglePulls } from "./graphql-pulls.ts";
import { fetchAndStoreReviewLists } from "./pages.ts";
import { observePulls, PULL_FIELDS } from "./pull-observations.ts";
import { fetchAndStorePullsByRest } from "./pulls-by-rest.ts";

/** For a point, GraphQL shows of many pull requests what REST shows one by one: reviews, merges, sizes. */
export interface PullDetailsPage {
  pulls: Pull[];
  /** Pull requests on the page that are too heavy even alone, or shown in part. They are read by REST. */
  left: number[];
  /** The GraphQL cursor to go on from; null: this was the last page. */
  next: string | null;
  /** How many to ask for in the pages after this one. */
  pageSize: number;
  seenAt: Date;
}

/** Where a walk through a repository's pull requests stands. */
export interface PullsPlace {
  /** GraphQL's cursor; null: before the first page. */
  after: string | null;
  /** How many to ask for. A walk begins with `PAGE_SIZE`. */
  pageSize: number;
}

/** The details in REST's form. */
export interface PullDetails {
  observed: Observed;
  /** Pull requests whose reviews GraphQL does not show well enough; read those by REST. */
  unfinished: number[];
  /** Pull requests with another field that must be read by REST. */
  unclear: number[];
}

const PULLS_PAGE = { document: pullsPageQuery(PULL_FIELDS), readPull };
/** A pull request's number and cursor: enough to go on past it, if the rest of it is too heavy. */
const NUMBERS_PAGE = { document: pullsPageQuery("number"), readPull: object({ number: whole }) };

function pullsPageQuery(fields: string): string {
  return `query($id: ID!, $first: Int!, $after: String) { ${RATE_LIMIT} node(id: $id) {
  ... on Repository { pullRequests(first: $first, after: $after, orderBy: { field: CREATED_AT, direction: ASC }) {
    pageInfo { hasNextPage endCursor } nodes { ${fields} } } } } }`;
}

/**
 * The pull requests that a point buys if upstream charges for counts of commits. GitHub docs: a request for each
 * connection of each parent, a hundred requests to the point, rounded; so 1 + 74 reviews + 74 counts. If upstream does
 * not charge, a whole page is a point: 1 + 100 reviews.
 */
const PULLS_A_POINT = 74;

/**
 * Reads the details of a page of pull requests, oldest first, as many as upstream can bear. If upstream charges more
 * than a point, later pages are smaller.
 * @throws GraphqlTooHeavyError when upstream cannot even number the pull requests
 */
export async function readPullDetails(
  ctx: Pick<Context, "upstream" | "db" | "clock">,
  repository: MirroredRepository,
  { after, pageSize }: PullsPlace,
  read: { priority: Priority; signal?: AbortSignal },
): Promise<PullDetailsPage> {
  const sizes = { repositoryId: repository.id, query: "pull pages", atMost: pageSize } as const;
  try {
    return await inBearableSize(ctx, sizes, async (first) => {
      const page = await readDetailsPage(ctx, repository, PULLS_PAGE, { after, first }, read);
      const isDear = page.cost !== null && page.cost > 1;
      return { ...page, pageSize: isDear ? Math.min(pageSize, PULLS_A_POINT) : pageSize };
    });
  } catch (error) {
    if (!(error instanceof GraphqlTooHeavyError)) throw error;
    const page = await readDetailsPage(ctx, repository, NUMBERS_PAGE, { after, first: 1 }, read);
    return { ...page, pulls: [], left: page.pulls.map(({ number }) => number), pageSize };
  }
}

async function readDetailsPage<Node extends { number: number }>(
  ctx: Pick<Context, "upstream" | "db">,
  repository: MirroredRepository,
  { document, readPull }: { document: string; readPull: FieldReader<Node> },
  page: { after: string | null; first: number },
  read: { priority: Priority; signal?: AbortSignal },
): Promise<{ pulls: Node[]; left: number[]; next: string | null; seenAt: Date; cost: number | null }> {
  const variables = { id: repository.nodeId, ...page };
  const { data, errors, seenAt, cost } = await ctx.upstream.graphql(document, variables, {
    ...read,
    repository: repository.id,
  });
  // A null may mean "not allowed" as well as "none", so a pull request with an error is not believed.
  const faulty = new Set(errors.map(({ path }) => (path[2] === "nodes" ? Number(path[3]) : Number.NaN)));
  const shown = objectOf(objectOf(data.node).pullRequests).nodes;
  const isNone =
    !Array.isArray(shown) || (shown.length > 0 && shown.every((node) => wholeOf(objectOf(node).number) === null));
  if (isNone || faulty.has(Number.NaN))
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show the pull requests of ${repository.fullName}: ${errors[0]?.message ?? "no such node"}`,
    );
  const { pageInfo, nodes } = readPullsPage(data.node, "node").pullRequests;
  const pulls = nodes.map((node, at) => (faulty.has(at) ? null : readableRows(readPull, node, "nodes")));
  // One that cannot be read concerns no other: REST shows it.
  const numbers = nodes.map((node) => wholeOf(objectOf(node).number));
  return {
    pulls: pulls.filter((pull) => pull !== null),
    left: [
      ...numbers.flatMap((number, at) => (number !== null && !pulls[at] ? [number] : [])),
      ...(await findUnnumbered(ctx, repository, numbers)),
    ],
    next: nextCursor(pageInfo, page.after),
    seenAt,
    cost,
  };
}

/**
 * Finds the pull requests of a page that upstream shows as null, or without a number. They are those that the mirror
 * has between the others, in the page's order: that of creation, from which numbers may differ after an import.
 */
async function findUnnumbered(
  { db }: Pick<Context, "db">,
  { id }: MirroredRepository,
  numbers: readonly (number | null)[],
): Promise<number[]> {
  const known = numbers.filter((number) => number !== null);
  if (known.length === numbers.length) return [];
  const before = numbers.findIndex((number) => number !== null);
  const behind = numbers.length - 1 - numbers.findLastIndex((number) => number !== null);
  const rows = await db.query<{ number: number }>(sql`
    with own as (select number, created_at, number = any(${known}::integer[]) as is_known from pull_requests
      where repository_id = ${id} and id is not null and deleted_at is null),
    least as (select created_at, number from own where is_known order by created_at, number limit 1),
    most as (select created_at, number from own where is_known order by created_at desc, number desc limit 1)
    select o.number from own o, least, most where not o.is_known
        and (o.created_at, o.number) > (least.created_at, least.number)
        and (o.created_at, o.number) < (most.created_at, most.number)
      union all (select o.number from own o, least where (o.created_at, o.number) < (least.created_at, least.number)
        order by o.created_at desc, o.number desc limit ${before})
      union all (select o.number from own o, most where (o.created_at, o.number) > (most.created_at, most.number)
        order by o.created_at, o.number limit ${behind})
      order by 1`);
  return rows.map(({ number }) => number);
}

type ShownPulls = Pick<PullDetailsPage, "pulls" | "seenAt">;

/** @param gone how REST shows deleted accounts, as far as known; the rest has to be read by REST */
export async function pullDetailsOf(
  ctx: Pick<Context, "config" | "db">,
  repository: MirroredRepository,
  { pulls, seenAt }: ShownPulls,
  gone: GoneAccounts = {},
): Promise<PullDetails> {
  const numbers = (of: (pull: Pull) => boolean) => pulls.filter(of).map(({ number }) => number);
  return {
    observed: await observePulls(ctx, repository, pulls, seenAt, gone),
    unfinished: numbers((pull) => !areReviewsShown(pull) || (reviewedByGone(pull) && gone.reviewer === undefined)),
    unclear: numbers((pull) => isUnnamed(pull.mergedBy) || (mergedByGone(pull) && gone.merger === undefined)),
  };
}

/** The same, completed by a few REST reads that show deleted accounts. */
export async function learnPullDetails(
  ctx: Context,
  repository: MirroredRepository,
  page: ShownPulls,
  priority: Priority,
): Promise<PullDetails> {
  const { gone, read } = await learnGoneAccounts(ctx, repository, page.pulls, priority);
  const { observed, unfinished, unclear } = await pullDetailsOf(ctx, repository, page, gone);
  return {
    observed,
    unfinished: unfinished.filter((number) => !read.reviews.includes(number)),
    unclear: unclear.filter((number) => !read.merges.includes(number)),
  };
}

/** Reads and stores the details of these pull requests, reviews included. Deleted ones are left out. */
export async function fetchAndStorePullDetails(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  priority: Priority,
  signal?: AbortSignal,
): Promise<void> {
  const read = { priority, ...(signal ? { signal } : {}) };
  if (numbers.length === 0) return;
  await graphqlOrRest(
    ctx,
    () => fetchByGraphql(ctx, repository, numbers, read),
    () => fetchAndStorePullsByRest(ctx, repository, numbers, priority),
  );
}

async function fetchByGraphql(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  read: { priority: Priority; signal?: AbortSignal },
): Promise<void> {
  const { priority } = read;
  for (let left = numbers; left.length > 0; ) {
    const sizes = { repositoryId: repository.id, query: "single pulls", atMost: left.length } as const;
    try {
      left = await inBearableSize(ctx, sizes, async (size) => {
        const page = await readSinglePulls(
          ctx,
          repository,
          left.slice(0, size),
          { fields: PULL_FIELDS, readPull },
          read,
        );
        await storePullDetails(ctx, repository, page, priority);
        await fetchAndStorePullsByRest(ctx, repository, page.inPart, priority);
        return left.slice(size);
      });
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError)) throw error;
      await fetchAndStorePullsByRest(ctx, repository, left.slice(0, 1), priority);
      left = left.slice(1);
    }
  }
}

async function storePullDetails(
  ctx: Context,
  repository: MirroredRepository,
  page: ShownPulls,
  priority: Priority,
): Promise<void> {
  const { observed, unfinished, unclear } = await learnPullDetails(ctx, repository, page, priority);
  const marks = marksForUnclear(ctx, repository, unclear);
  await whileMirrored(ctx, repository, async (tx) => {
    marks.push(...marksForConflicts(await mergeObserved(tx, observed), page.seenAt));
    marks.push(...(await marksForMergeability(tx, observed.seen, page.seenAt)));
    await storeMarks(tx, marks);
  });
  await enqueueMarks(ctx, marks);
  await fetchAndStoreReviewLists(ctx, repository, unfinished, priority);
}

export function marksForUnclear(
  ctx: Pick<Context, "clock">,
  repository: MirroredRepository,
  numbers: number[],
): Mark[] {
  const now = ctx.clock.now();
  // No recent change is involved, so no replica can lag, and one read settles the mark.
  const askedAt = new Date(now.getTime() - 2 * REPLICA_LAG_MS);
  return numbers.map((key) => ({ kind: "pull_request", repositoryId: repository.id, key, askedAt, notBefore: now }));
}
