import { createReview, deleteReview, dismissReview, editReview, submitReview } from "../changes/reviews.ts";
import { reviewView } from "../views/comment.ts";
import type { Review } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { mayPush } from "../world/tokens.ts";
import { oneOf, required, text } from "./body.ts";
import {
  type Answer,
  contributor,
  needPush,
  notFound,
  ok,
  pullToWrite,
  type RepositoryCall,
  seenPull,
} from "./call.ts";
import { paged } from "./pagination.ts";

const EVENTS = ["APPROVE", "REQUEST_CHANGES", "COMMENT"] as const;
const STATES = { APPROVE: "APPROVED", REQUEST_CHANGES: "CHANGES_REQUESTED", COMMENT: "COMMENTED" } as const;

/** Chronological, no `since`. Pending ones only for their author. */
export function listReviews(call: RepositoryCall): Answer {
  const rows = seenPull(call).pull.reviews.filter((review) => visible(call, review));
  return paged(call, { rows, size: rows.length }, (row) => {
    const seen = call.world.lag.seen(row);
    return seen && reviewView(call.view, seen);
  });
}

function visible(call: RepositoryCall, review: Review): boolean {
  return review.state !== "PENDING" || review.authorId === call.token?.userId;
}

function findReview(call: RepositoryCall): Review {
  const review = pullToWrite(call).pull.reviews.find((one) => one.id === Number(call.params.review));
  if (!review || !visible(call, review)) throw notFound();
  return review;
}

export function getReview(call: RepositoryCall): Answer {
  const seen = call.world.lag.seen(findReview(call));
  if (!seen) throw notFound();
  return ok(reviewView(call.view, seen));
}

export function postReview(call: RepositoryCall): Answer {
  const by = contributor(call);
  const event = oneOf(call.body, "event", EVENTS);
  const body = text(call.body, "body");
  const commitId = text(call.body, "commit_id");
  if ((event === "REQUEST_CHANGES" || event === "COMMENT") && !body) {
    throw new Refusal(422, "Unprocessable Entity", ["Body can't be blank"]);
  }
  const review = createReview(call.world, by, pullToWrite(call), {
    state: event ? STATES[event] : "PENDING",
    ...(body === undefined ? {} : { body }),
    ...(commitId === undefined ? {} : { commitId }),
    comments: commentsOf(call),
  });
  return ok(reviewView(call.view, review));
}

function commentsOf(call: RepositoryCall): { path: string; body: string; line?: number }[] {
  const given = call.body.comments ?? [];
  if (!Array.isArray(given))
    throw new Refusal(422, "Invalid request.\n\nFor 'properties/comments', this is not an array.");
  return given.map((one: Record<string, unknown>) => {
    const line = one.line ?? one.position;
    return {
      path: required(text(one, "path"), "path"),
      body: required(text(one, "body"), "body"),
      ...(typeof line === "number" ? { line } : {}),
    };
  });
}

export function submitPending(call: RepositoryCall): Answer {
  const by = contributor(call);
  const review = findReview(call);
  const event = required(oneOf(call.body, "event", EVENTS), "event");
  submitReview(call.world, by, review, STATES[event], text(call.body, "body"));
  return ok(reviewView(call.view, review));
}

export function putReview(call: RepositoryCall): Answer {
  const by = contributor(call);
  const review = findReview(call);
  if (review.authorId !== by && !mayPush(call.role)) throw new Refusal(403, "Must have push access to repository");
  editReview(call.world, by, review, required(text(call.body, "body"), "body"));
  return ok(reviewView(call.view, review));
}

export function putDismissal(call: RepositoryCall): Answer {
  const by = needPush(call);
  const review = findReview(call);
  dismissReview(call.world, by, review, required(text(call.body, "message"), "message"));
  return ok(reviewView(call.view, review));
}

export function removeReview(call: RepositoryCall): Answer {
  contributor(call);
  const review = findReview(call);
  const json = reviewView(call.view, review);
  deleteReview(call.world, review);
  return ok(json);
}
