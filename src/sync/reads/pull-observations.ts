import type { Context } from "../../context.ts";
import type { Fields, Json } from "../../json.ts";
import { appOf } from "../../mirror/documents/bots.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { joinObserved, type Observed, observe, type Seen } from "../../mirror/store/observation.ts";
import { countReviewComments } from "../marks/counts.ts";
import type { GoneAccounts } from "./gone-accounts.ts";
import { type Actor, isUnnamed, type Mergeability, type Pull, type Review } from "./graphql-pulls.ts";
import { sightingOf } from "./pages.ts";
import { simpleUser } from "./simple-user.ts";

/**
 * Any type of Actor may stand here: a user's account may have become an organisation. An EnterpriseUserAccount has no
 * `databaseId`, and old servers do not know the type; REST shows who that is.
 */
export const ACTOR =
  "__typename login avatarUrl url ... on User { id databaseId isSiteAdmin } ... on Bot { id databaseId } ... on Mannequin { id databaseId } ... on Organization { id databaseId }";
/** No webhook tells of another `maintainerCanModify`: `edited` is about title, body and base branch. */
export const MERGEABILITY_FIELDS =
  "number updatedAt state headRefOid mergeable mergeStateStatus canBeRebased potentialMergeCommit { oid } maintainerCanModify";
/**
 * Upstream counts one request for the reviews of each pull request, and perhaps one for its commit count. GitHub docs
 * do not say what a connection without bounds costs.
 */
export const PULL_FIELDS = `${MERGEABILITY_FIELDS} merged additions deletions changedFiles
  commits { totalCount } mergedBy { ${ACTOR} }
  reviews(first: 100) { pageInfo { hasNextPage } nodes {
    id fullDatabaseId authorAssociation body state url submittedAt updatedAt commit { oid } author { ${ACTOR} } } }`;

/** @param gone how REST shows deleted accounts, as far as known; without it, their reviews and merges are left out */
export async function observePulls(
  ctx: Pick<Context, "config" | "db">,
  repository: MirroredRepository,
  pulls: readonly Pull[],
  seenAt: Date,
  gone: GoneAccounts,
): Promise<Observed> {
  // GraphQL has no count of the comments on a diff; they were read before, so the mirror can count them.
  const keys = pulls.map(({ number }) => ({ repositoryId: repository.id, key: number }));
  const counts = await countReviewComments(ctx.db, keys);
  return joinObserved(
    pulls.map((pull) =>
      observePull(ctx, repository, pull, counts.get(`${repository.id}/${pull.number}`) ?? 0, seenAt, gone),
    ),
  );
}

/** Observes what `MERGEABILITY_FIELDS` shows of pull requests, and nothing else. */
export function observeMergeability(
  ctx: Pick<Context, "config">,
  repository: MirroredRepository,
  pulls: readonly Mergeability[],
  seenAt: Date,
): Observed {
  const at = sightingOf(ctx, repository, seenAt);
  return joinObserved(pulls.map((pull) => observeDetail(mergeabilityView(pull), pull, at)));
}

function observePull(
  ctx: Pick<Context, "config">,
  repository: MirroredRepository,
  pull: Pull,
  reviewComments: number,
  seenAt: Date,
  gone: GoneAccounts,
): Observed {
  const at = sightingOf(ctx, repository, seenAt);
  const api = ctx.config.upstreamUrl;
  const userOf = (actor: Actor | null): Json => (actor?.databaseId ? userView(actor, actor.databaseId, api) : null);
  const isMergerGone = pull.merged && !pull.mergedBy;
  const detail = observeDetail(
    {
      ...mergeabilityView(pull),
      merged: pull.merged,
      ...((isMergerGone && gone.merger === undefined) || isUnnamed(pull.mergedBy)
        ? {}
        : { merged_by: userOf(pull.mergedBy) }),
      review_comments: reviewComments,
      commits: pull.commits.totalCount,
      additions: pull.additions,
      deletions: pull.deletions,
      changed_files: pull.changedFiles,
    },
    pull,
    at,
  );
  const reviews = pull.reviews.nodes
    .filter((review) => review !== null)
    .filter(({ author }) => !isUnnamed(author) && (author || gone.reviewer !== undefined))
    .map((review) => {
      const view = reviewView(review, userOf(review.author), repository, api, pull.number);
      const observed = observe("review", view, at);
      return review.author || gone.reviewer === undefined
        ? observed
        : withField(observed, "review", "user", gone.reviewer);
    });
  const parts = [
    isMergerGone && gone.merger !== undefined ? withField(detail, "pull_request", "merged_by", gone.merger) : detail,
  ];
  return joinObserved([...parts, ...reviews].map(onlyIfUnknown));
}

/** A stored reference, put where the representation has none. */
function withField({ seen, shapes }: Observed, kind: Seen["kind"], key: string, value: Json): Observed {
  return {
    seen: seen.map((one) => (one.kind === kind ? { ...one, fields: { ...one.fields, [key]: value } } : one)),
    shapes,
  };
}

/** `MERGEABILITY_FIELDS` in REST's words. Upstream computes mergeability only once it is asked: until then it is null. */
export function mergeabilityView({
  number,
  state,
  mergeable,
  canBeRebased,
  mergeStateStatus,
  potentialMergeCommit,
  maintainerCanModify,
}: Mergeability): Fields {
  return {
    number,
    // REST shows another commit of a closed pull request: its merge.
    ...(state === "OPEN" && potentialMergeCommit ? { merge_commit_sha: potentialMergeCommit.oid } : {}),
    mergeable: mergeable === "UNKNOWN" ? null : mergeable === "MERGEABLE",
    rebaseable: mergeable === "UNKNOWN" ? null : canBeRebased,
    mergeable_state: mergeStateStatus.toLowerCase(),
    maintainer_can_modify: maintainerCanModify,
  };
}

/**
 * The keys of `detail`, as a partial observation of the pull request. It goes through the reading of whole pull
 * requests, so that there is only one.
 */
function observeDetail(
  detail: Fields,
  { updatedAt, headRefOid: head }: Pick<Mergeability, "updatedAt" | "headRefOid">,
  at: ReturnType<typeof sightingOf>,
): Observed {
  const { seen, shapes } = observe("pull_request", { ...detail, updated_at: updatedAt }, { ...at, isPart: true });
  const parts = seen.map((one): Seen => {
    if (one.kind !== "pull_request") return one;
    const { updated_at: _updated, ...fields } = one.fields;
    return { ...one, fields, head };
  });
  return { seen: parts, shapes };
}

/**
 * GraphQL shows less of a user than REST, and spells some values otherwise. So its users are stored only if the mirror
 * does not know them.
 */
function onlyIfUnknown({ seen, shapes }: Observed): Observed {
  return {
    seen: seen.map((one) => (one.kind === "user" ? { ...one, stamp: { updatedAt: 0, seenAt: 0, read: false } } : one)),
    shapes,
  };
}

function reviewView(review: Review, user: Json, repository: MirroredRepository, api: string, number: number): Fields {
  // The name that the repository had when upstream answered, which may be another than we know.
  const [, shownName = repository.fullName] = /\/([^/]+\/[^/]+)\/pull\/\d+/.exec(review.url) ?? [];
  const pull_request_url = `${api}/repos/${shownName}/pulls/${number}`;
  return {
    id: review.fullDatabaseId,
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

/** A user in the form of REST's simple user, with the fields that GraphQL shows. */
export function userView(actor: Actor, id: number, api: string): Fields {
  // GraphQL leaves the suffix off that REST gives to apps.
  const login = actor.__typename === "Bot" ? `${appOf(actor.url) ?? actor.login}[bot]` : actor.login;
  return simpleUser(
    {
      ...{ login, id, nodeId: actor.id ?? "", avatarUrl: actor.avatarUrl, htmlUrl: actor.url },
      ...{ type: actor.__typename, isSiteAdmin: actor.isSiteAdmin ?? false },
    },
    api,
  );
}
