import type { PullIssue, Review, ReviewComment, ReviewState } from "../world/records.ts";
import { checkBody, invalid, Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { addIssueEvent } from "./issue-events.ts";

export interface ReviewInput {
  readonly body?: string;
  /** PENDING stays unseen by others until it is submitted. */
  readonly state: Exclude<ReviewState, "DISMISSED">;
  readonly commitId?: string;
  readonly comments?: readonly {
    readonly path: string;
    readonly body: string;
    readonly line?: number;
    readonly side?: "LEFT" | "RIGHT";
  }[];
}

export function createReview(world: World, by: number, issue: PullIssue, input: ReviewInput): Review {
  checkBody("PullRequestReview", input.body);
  if (by === issue.authorId && (input.state === "APPROVED" || input.state === "CHANGES_REQUESTED")) {
    const verb = input.state === "APPROVED" ? "approve" : "request changes on";
    throw new Refusal(422, "Unprocessable Entity", [`Can not ${verb} your own pull request`]);
  }
  world.changing(issue);
  const review = world.addReview({
    issue,
    authorId: by,
    state: input.state,
    body: input.body ?? "",
    ...(input.commitId === undefined ? {} : { commitId: input.commitId }),
  });
  const comments = (input.comments ?? []).map((comment) =>
    addReviewComment(world, by, issue, {
      ...comment,
      commitId: review.commitId ?? issue.pull.head.sha,
      reviewId: review.id,
    }),
  );
  if (review.state !== "PENDING") tellSubmitted(world, by, review, comments);
  return review;
}

/** Ends a pending review. */
export function submitReview(
  world: World,
  by: number,
  review: Review,
  state: "APPROVED" | "CHANGES_REQUESTED" | "COMMENTED",
  body?: string,
): void {
  if (review.state !== "PENDING")
    throw new Refusal(422, "Unprocessable Entity", ["Can not submit a review that is not pending"]);
  world.changing(review);
  world.changing(review.issue);
  review.state = state;
  if (body !== undefined) review.body = body;
  review.submittedAt = world.now();
  review.updatedAt = world.now();
  tellSubmitted(
    world,
    by,
    review,
    review.issue.pull.reviewComments.filter((comment) => comment.reviewId === review.id),
  );
}

function tellSubmitted(world: World, by: number, review: Review, comments: readonly ReviewComment[]): void {
  const { issue } = review;
  // A reviewer who was asked has answered.
  issue.pull.requestedReviewerIds = issue.pull.requestedReviewerIds.filter((id) => id !== review.authorId);
  world.bump(issue);
  world.emit({
    event: "pull_request_review",
    action: "submitted",
    repository: issue.repository,
    senderId: by,
    issue,
    review,
  });
  for (const comment of comments) tellComment(world, by, comment, "created");
}

/** The service shows no `updated_at` for reviews; neither does this bump the pull request. */
export function editReview(world: World, by: number, review: Review, body: string): void {
  checkBody("PullRequestReview", body);
  if (body === review.body) return;
  world.changing(review);
  const changes = { body: { from: review.body } };
  review.body = body;
  review.updatedAt = world.now();
  const { issue } = review;
  world.emit({
    event: "pull_request_review",
    action: "edited",
    repository: issue.repository,
    senderId: by,
    issue,
    review,
    changes,
  });
}

export function dismissReview(world: World, by: number, review: Review, message: string | null = null): void {
  if (review.state !== "APPROVED" && review.state !== "CHANGES_REQUESTED") {
    throw new Refusal(422, "Unprocessable Entity", ["Can not dismiss a commented pull request review"]);
  }
  const { issue } = review;
  world.changing(review);
  world.changing(issue);
  const dismissed = { reviewId: review.id, state: review.state.toLowerCase(), message };
  review.state = "DISMISSED";
  review.updatedAt = world.now();
  world.bump(issue);
  addIssueEvent(world, by, issue, { happened: "review_dismissed", details: { dismissed } });
  world.emit({
    event: "pull_request_review",
    action: "dismissed",
    repository: issue.repository,
    senderId: by,
    issue,
    review,
  });
}

/** Only a pending review can be deleted. */
export function deleteReview(world: World, review: Review): void {
  if (review.state !== "PENDING")
    throw new Refusal(422, "Unprocessable Entity", ["Can not delete a non-pending pull request review"]);
  const { pull } = review.issue;
  review.deleted = true;
  pull.reviews = pull.reviews.filter((one) => one !== review);
  world.reviews.delete(review.id);
  for (const comment of pull.reviewComments.filter((one) => one.reviewId === review.id))
    removeReviewComment(world, comment);
}

export interface ReviewCommentInput {
  readonly body: string;
  readonly path: string;
  readonly commitId?: string;
  readonly line?: number;
  readonly startLine?: number;
  readonly side?: "LEFT" | "RIGHT";
  readonly startSide?: "LEFT" | "RIGHT";
  readonly subjectType?: "line" | "file";
  readonly inReplyToId?: number;
  readonly reviewId?: number;
}

/** A comment on the diff; outside a review it makes a review of its own, as the service does. */
export function createReviewComment(
  world: World,
  by: number,
  issue: PullIssue,
  input: ReviewCommentInput,
): ReviewComment {
  if (input.body.trim() === "")
    throw invalid({ resource: "PullRequestReviewComment", field: "body", code: "missing_field" });
  checkBody("PullRequestReviewComment", input.body);
  world.changing(issue);
  const reviewId = input.reviewId ?? world.addReview({ issue, authorId: by, state: "COMMENTED" }).id;
  const comment = addReviewComment(world, by, issue, { ...input, reviewId });
  const review = world.reviews.get(reviewId);
  if (review && input.reviewId === undefined) {
    world.emit({
      event: "pull_request_review",
      action: "submitted",
      repository: issue.repository,
      senderId: by,
      issue,
      review,
    });
  }
  world.bump(issue);
  tellComment(world, by, comment, "created");
  return comment;
}

function addReviewComment(world: World, by: number, issue: PullIssue, input: ReviewCommentInput): ReviewComment {
  const answered = input.inReplyToId === undefined ? undefined : world.reviewComments.get(input.inReplyToId);
  if (input.inReplyToId !== undefined && answered?.issue !== issue) {
    throw invalid({ resource: "PullRequestReviewComment", field: "in_reply_to", code: "invalid" });
  }
  const line = input.subjectType === "file" ? null : (input.line ?? answered?.line ?? 1);
  return world.addReviewComment({
    issue,
    authorId: by,
    body: input.body,
    path: answered?.path ?? input.path,
    commitId: input.commitId ?? issue.pull.head.sha,
    reviewId: input.reviewId ?? null,
    inReplyToId: answered ? (answered.inReplyToId ?? answered.id) : null,
    line,
    position: line,
    startLine: input.startLine ?? null,
    originalStartLine: input.startLine ?? null,
    startSide: input.startSide ?? (input.startLine === undefined ? null : "RIGHT"),
    side: input.side ?? "RIGHT",
    subjectType: input.subjectType ?? "line",
    diffHunk: answered?.diffHunk ?? `@@ -${line ?? 1},3 +${line ?? 1},4 @@`,
  });
}

export function editReviewComment(world: World, by: number, comment: ReviewComment, body: string): void {
  checkBody("PullRequestReviewComment", body);
  if (body === comment.body) return;
  world.changing(comment);
  const changes = { body: { from: comment.body } };
  comment.body = body;
  world.bumpReviewComment(comment);
  tellComment(world, by, comment, "edited", changes);
}

export function deleteReviewComment(world: World, by: number, comment: ReviewComment): void {
  if (comment.deleted) throw new Refusal(404, "Not Found");
  world.changing(comment.issue);
  removeReviewComment(world, comment);
  tellComment(world, by, comment, "deleted");
}

function removeReviewComment(world: World, comment: ReviewComment): void {
  const { issue } = comment;
  world.changing(comment);
  comment.deleted = true;
  issue.pull.reviewComments = issue.pull.reviewComments.filter((one) => one !== comment);
  world.lag.delete(world.reviewComments, comment);
  issue.repository.rows.reviewCommentsById.removed();
  issue.repository.rows.reviewCommentsByUpdated.removed();
}

function tellComment(
  world: World,
  by: number,
  reviewComment: ReviewComment,
  action: string,
  changes?: Record<string, unknown>,
): void {
  const { issue } = reviewComment;
  world.emit({
    event: "pull_request_review_comment",
    action,
    repository: issue.repository,
    senderId: by,
    issue,
    reviewComment,
    ...(changes ? { changes } : {}),
  });
}
