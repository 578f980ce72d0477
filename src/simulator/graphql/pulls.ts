import { askMergeable, mergeability, mergeCommit } from "../views/pull.ts";
import { timeOrNull } from "../views/view.ts";
import type { PullIssue, Repository, Review } from "../world/records.ts";
import { commentCount } from "../world/world.ts";
import { actor, type Call, forbidden, issuePage, pathOf, readable, TimedOutError } from "./call.ts";
import { commit, pullCodeFields } from "./commits.ts";
import { arraySource, connection } from "./connection.ts";
import { pullState } from "./issue-lists.ts";
import { sharedFields } from "./issues.ts";
import { endRef } from "./refs.ts";
import type { Fields } from "./resolvers.ts";
import { reviewThreads } from "./review-thread.ts";
import { timelineItems } from "./timeline.ts";

/** Reviews that the caller may see: a pending review is its author's alone. */
function visibleReviews(call: Call, issue: PullIssue): readonly Review[] {
  return issue.pull.reviews.filter((review) => review.state !== "PENDING" || review.authorId === call.viewer.id);
}

/** The last review of each author that says anything. */
function latestReviews(call: Call, issue: PullIssue, states: readonly Review["state"][]): Review[] {
  const latest = new Map<number | null, Review>();
  for (const review of visibleReviews(call, issue))
    if (states.includes(review.state)) latest.set(review.authorId, review);
  return [...latest.values()];
}

function headRepository(call: Call, issue: PullIssue): Repository | null {
  const id = issue.pull.head.repositoryId;
  return id === null ? null : readable(call, call.world.repositories.get(id));
}

/** Some pull requests are too much for the service, whatever else is asked. */
function inTime(call: Call, { number }: PullIssue): void {
  if (call.faults.timeoutPulls?.includes(number)) throw new TimedOutError(`Pull request ${number} is too much work`);
}

/** Reading it starts the background job that finds out, as in REST. */
function merging(call: Call, issue: PullIssue) {
  inTime(call, issue);
  askMergeable(call.view, issue);
  return mergeability(call.view, issue);
}

export const pullFields: Fields<PullIssue> = {
  ...sharedFields,
  id: (row, _, call) =>
    call.world.nodeId(
      "PullRequest",
      { id: row.pull.id, createdAt: row.createdAt },
      row.repository.id,
      call.view.nextIds,
    ),
  databaseId: (row) => row.pull.id,
  fullDatabaseId: (row) => String(row.pull.id),
  state: pullState,
  timelineItems,
  permalink: (row, _, call) => issuePage(call, row),
  isDraft: (row) => row.pull.draft,
  merged: (row) => row.pull.mergedAt !== null,
  mergedAt: (row) => timeOrNull(row.pull.mergedAt),
  mergedBy: (row, _, call) => {
    if (call.faults.failPulls?.includes(row.number)) throw forbidden(call);
    return actor(call, row.pull.mergedById);
  },
  mergeCommit: (row) => (row.pull.mergedAt === null ? null : commit(row.pull.mergeCommitSha, row.repository)),
  potentialMergeCommit: (row, _, call) =>
    row.state === "closed" ? null : commit(mergeCommit(call.view, row), row.repository),
  // Nobody asks for it here.
  autoMergeRequest: () => null,
  checksUrl: (row, _, call) => `${issuePage(call, row)}/checks`,
  checksResourcePath: (row, _, call) => pathOf(call, `${issuePage(call, row)}/checks`),
  revertUrl: (row, _, call) => `${issuePage(call, row)}/revert`,
  revertResourcePath: (row, _, call) => pathOf(call, `${issuePage(call, row)}/revert`),
  mergeable: (row, _, call) => {
    const { mergeable } = merging(call, row);
    return mergeable === null ? "UNKNOWN" : mergeable ? "MERGEABLE" : "CONFLICTING";
  },
  canBeRebased: (row, _, call) => merging(call, row).rebaseable === true,
  mergeStateStatus: (row, _, call) => String(merging(call, row).mergeable_state).toUpperCase(),
  maintainerCanModify: (row) => row.pull.maintainerCanModify,
  isCrossRepository: (row) => row.pull.head.repositoryId !== row.repository.id,
  baseRefName: (row) => row.pull.base.ref,
  baseRefOid: (row) => row.pull.base.sha,
  baseRepository: (row) => row.repository,
  baseRef: (row, _, call) => endRef(call, row.pull.base),
  headRef: (row, _, call) => endRef(call, row.pull.head),
  headRefName: (row) => row.pull.head.ref,
  headRefOid: (row) => row.pull.head.sha,
  headRepository: (row, _, call) => headRepository(call, row),
  headRepositoryOwner: (row, _, call) => {
    const repository = headRepository(call, row);
    return repository ? call.world.user(repository.ownerId) : null;
  },
  additions: (row, _, call) => {
    inTime(call, row);
    return row.pull.additions;
  },
  deletions: (row, _, call) => {
    inTime(call, row);
    return row.pull.deletions;
  },
  changedFiles: (row, _, call) => {
    inTime(call, row);
    return row.pull.changedFiles;
  },
  ...pullCodeFields,
  totalCommentsCount: (row) => commentCount(row) + row.pull.reviewComments.length,
  reviewDecision: (row, _, call) => {
    const opinions = latestReviews(call, row, ["APPROVED", "CHANGES_REQUESTED", "DISMISSED"]).map(
      (review) => review.state,
    );
    if (opinions.includes("CHANGES_REQUESTED")) return "CHANGES_REQUESTED";
    return opinions.includes("APPROVED") ? "APPROVED" : null;
  },
  reviews: (row, args, call, info) => {
    let reviews = visibleReviews(call, row);
    if (args.states?.length > 0) reviews = reviews.filter((review) => args.states.includes(review.state));
    if (args.author != null) {
      const author = call.world.userByLogin(args.author)?.id;
      reviews = reviews.filter((review) => author !== undefined && review.authorId === author);
    }
    return connection(call, info, args, arraySource(reviews, { keyOf: () => null }));
  },
  latestReviews: (row, args, call, info) => {
    const reviews = latestReviews(call, row, ["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED"]);
    return connection(call, info, args, arraySource(reviews, { keyOf: () => null }));
  },
  reviewThreads: (row, args, call, info) => {
    inTime(call, row);
    return connection(call, info, args, arraySource(reviewThreads(row), { keyOf: () => null }));
  },
  reviewRequests: (row, args, call, info) => {
    const requests = row.pull.requestedReviewerIds.flatMap((id, at) => {
      const requestedReviewer = actor(call, id);
      return requestedReviewer ? [{ id: at, asCodeOwner: false, pullRequest: row, requestedReviewer }] : [];
    });
    return connection(call, info, args, arraySource(requests, { keyOf: () => null }));
  },
};
