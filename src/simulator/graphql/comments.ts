/** Comments, reviews, and comments on diffs. */

import { timeOrNull } from "../views/view.ts";
import type { Comment, Review, ReviewComment } from "../world/records.ts";
import { isPull } from "../world/world.ts";
import { actor, issuePage, pathOf, seen } from "./call.ts";
import { commit } from "./commits.ts";
import { arraySource, connection } from "./connection.ts";
import { writtenFields } from "./issues.ts";
import type { Fields } from "./resolvers.ts";
import { type ReviewThread, threadNodeId } from "./review-thread.ts";

const editedAt = (row: { readonly createdAt: number; readonly updatedAt: number }) =>
  row.updatedAt > row.createdAt ? row.updatedAt : null;

export const commentFields: Fields<Comment> = {
  ...writtenFields<Comment>((row) => row.issue.repository, editedAt),
  id: (row, _, call) => call.world.nodeId("IssueComment", row, row.issue.repository.id, call.view.nextIds),
  url: (row, _, call) => `${issuePage(call, row.issue)}#issuecomment-${row.id}`,
  resourcePath: (row, _, call) => pathOf(call, `${issuePage(call, row.issue)}#issuecomment-${row.id}`),
  // GitHub's `issue` is never null. For a comment on a pull request it is the issue side, which no query can ask for.
  issue: (row) => row.issue,
  pullRequest: (row) => (isPull(row.issue) ? row.issue : null),
};

export const reviewFields: Fields<Review> = {
  ...writtenFields<Review>((row) => row.issue.repository, editedAt),
  id: (row, _, call) => call.world.nodeId("PullRequestReview", row, row.issue.repository.id, call.view.nextIds),
  url: (row, _, call) => `${issuePage(call, row.issue)}#pullrequestreview-${row.id}`,
  resourcePath: (row, _, call) => pathOf(call, `${issuePage(call, row.issue)}#pullrequestreview-${row.id}`),
  pullRequest: (row) => row.issue,
  submittedAt: (row) => timeOrNull(row.submittedAt),
  commit: (row) => commit(row.commitId, row.issue.repository),
  comments: (row, args, call, info) => {
    const comments = row.issue.pull.reviewComments.filter((comment) => comment.reviewId === row.id);
    return connection(call, info, args, arraySource(comments, { keyOf: () => null }));
  },
};

export const reviewCommentFields: Fields<ReviewComment> = {
  ...writtenFields<ReviewComment>((row) => row.issue.repository, editedAt),
  id: (row, _, call) => call.world.nodeId("PullRequestReviewComment", row, row.issue.repository.id, call.view.nextIds),
  url: (row, _, call) => `${issuePage(call, row.issue)}#discussion_r${row.id}`,
  resourcePath: (row, _, call) => pathOf(call, `${issuePage(call, row.issue)}#discussion_r${row.id}`),
  pullRequest: (row) => row.issue,
  pullRequestReview: (row, _, call) =>
    row.reviewId === null ? null : seen(call, call.world.reviews.get(row.reviewId)),
  replyTo: (row, _, call) =>
    row.inReplyToId === null ? null : seen(call, call.world.reviewComments.get(row.inReplyToId)),
  commit: (row) => commit(row.commitId, row.issue.repository),
  originalCommit: (row) => commit(row.originalCommitId, row.issue.repository),
  originalPosition: (row) => row.originalPosition ?? 1,
  outdated: (row) => row.subjectType === "line" && row.line === null,
  subjectType: (row) => row.subjectType.toUpperCase(),
  state: (row, _, call) =>
    row.reviewId !== null && call.world.reviews.get(row.reviewId)?.state === "PENDING" ? "PENDING" : "SUBMITTED",
};

export const threadFields: Fields<ReviewThread> = {
  id: (row) => threadNodeId(row),
  pullRequest: (row) => row.issue,
  repository: (row) => row.issue.repository,
  path: (row) => row.root.path,
  line: (row) => row.root.line,
  originalLine: (row) => row.root.originalLine,
  startLine: (row) => row.root.startLine,
  originalStartLine: (row) => row.root.originalStartLine,
  diffSide: (row) => row.root.side,
  startDiffSide: (row) => row.root.startSide,
  subjectType: (row) => row.root.subjectType.toUpperCase(),
  isOutdated: (row) => row.root.subjectType === "line" && row.root.line === null,
  isResolved: (row, _, call) => call.world.code.resolvedThreads.has(row.id),
  isCollapsed: (row, _, call) =>
    call.world.code.resolvedThreads.has(row.id) || (row.root.subjectType === "line" && row.root.line === null),
  resolvedBy: (row, _, call) => {
    const user = actor(call, call.world.code.resolvedThreads.get(row.id) ?? null);
    return user?.type === "User" ? user : null;
  },
  comments: (row, args, call, info) => connection(call, info, args, arraySource(row.comments, { keyOf: () => null })),
};
