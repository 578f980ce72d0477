import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Mark, marksForMergeability, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Observed } from "../../mirror/store/observation.ts";
import { GraphqlTooHeavyError } from "../../upstream/client/errors.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";
import type { Priority } from "../../upstream/client/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../refresh/marks.ts";
import { type GoneAccounts, learnGoneAccounts, mergedByGone, reviewedByGone } from "./gone-accounts.ts";
import { type Pull, PullsNotShownError, readSinglePulls } from "./graphql-pulls.ts";
import { readReviewLists } from "./pages.ts";
import { observePulls, PULL_FIELDS } from "./pull-observations.ts";

/** For a point, GraphQL shows of many pull requests what REST shows one by one: reviews, merges, sizes. */
export interface PullDetailsPage {
  pulls: Pull[];
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

/** The same in REST's words. */
export interface PullDetails {
  observed: Observed;
  /** Pull requests whose reviews GraphQL does not show well enough; read those by REST. */
  unfinished: number[];
  /** Pull requests with another field that must be read by REST. */
  unclear: number[];
}

const PAGE = `query($id: ID!, $first: Int!, $after: String) { ${RATE_LIMIT} node(id: $id) {
  ... on Repository { pullRequests(first: $first, after: $after, orderBy: { field: CREATED_AT, direction: ASC }) {
    pageInfo { hasNextPage endCursor } nodes { ${PULL_FIELDS} } } } } }`;

/**
 * The pull requests that a point buys if upstream charges for counts of commits. GitHub docs: a request for each
 * connection of each parent, a hundred requests to the point, rounded; so 1 + 74 reviews + 74 counts. If upstream does
 * not charge, a whole page is a point: 1 + 100 reviews.
 */
const PULLS_A_POINT = 74;

/**
 * Reads the details of a page of pull requests, oldest first. If upstream finds that too heavy, the page is halved. If
 * upstream charges more than a point, later pages are smaller.
 * @throws GraphqlTooHeavyError when even one pull request is too much
 */
export async function readPullDetails(
  ctx: Pick<Context, "upstream">,
  repository: MirroredRepository,
  { after, pageSize }: PullsPlace,
  read: { priority: Priority; signal?: AbortSignal },
): Promise<PullDetailsPage> {
  for (let first = pageSize; ; first = Math.floor(first / 2)) {
    try {
      const { cost, ...page } = await readPage(ctx, repository, { after, first }, read);
      return { ...page, pageSize: cost !== null && cost > 1 ? Math.min(pageSize, PULLS_A_POINT) : pageSize };
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError) || first === 1) throw error;
    }
  }
}

interface PageData {
  node: { pullRequests: { pageInfo: { hasNextPage: boolean; endCursor: string | null }; nodes: Pull[] } } | null;
}

async function readPage(
  ctx: Pick<Context, "upstream">,
  repository: MirroredRepository,
  page: { after: string | null; first: number },
  read: { priority: Priority; signal?: AbortSignal },
): Promise<Omit<PullDetailsPage, "pageSize"> & { cost: number | null }> {
  const variables = { id: repository.nodeId, ...page };
  const { data, errors, seenAt, cost } = await ctx.upstream.graphql<PageData>(PAGE, variables, {
    ...read,
    repository: repository.id,
  });
  // A null may mean "not allowed" as well as "none", so an answer with an error in it is no fact.
  if (errors.length > 0 || !data.node)
    throw new PullsNotShownError(
      `Upstream's GraphQL does not show the pull requests of ${repository.fullName}: ${errors[0]?.message ?? "no such node"}`,
    );
  const { pageInfo, nodes } = data.node.pullRequests;
  return { pulls: nodes, next: pageInfo.hasNextPage ? pageInfo.endCursor : null, seenAt, cost };
}

/** @param gone how REST shows deleted accounts, as far as known; the rest has to be read by REST */
export async function pullDetailsOf(
  ctx: Pick<Context, "config" | "db">,
  repository: MirroredRepository,
  { pulls, seenAt }: Pick<PullDetailsPage, "pulls" | "seenAt">,
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
  page: Pick<PullDetailsPage, "pulls" | "seenAt">,
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

/** More in one query is answered slowly, and upstream cuts long answers off at ten seconds. */
const PULLS_A_QUERY = 25;

/** Reads and stores the details of these pull requests, reviews included. Deleted ones are left out. */
export async function fetchAndStorePullDetails(
  ctx: Context,
  repository: MirroredRepository,
  numbers: number[],
  priority: Priority,
  signal?: AbortSignal,
): Promise<void> {
  for (let start = 0; start < numbers.length; start += PULLS_A_QUERY) {
    const some = numbers.slice(start, start + PULLS_A_QUERY);
    const page = await readSinglePulls<Pull>(ctx, repository, some, PULL_FIELDS, {
      priority,
      ...(signal ? { signal } : {}),
    });
    const { observed, unfinished, unclear } = await learnPullDetails(ctx, repository, page, priority);
    const marks = marksForUnclear(ctx, repository, unclear);
    await whileMirrored(ctx, repository, async (tx) => {
      await mergeObserved(tx, observed);
      marks.push(...(await marksForMergeability(tx, observed.seen, page.seenAt)));
      await storeMarks(tx, marks);
    });
    await enqueueMarks(ctx, marks);
    await readReviewLists(ctx, repository, unfinished, priority);
  }
}

export function marksForUnclear(
  ctx: Pick<Context, "clock">,
  repository: MirroredRepository,
  numbers: number[],
): Mark[] {
  const now = ctx.clock.now();
  // Nothing has changed, so no replica lags: one read settles it.
  const askedAt = new Date(now.getTime() - 2 * REPLICA_LAG_MS);
  return numbers.map((key) => ({ kind: "pull_request", repositoryId: repository.id, key, askedAt, notBefore: now }));
}
