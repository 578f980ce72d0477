import type { Context } from "../../context.ts";
import { objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Mark, marksForMergeability, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Observed } from "../../mirror/store/observation.ts";
import { GraphqlTooHeavyError } from "../../upstream/client/errors.ts";
import { type FieldReader, object, whole } from "../../upstream/client/field-readers.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";
import type { Priority } from "../../upstream/client/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../refresh/marks.ts";
import { graphqlOrRest } from "./beyond-graphql.ts";
import { type GoneAccounts, learnGoneAccounts, mergedByGone, reviewedByGone } from "./gone-accounts.ts";
import { type Pull, PullsNotShownError, readPull, readPullsPage, readSinglePulls } from "./graphql-pulls.ts";
import { inBearableSize } from "./graphql-sizes.ts";
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
  ctx: Pick<Context, "upstream">,
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
  if (data.node === null || [...faulty].some((place) => !Array.isArray(shown) || shown[place] == null))
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show the pull requests of ${repository.fullName}: ${errors[0]?.message ?? "no such node"}`,
    );
  const { pageInfo, nodes } = readPullsPage(data.node, "node").pullRequests;
  return {
    pulls: nodes.flatMap((node, at) => (faulty.has(at) ? [] : [readPull(node, "nodes")])),
    left: nodes.flatMap((node, at) => (faulty.has(at) ? [whole(objectOf(node).number, "number")] : [])),
    next: pageInfo.hasNextPage ? pageInfo.endCursor : null,
    seenAt,
    cost,
  };
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
    unfinished: numbers(
      (pull) => pull.reviews.pageInfo.hasNextPage || (reviewedByGone(pull) && gone.reviewer === undefined),
    ),
    unclear: numbers((pull) => mergedByGone(pull) && gone.merger === undefined),
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
    await mergeObserved(tx, observed);
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
