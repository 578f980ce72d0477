import { createComment, deleteComment, editComment } from "../changes/comments.ts";
import { createReviewComment, deleteReviewComment, editReviewComment } from "../changes/reviews.ts";
import { commentView, reviewCommentView } from "../views/comment.ts";
import { kindOf } from "../world/access.ts";
import type { OrderedIndex } from "../world/ordered-index.ts";
import type { Comment, ReviewComment } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { mayPush } from "../world/tokens.ts";
import { numberOf, oneOf, required, text } from "./body.ts";
import {
  type Answer,
  contributor,
  created,
  issueToWrite,
  NO_CONTENT,
  needKind,
  notFound,
  ok,
  pullToWrite,
  type RepositoryCall,
  seenIssueOnly,
  seenPull,
} from "./call.ts";
import { sinceOf } from "./issue-list.ts";
import { type Listing, paged } from "./pagination.ts";

export function listComments(call: RepositoryCall): Answer {
  const { rows } = call.repository;
  const show = (comment: Comment) => shown(call, comment, commentView);
  const listing = wholeRepository(call, rows.commentsById, rows.commentsByUpdated);
  if (call.mayTouch("issues") && call.mayTouch("pull_requests")) return paged(call, listing, show);
  // Either permission opens the route; a comment is shown with its parent's, as `needKind` says.
  return paged(call, { rows: [...listing.rows].filter(({ issue }) => call.mayTouch(kindOf(issue))) }, show);
}

export function listReviewComments(call: RepositoryCall): Answer {
  const { rows } = call.repository;
  const show = (comment: ReviewComment) => shown(call, comment, reviewCommentView);
  return paged(call, wholeRepository(call, rows.reviewCommentsById, rows.reviewCommentsByUpdated), show);
}

/** Ascending by id; `direction` counts only together with `sort`. Ids grow with creation. */
function wholeRepository<Row extends { readonly id: number; readonly deleted: boolean; readonly updatedAt: number }>(
  call: RepositoryCall,
  byId: OrderedIndex<Row>,
  byUpdated: OrderedIndex<Row>,
): Listing<Row> {
  const sort = call.query.get("sort");
  const descending = sort !== null && call.query.get("direction") === "desc";
  const since = sinceOf(call.query);
  if (sort === "updated") {
    if (since === undefined)
      return { rows: descending ? byUpdated.descending() : byUpdated.ascending(), size: byUpdated.size };
    const later = [...byUpdated.ascending({ key: since, id: -1 })];
    return { rows: descending ? later.reverse() : later, size: later.length };
  }
  if (since === undefined) return { rows: descending ? byId.descending() : byId.ascending(), size: byId.size };
  const later = [...byUpdated.ascending({ key: since, id: -1 })].sort((a, b) =>
    descending ? b.id - a.id : a.id - b.id,
  );
  return { rows: later, size: later.length };
}

export function listIssueComments(call: RepositoryCall): Answer {
  return paged(call, sinceFiltered(call, seenIssueOnly(call).thread), (comment) => shown(call, comment, commentView));
}

export function listPullComments(call: RepositoryCall): Answer {
  const { query } = call;
  const listing = sinceFiltered(call, seenPull(call).pull.reviewComments);
  const rows = [...listing.rows];
  if (query.get("sort") === "updated") rows.sort((a, b) => a.updatedAt - b.updatedAt || a.id - b.id);
  if (query.has("sort") && query.get("direction") === "desc") rows.reverse();
  return paged(call, { rows, size: rows.length }, (comment) => shown(call, comment, reviewCommentView));
}

export function listReviewsComments(call: RepositoryCall): Answer {
  const { pull } = seenPull(call);
  const reviewId = Number(call.params.review);
  if (!pull.reviews.some((review) => review.id === reviewId)) throw notFound();
  const rows = pull.reviewComments.filter((comment) => comment.reviewId === reviewId);
  return paged(call, { rows, size: rows.length }, (comment) => shown(call, comment, reviewCommentView));
}

function sinceFiltered<Row extends { readonly updatedAt: number }>(
  call: RepositoryCall,
  rows: readonly Row[],
): Listing<Row> {
  const since = sinceOf(call.query);
  const found = since === undefined ? rows : rows.filter((row) => row.updatedAt >= since);
  return { rows: found, size: found.length };
}

function shown<Row extends Comment | ReviewComment>(
  call: RepositoryCall,
  row: Row,
  view: (view: RepositoryCall["view"], row: Row) => unknown,
): unknown {
  const seen = call.world.lag.seen(row);
  return seen && view(call.view, seen);
}

function findComment(call: RepositoryCall, comment = call.world.comments.get(Number(call.params.id))): Comment {
  if (!comment || comment.issue.repository !== call.repository) throw notFound();
  needKind(call, comment.issue);
  return comment;
}

export function getComment(call: RepositoryCall): Answer {
  const seen = call.world.lag.seen(findComment(call, call.world.lag.find(call.world.comments, Number(call.params.id))));
  if (!seen) throw notFound();
  return ok(commentView(call.view, seen));
}

export function postComment(call: RepositoryCall): Answer {
  const by = contributor(call);
  const issue = issueToWrite(call);
  if (issue.locked && !mayPush(call.role)) throw new Refusal(403, "Unable to create comment because issue is locked.");
  return created(
    commentView(call.view, createComment(call.world, by, issue, required(text(call.body, "body"), "body"))),
  );
}

export function patchComment(call: RepositoryCall): Answer {
  const comment = findComment(call);
  editComment(call.world, ownOrPush(call, comment.authorId), comment, required(text(call.body, "body"), "body"));
  return ok(commentView(call.view, comment));
}

export function removeComment(call: RepositoryCall): Answer {
  const comment = findComment(call);
  deleteComment(call.world, ownOrPush(call, comment.authorId), comment);
  return NO_CONTENT;
}

function ownOrPush(call: RepositoryCall, authorId: number | null): number {
  const by = contributor(call);
  if (!mayPush(call.role) && authorId !== by) throw new Refusal(403, "Must have admin rights to Repository.");
  return by;
}

function findReviewComment(
  call: RepositoryCall,
  comment = call.world.reviewComments.get(Number(call.params.id)),
): ReviewComment {
  if (!comment || comment.issue.repository !== call.repository) throw notFound();
  return comment;
}

export function getReviewComment(call: RepositoryCall): Answer {
  const seen = call.world.lag.seen(
    findReviewComment(call, call.world.lag.find(call.world.reviewComments, Number(call.params.id))),
  );
  if (!seen) throw notFound();
  return ok(reviewCommentView(call.view, seen), { lastModified: seen.updatedAt });
}

export function postReviewComment(call: RepositoryCall): Answer {
  const by = contributor(call);
  const { body } = call;
  const inReplyToId = numberOf(body, "in_reply_to");
  const line = numberOf(body, "line");
  const startLine = numberOf(body, "start_line");
  const side = oneOf(body, "side", ["LEFT", "RIGHT"]);
  const startSide = oneOf(body, "start_side", ["LEFT", "RIGHT"]);
  const subjectType = oneOf(body, "subject_type", ["line", "file"]);
  const commitId = inReplyToId === undefined ? required(text(body, "commit_id"), "commit_id") : text(body, "commit_id");
  const comment = createReviewComment(call.world, by, pullToWrite(call), {
    body: required(text(body, "body"), "body"),
    path: inReplyToId === undefined ? required(text(body, "path"), "path") : "",
    ...(commitId === undefined ? {} : { commitId }),
    ...(inReplyToId === undefined ? {} : { inReplyToId }),
    ...(line === undefined ? {} : { line }),
    ...(startLine === undefined ? {} : { startLine }),
    ...(side === undefined ? {} : { side }),
    ...(startSide === undefined ? {} : { startSide }),
    ...(subjectType === undefined ? {} : { subjectType }),
  });
  return created(reviewCommentView(call.view, comment));
}

export function postReply(call: RepositoryCall): Answer {
  const by = contributor(call);
  const inReplyToId = Number(call.params.id);
  const body = required(text(call.body, "body"), "body");
  const comment = createReviewComment(call.world, by, pullToWrite(call), { body, path: "", inReplyToId });
  return created(reviewCommentView(call.view, comment));
}

export function patchReviewComment(call: RepositoryCall): Answer {
  const comment = findReviewComment(call);
  editReviewComment(call.world, ownOrPush(call, comment.authorId), comment, required(text(call.body, "body"), "body"));
  return ok(reviewCommentView(call.view, comment));
}

export function removeReviewComment(call: RepositoryCall): Answer {
  const comment = findReviewComment(call);
  deleteReviewComment(call.world, ownOrPush(call, comment.authorId), comment);
  return NO_CONTENT;
}
