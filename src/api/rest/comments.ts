import {
  type CommentKind,
  type CommentList,
  type CommentRow,
  findComment,
  findComments,
  findParentNumber,
} from "../../mirror/read/comments.ts";
import { isMirroredPull } from "../../mirror/read/pulls.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { requireRight, seenInLists } from "../callers/permissions.ts";
import { notFound } from "../dialect/fault.ts";
import { choice, moment, sentDirection } from "../dialect/protocol.ts";
import { requireIssue } from "./issues.ts";
import { askedPage, numberedPage, numberParam, pageDb } from "./page.ts";
import { requirePull } from "./pulls.ts";

export async function listIssueComments(call: RepositoryCall): Promise<Answer> {
  const { number } = await requireIssue(call);
  const since = moment(call.query, "since");
  return commentsPage(call, "issue_comment", { parent: number, since, ...byAge });
}

export async function listRepositoryComments(call: RepositoryCall): Promise<Answer> {
  const since = moment(call.query, "since");
  const seen = seenInLists(call);
  const under = seen === "both" ? {} : { under: seen };
  return commentsPage(call, "issue_comment", { since, ...under, ...asked(call) });
}

export async function listPullReviewComments(call: RepositoryCall): Promise<Answer> {
  const { number } = await requirePull(call);
  const since = moment(call.query, "since");
  return commentsPage(call, "review_comment", { parent: number, since, ...asked(call) });
}

export async function listRepositoryReviewComments(call: RepositoryCall): Promise<Answer> {
  const since = moment(call.query, "since");
  return commentsPage(call, "review_comment", { since, ...asked(call) });
}

export async function listReviews(call: RepositoryCall): Promise<Answer> {
  const { number } = await requirePull(call);
  return commentsPage(call, "review", { parent: number, ...byAge });
}

/** The comments on the diff that came with a review. */
export async function listReviewComments(call: RepositoryCall): Promise<Answer> {
  const { number } = await requirePull(call);
  const review = await requireOne(call, "review", number);
  return commentsPage(call, "review_comment", { parent: number, review: review.id, ...byAge });
}

export async function getIssueComment(call: RepositoryCall): Promise<Answer> {
  if (seenInLists(call) !== "both") await requireParent(call);
  return commentAnswer(call, "issue_comment");
}

/** Requires access to the issue or pull request that a comment stands under. @throws ApiFault 403 */
async function requireParent(call: RepositoryCall): Promise<void> {
  const { ctx, repository, params } = call;
  const id = numberParam(params.id);
  const number = id === null ? null : await findParentNumber(ctx.db, "issue_comment", repository.id, id);
  if (number === null) return;
  requireRight(call, (await isMirroredPull(ctx.db, repository.id, number)) ? "pulls" : "issues");
}

export async function getReviewComment(call: RepositoryCall): Promise<Answer> {
  return commentAnswer(call, "review_comment");
}

export async function getReview(call: RepositoryCall): Promise<Answer> {
  const { number } = await requirePull(call);
  return commentAnswer(call, "review", number);
}

type CommentOrder = Pick<CommentList, "sort" | "direction">;
const byAge: CommentOrder = { sort: "created", direction: "asc" };

/** The order that is asked for. `direction` counts only together with `sort`. */
function asked({ query }: RepositoryCall): CommentOrder {
  const sort = choice(query, "sort", ["created", "updated"]);
  return { sort, direction: query.get("sort") ? (sentDirection(query, "asc") ?? "asc") : "asc" };
}

async function commentsPage(
  call: RepositoryCall,
  kind: CommentKind,
  list: Omit<CommentList, "limit" | "offset">,
): Promise<Answer> {
  const { id } = call.repository;
  const { parent, under, since, sort } = list;
  // A page of those that have changed since is found in the order of changes alone.
  const isFiltered = parent === undefined && (under !== undefined || (since != null && sort === "created"));
  const { rows, total } = await findComments(pageDb(call, { isFiltered }), kind, id, {
    ...list,
    ...askedPage(call.query),
  });
  const documents = rows.map(({ document, body }) => ({ repositoryId: id, document, body }));
  return numberedPage(call, documents, total);
}

async function commentAnswer(call: RepositoryCall, kind: CommentKind, parent?: number): Promise<Answer> {
  const { document, body, updatedAt } = await requireOne(call, kind, parent);
  const text = await showOne(call, { repositoryId: call.repository.id, document, body });
  // Reviews have no date of their last change.
  return ok(text, { lastModified: updatedAt });
}

/** The comment that is asked for. @throws ApiFault 404 */
async function requireOne(call: RepositoryCall, kind: CommentKind, parent?: number): Promise<CommentRow> {
  const id = numberParam(call.params.id);
  const found = id === null ? null : await findComment(call.ctx.db, kind, call.repository.id, id, parent);
  if (!found) throw notFound();
  return found;
}
