import type { Context } from "../context.ts";
import type { MirroredRepository } from "../mirror/find-repository.ts";
import { REPLICA_LAG_MS } from "../mirror/merge-rule.ts";
import { joinObserved, type Observed, observe, type Seen } from "../mirror/observation.ts";
import { mergeObserved, type Transaction } from "../mirror/store.ts";
import type { Fields, Json } from "../mirror/template.ts";
import type { Priority } from "../upstream/client.ts";
import { GraphqlTooHeavyError } from "../upstream/errors.ts";
import { enqueueMarks, type Mark, storeMarks } from "./marks.ts";
import { PAGE_SIZE, type StoredPage, sightingOf, storePage } from "./pages.ts";

/**
 * What REST shows only one pull request at a time (its reviews, whether it was merged, its size) GraphQL shows for a
 * hundred at once, for about a point. The answers are put into REST's words here.
 */
export interface PullDetailsPage {
  observed: Observed;
  /** The GraphQL cursor to go on from; null: this was the last page. */
  next: string | null;
  pulls: number;
  /** Pull requests whose reviews GraphQL does not show well enough; read those by REST. */
  unfinished: number[];
  /** Pull requests of which something else must be read by REST. */
  unclear: number[];
}

interface Actor {
  __typename: string;
  login: string;
  avatarUrl: string;
  url: string;
  id?: string;
  databaseId?: number | null;
  isSiteAdmin?: boolean;
}

interface Review {
  id: string;
  fullDatabaseId: string;
  author: Actor | null;
  authorAssociation: string;
  body: string;
  state: string;
  url: string;
  submittedAt: string | null;
  updatedAt: string;
  commit: { oid: string } | null;
}

interface Pull {
  number: number;
  updatedAt: string;
  merged: boolean;
  mergeable: "MERGEABLE" | "CONFLICTING" | "UNKNOWN";
  mergeStateStatus: string;
  canBeRebased: boolean;
  mergedBy: Actor | null;
  maintainerCanModify: boolean;
  additions: number;
  deletions: number;
  changedFiles: number;
  commits: { totalCount: number };
  reviews: { pageInfo: { hasNextPage: boolean }; nodes: Review[] };
}

const ACTOR =
  "__typename login avatarUrl url ... on User { id databaseId isSiteAdmin } ... on Bot { id databaseId } ... on Mannequin { id databaseId }";
const PULL = `number updatedAt merged mergeable mergeStateStatus canBeRebased maintainerCanModify additions deletions changedFiles
  mergedBy { ${ACTOR} } commits { totalCount }
  reviews(first: 100) { pageInfo { hasNextPage } nodes {
    id fullDatabaseId authorAssociation body state url submittedAt updatedAt commit { oid } author { ${ACTOR} } } }`;
const RATE_LIMIT = "rateLimit { cost limit nodeCount remaining resetAt used }";

const PAGE = `query($id: ID!, $first: Int!, $after: String) { ${RATE_LIMIT} node(id: $id) { ... on Repository {
  pullRequests(first: $first, after: $after, orderBy: { field: CREATED_AT, direction: ASC }) {
    pageInfo { hasNextPage endCursor } nodes { ${PULL} } } } } }`;

const FULL_PAGE = 100;

/**
 * Reads the details of up to a hundred pull requests, by age. When upstream finds that too heavy the page is halved.
 * @throws GraphqlTooHeavyError when even one pull request is too much
 */
export async function readPullDetails(
  ctx: Pick<Context, "upstream" | "config" | "db">,
  repository: MirroredRepository,
  after: string | null,
  priority: Priority,
  signal?: AbortSignal,
): Promise<PullDetailsPage> {
  for (let first = FULL_PAGE; ; first = Math.floor(first / 2)) {
    try {
      return await readPage(ctx, repository, after, first, priority, signal);
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError) || first === 1) throw error;
    }
  }
}

/** More in one query is answered slowly, and upstream cuts long answers off at ten seconds. */
const PULLS_A_QUERY = 25;

/** Reads and stores the details of these pull requests, reviews included. Those that are gone are left out. */
export async function storePullDetails(
  ctx: Context,
  repository: MirroredRepository,
  numbers: number[],
  priority: Priority,
  signal?: AbortSignal,
  remember: (tx: Transaction) => Promise<void> = async () => {},
): Promise<void> {
  for (let start = 0; start < numbers.length; start += PULLS_A_QUERY) {
    const some = numbers.slice(start, start + PULLS_A_QUERY);
    const aliases = some.map((number) => `p${number}: pullRequest(number: ${number}) { ${PULL} }`).join("\n");
    const document = `query($id: ID!) { ${RATE_LIMIT} node(id: $id) { ... on Repository { ${aliases} } } }`;
    const { data, errors, seenAt } = await ctx.upstream.graphql<{ node: Record<string, Pull | null> | null }>(
      document,
      { id: repository.nodeId },
      { priority, repository: repository.id, ...(signal ? { signal } : {}) },
    );
    const fault = errors.find((error) => error.type !== "NOT_FOUND");
    if (fault || !data.node)
      throw new Error(
        `Upstream's GraphQL does not show pull requests of ${repository.fullName}: ${fault?.message ?? "no such node"}`,
      );
    const pulls = Object.values(data.node).filter((pull) => pull !== null);
    const marks = marksForUnclear(ctx, repository, unclearOf(pulls));
    const observed = await observePulls(ctx, repository, pulls, seenAt);
    await ctx.db.transaction(async (tx) => {
      await mergeObserved(tx, observed);
      await storeMarks(tx, marks);
      await remember(tx);
    });
    await enqueueMarks(ctx, marks);
    await readOtherReviews(ctx, repository, unfinishedOf(pulls), priority);
  }
}

const MERGEABILITY_PATIENCE_MS = 15 * 60_000;

/** Asks again about all open pull requests of which upstream did not know whether they can be merged. */
export async function storeMergeability(
  ctx: Context,
  repository: MirroredRepository,
  priority: Priority,
  signal: AbortSignal,
): Promise<void> {
  for (let after: number | null = 0; after !== null; )
    after = await storeMergeabilityAfter(ctx, repository, after, priority, signal, async () => {});
}

/**
 * Upstream works out whether a pull request can be merged only once it is asked, and then it takes a while. Asks again
 * about the open ones that it did not know of, unless nothing has been heard of them for long: some it never knows.
 *
 * One query, about those numbered above `after`. Answers the last number it was about, which `remember` gets in the
 * transaction that stores the answer; null when none was left.
 */
export async function storeMergeabilityAfter(
  ctx: Context,
  repository: MirroredRepository,
  after: number,
  priority: Priority,
  signal: AbortSignal,
  remember: (tx: Transaction, last: number) => Promise<void>,
): Promise<number | null> {
  const heardSince = new Date(ctx.clock.now().getTime() - MERGEABILITY_PATIENCE_MS);
  const { rows } = await ctx.db.$client.query<{ number: number }>(
    `select number from pull_requests where repository_id = $1 and number > $2 and id is not null and state = 'open'
      and mergeable is null and deleted_at is null and seen_at > $3 order by number limit ${PULLS_A_QUERY}`,
    [repository.id, after, heardSince],
  );
  const numbers = rows.map((row) => row.number);
  const last = numbers.at(-1);
  if (last === undefined) return null;
  await storePullDetails(ctx, repository, numbers, priority, signal, (tx) => remember(tx, last));
  return last;
}

/** Where REST lists all reviews of these pull requests. */
export function reviewLists(repository: MirroredRepository, numbers: number[]): string[] {
  return numbers.map((number) => `/repositories/${repository.id}/pulls/${number}/reviews?per_page=${PAGE_SIZE}`);
}

/** Reads all reviews of these pull requests by REST, page by page. */
async function readOtherReviews(
  ctx: Context,
  repository: MirroredRepository,
  numbers: number[],
  priority: Priority,
): Promise<void> {
  for (const list of reviewLists(repository, numbers)) {
    for (let at: string | null = list; at !== null; ) {
      const page: StoredPage = await storePage(ctx, repository, "review", at, priority, async () => {});
      at = page.next;
    }
  }
}

/** GraphQL shows an account that was deleted as null, and REST as the user `ghost`. */
function unfinishedOf(pulls: Pull[]): number[] {
  return pulls
    .filter(({ reviews }) => reviews.pageInfo.hasNextPage || reviews.nodes.some(({ author }) => !author))
    .map(({ number }) => number);
}

function unclearOf(pulls: Pull[]): number[] {
  return pulls.filter((pull) => pull.merged && !pull.mergedBy).map((pull) => pull.number);
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

interface PageData {
  node: { pullRequests: { pageInfo: { hasNextPage: boolean; endCursor: string | null }; nodes: Pull[] } } | null;
}

async function readPage(
  ctx: Pick<Context, "upstream" | "config" | "db">,
  repository: MirroredRepository,
  after: string | null,
  first: number,
  priority: Priority,
  signal?: AbortSignal,
): Promise<PullDetailsPage> {
  const variables = { id: repository.nodeId, first, after };
  const { data, errors, seenAt } = await ctx.upstream.graphql<PageData>(PAGE, variables, {
    priority,
    repository: repository.id,
    ...(signal ? { signal } : {}),
  });
  // A null may mean "not allowed" as well as "none", so an answer with an error in it is no fact.
  if (errors.length > 0 || !data.node)
    throw new Error(
      `Upstream's GraphQL does not show the pull requests of ${repository.fullName}: ${errors[0]?.message ?? "no such node"}`,
    );
  const { pageInfo, nodes } = data.node.pullRequests;
  return {
    observed: await observePulls(ctx, repository, nodes, seenAt),
    next: pageInfo.hasNextPage ? pageInfo.endCursor : null,
    pulls: nodes.length,
    unfinished: unfinishedOf(nodes),
    unclear: unclearOf(nodes),
  };
}

async function observePulls(
  ctx: Pick<Context, "config" | "db">,
  repository: MirroredRepository,
  pulls: Pull[],
  seenAt: Date,
): Promise<Observed> {
  const counts = await reviewCommentCounts(ctx, repository, pulls);
  return joinObserved(pulls.map((pull) => observePull(ctx, repository, pull, counts.get(pull.number) ?? 0, seenAt)));
}

/** GraphQL has no count of the comments on a diff; they were read before, so the mirror can count them. */
async function reviewCommentCounts(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  pulls: Pull[],
): Promise<Map<number, number>> {
  const { rows } = await ctx.db.$client.query<{ pull_number: number; count: number }>(
    `select pull_number, count(*)::int as count from pull_request_review_comments
      where repository_id = $1 and pull_number = any($2) and deleted_at is null group by pull_number`,
    [repository.id, pulls.map((pull) => pull.number)],
  );
  return new Map(rows.map((row) => [row.pull_number, row.count]));
}

function observePull(
  ctx: Pick<Context, "config">,
  repository: MirroredRepository,
  pull: Pull,
  reviewComments: number,
  seenAt: Date,
): Observed {
  const at = sightingOf(ctx, repository, seenAt);
  const userOf = (actor: Actor | null): Json => {
    if (!actor?.databaseId) return null;
    return userView(actor, ctx.config.upstreamUrl);
  };
  // Made into a whole representation so that one reading serves both, and marked as the part that it is.
  const detail: Fields = {
    number: pull.number,
    merged: pull.merged,
    mergeable: pull.mergeable === "UNKNOWN" ? null : pull.mergeable === "MERGEABLE",
    rebaseable: pull.mergeable === "UNKNOWN" ? null : pull.canBeRebased,
    mergeable_state: pull.mergeStateStatus.toLowerCase(),
    ...(pull.merged && !pull.mergedBy ? {} : { merged_by: userOf(pull.mergedBy) }),
    review_comments: reviewComments,
    commits: pull.commits.totalCount,
    additions: pull.additions,
    deletions: pull.deletions,
    changed_files: pull.changedFiles,
    maintainer_can_modify: pull.maintainerCanModify,
  };
  const reviews = pull.reviews.nodes
    .filter((review) => review.author)
    .map((review) =>
      observe("review", reviewView(review, userOf(review.author), repository, ctx.config.upstreamUrl, pull.number), at),
    );
  return joinObserved([observeDetail(detail, pull.updatedAt, at), ...reviews].map(onlyIfUnknown));
}

/** The keys of `detail`, as a partial observation of the pull request. */
function observeDetail(detail: Fields, updatedAt: string, at: ReturnType<typeof sightingOf>): Observed {
  const whole = { ...detail, title: "", state: "", created_at: updatedAt, updated_at: updatedAt };
  const { seen, shapes } = observe("pull_request", whole, at);
  const parts = seen
    .filter((one) => one.kind !== "issue")
    .map((one): Seen => {
      if (one.kind !== "pull_request") return one;
      const { title: _title, state: _state, created_at: _created, updated_at: _updated, ...fields } = one.fields;
      return { ...one, fields, extent: "part" };
    });
  return { seen: parts, shapes };
}

/** GraphQL shows less of a user than REST, and spells some of it otherwise: it serves for users not yet met. */
function onlyIfUnknown({ seen, shapes }: Observed): Observed {
  return {
    seen: seen.map((one) => (one.kind === "user" ? { ...one, stamp: { updatedAt: 0, seenAt: 0, read: false } } : one)),
    shapes,
  };
}

function reviewView(review: Review, user: Json, repository: MirroredRepository, api: string, number: number): Fields {
  const pull_request_url = `${api}/repos/${repository.fullName}/pulls/${number}`;
  return {
    id: Number(review.fullDatabaseId),
    node_id: review.id,
    user,
    body: review.body,
    state: review.state,
    html_url: review.url,
    pull_request_url,
    author_association: review.authorAssociation,
    _links: { html: { href: review.url }, pull_request: { href: pull_request_url } },
    // Absent while the review is pending.
    ...(review.submittedAt === null ? {} : { submitted_at: review.submittedAt }),
    commit_id: review.commit?.oid ?? null,
    updated_at: review.updatedAt,
  };
}

/** REST's simple user, as far as GraphQL tells it. */
function userView(actor: Actor, api: string): Fields {
  // GraphQL leaves the suffix off that REST gives to apps.
  const login = actor.__typename === "Bot" ? `${actor.login}[bot]` : actor.login;
  const url = `${api}/users/${encodeURIComponent(login)}`;
  return {
    login,
    id: actor.databaseId as number,
    node_id: actor.id ?? "",
    avatar_url: actor.avatarUrl,
    gravatar_id: "",
    url,
    html_url: actor.url,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type: actor.__typename,
    user_view_type: "public",
    site_admin: actor.isSiteAdmin ?? false,
  };
}
