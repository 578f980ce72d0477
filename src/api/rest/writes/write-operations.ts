import type { Fields } from "../../../json.ts";
import { findParentNumber } from "../../../mirror/read/comments.ts";
import { findLabel } from "../../../mirror/read/labels.ts";
import { findMilestone } from "../../../mirror/read/milestones.ts";
import type { RepositoryCall } from "../../call.ts";
import { notFound } from "../../dialect/fault.ts";
import type { Operations } from "../../operation.ts";
import { getIssueComment, getReview, getReviewComment } from "../comments.ts";
import { issuePlace } from "../issue-place.ts";
import { getIssue } from "../issues.ts";
import { getLabel, getMilestone } from "../labels.ts";
import { numberParam, smallNumberParam } from "../page.ts";
import { getPull } from "../pulls.ts";
import * as issues from "./issue-writes.ts";
import * as labels from "./label-writes.ts";
import * as pulls from "./pull-writes.ts";
import type { Write } from "./write.ts";
import { answerWrite, type WriteOperation } from "./writes.ts";

const DOCS = "https://docs.github.com/rest";

/** Every write that is passed through. The answer is sent once the mirror shows what upstream did. */
export function addWrites(operations: Operations): void {
  for (const operation of WRITES) {
    const { method, path, docs } = operation;
    operations.add(path, {
      method,
      docs: `${DOCS}/${docs}`,
      isFree: false,
      run: { of: "repository", with: (call) => answerWrite(call, operation) },
    });
  }
}

const issue = {
  as: getIssue,
  by: ({ number }: Fields) => ({ number }),
};
const pull = { as: getPull, by: ({ number }: Fields) => ({ number }) };
const comment = { as: getIssueComment, by: ({ id }: Fields) => ({ id }) };
const review = {
  as: getReview,
  by: ({ id, pull_request_url }: Fields) => ({ id, number: String(pull_request_url).split("/").at(-1) }),
};
const reviewComment = { as: getReviewComment, by: ({ id }: Fields) => ({ id }) };
const label = { as: getLabel, by: ({ name }: Fields) => ({ name }) };
const milestone = { as: getMilestone, by: ({ number }: Fields) => ({ number }) };

const WRITES: readonly WriteOperation[] = [
  {
    method: "POST",
    path: "/issues",
    docs: "issues/issues#create-an-issue",
    write: ({ repository }, body) => issues.createIssue(repository, body),
    shows: issue,
    isDeprecated: true,
  },
  {
    method: "PATCH",
    path: "/issues/:number",
    docs: "issues/issues#update-an-issue",
    write: async (call, body) => issues.editIssue(await placeOf(call), body),
    shows: issue,
    isDeprecated: true,
  },
  {
    method: "PUT",
    path: "/issues/:number/lock",
    docs: "issues/issues#lock-an-issue",
    takes: "object or nothing",
    write: async (call, body) => issues.lock(await placeOf(call), "PUT", body || null),
  },
  {
    method: "DELETE",
    path: "/issues/:number/lock",
    docs: "issues/issues#unlock-an-issue",
    takes: "nothing",
    write: async (call) => issues.lock(await placeOf(call), "DELETE", null),
  },
  {
    method: "POST",
    path: "/issues/:number/assignees",
    docs: "issues/assignees#add-assignees-to-an-issue",
    write: async (call, body) => issues.changeAssignees(await placeOf(call), "POST", body),
    shows: issue,
  },
  {
    method: "DELETE",
    path: "/issues/:number/assignees",
    docs: "issues/assignees#remove-assignees-from-an-issue",
    write: async (call, body) => issues.changeAssignees(await placeOf(call), "DELETE", body),
    shows: issue,
  },
  {
    method: "POST",
    path: "/issues/:number/labels",
    docs: "issues/labels#add-labels-to-an-issue",
    takes: "object or list",
    write: async (call, body) => issues.changeLabels(await placeOf(call), { method: "POST", body }),
  },
  {
    method: "PUT",
    path: "/issues/:number/labels",
    docs: "issues/labels#set-labels-for-an-issue",
    takes: "object or list",
    write: async (call, body) => issues.changeLabels(await placeOf(call), { method: "PUT", body }),
  },
  {
    method: "DELETE",
    path: "/issues/:number/labels",
    docs: "issues/labels#remove-all-labels-from-an-issue",
    takes: "nothing",
    write: async (call) => issues.changeLabels(await placeOf(call), { method: "DELETE", body: null }),
  },
  {
    method: "DELETE",
    path: "/issues/:number/labels/:name",
    docs: "issues/labels#remove-a-label-from-an-issue",
    takes: "nothing",
    write: async (call) =>
      issues.changeLabels(await placeOf(call), { method: "DELETE", below: below(call.params.name), body: null }),
  },
  {
    method: "POST",
    path: "/issues/:number/comments",
    docs: "issues/comments#create-an-issue-comment",
    write: async (call, body) => issues.createComment(await placeOf(call), body),
    shows: comment,
  },
  {
    method: "PATCH",
    path: "/issues/comments/:id",
    docs: "issues/comments#update-an-issue-comment",
    write: (call, body) => issues.editComment(call.repository, idOf(call), body),
    shows: comment,
  },
  {
    method: "DELETE",
    path: "/issues/comments/:id",
    docs: "issues/comments#delete-an-issue-comment",
    takes: "nothing",
    write: deleteComment,
  },
  {
    method: "POST",
    path: "/pulls",
    docs: "pulls/pulls#create-a-pull-request",
    write: ({ repository }, body) => pulls.createPull(repository, body),
    shows: pull,
  },
  {
    method: "PATCH",
    path: "/pulls/:number",
    docs: "pulls/pulls#update-a-pull-request",
    write: async (call, body) => pulls.editPull(await placeOf(call), body),
    shows: pull,
  },
  {
    method: "POST",
    path: "/pulls/:number/reviews",
    docs: "pulls/reviews#create-a-review-for-a-pull-request",
    write: async (call, body) => pulls.createReview(await placeOf(call), body),
    shows: review,
  },
  {
    method: "POST",
    path: "/pulls/:number/reviews/:id/events",
    docs: "pulls/reviews#submit-a-review-for-a-pull-request",
    write: async (call, body) => pulls.submitReview(await placeOf(call), idOf(call), body),
    shows: review,
  },
  {
    method: "PUT",
    path: "/pulls/:number/reviews/:id",
    docs: "pulls/reviews#update-a-review-for-a-pull-request",
    write: async (call, body) => pulls.editReview(await placeOf(call), idOf(call), body),
    shows: review,
  },
  {
    method: "PUT",
    path: "/pulls/:number/reviews/:id/dismissals",
    docs: "pulls/reviews#dismiss-a-review-for-a-pull-request",
    write: async (call, body) => pulls.dismissReview(await placeOf(call), idOf(call), body),
    shows: review,
  },
  {
    method: "DELETE",
    path: "/pulls/:number/reviews/:id",
    docs: "pulls/reviews#delete-a-pending-review-for-a-pull-request",
    takes: "nothing",
    write: async (call) => pulls.deleteReview(await placeOf(call), idOf(call)),
  },
  {
    method: "POST",
    path: "/pulls/:number/comments",
    docs: "pulls/comments#create-a-review-comment-for-a-pull-request",
    write: async (call, body) => pulls.createReviewComment(await placeOf(call), "", body),
    shows: reviewComment,
  },
  {
    method: "POST",
    path: "/pulls/:number/comments/:id/replies",
    docs: "pulls/comments#create-a-reply-for-a-review-comment",
    write: async (call, body) => pulls.createReviewComment(await placeOf(call), `/${idOf(call)}/replies`, body),
    shows: reviewComment,
  },
  {
    method: "PATCH",
    path: "/pulls/comments/:id",
    docs: "pulls/comments#update-a-review-comment-for-a-pull-request",
    write: (call, body) => pulls.editReviewComment(call.repository, idOf(call), body),
    shows: reviewComment,
  },
  {
    method: "DELETE",
    path: "/pulls/comments/:id",
    docs: "pulls/comments#delete-a-review-comment-for-a-pull-request",
    takes: "nothing",
    write: deleteReviewComment,
  },
  {
    method: "POST",
    path: "/labels",
    docs: "issues/labels#create-a-label",
    write: ({ repository }, body) => labels.put("label", repository, "", body),
    shows: label,
  },
  {
    method: "PATCH",
    path: "/labels/:name",
    docs: "issues/labels#update-a-label",
    write: ({ repository, params }, body) => labels.put("label", repository, below(params.name), body),
    shows: label,
  },
  {
    method: "DELETE",
    path: "/labels/:name",
    docs: "issues/labels#delete-a-label",
    takes: "nothing",
    write: async ({ ctx, repository, params }) => {
      const known = await findLabel(ctx.db, repository.id, params.name ?? "");
      return labels.remove("label", repository, below(params.name), known?.id ?? null);
    },
  },
  {
    method: "POST",
    path: "/milestones",
    docs: "issues/milestones#create-a-milestone",
    write: ({ repository }, body) => labels.put("milestone", repository, "", body),
    shows: milestone,
  },
  {
    method: "PATCH",
    path: "/milestones/:number",
    docs: "issues/milestones#update-a-milestone",
    write: (call, body) => labels.put("milestone", call.repository, `/${numberOf(call)}`, body),
    shows: milestone,
  },
  {
    method: "DELETE",
    path: "/milestones/:number",
    docs: "issues/milestones#delete-a-milestone",
    takes: "nothing",
    write: async (call) => {
      const number = numberOf(call);
      const known = await findMilestone(call.ctx.db, call.repository.id, number);
      return labels.remove("milestone", call.repository, `/${number}`, known?.id ?? null);
    },
  },
];

async function deleteComment({ ctx, repository, params }: RepositoryCall): Promise<Write> {
  const id = idOf({ params });
  const number = await findParentNumber(ctx.db, "issue_comment", repository.id, id);
  const place = number === null ? null : await issuePlace(ctx, repository, number);
  return issues.deleteComment(repository, id, place);
}

async function deleteReviewComment({ ctx, repository, params }: RepositoryCall): Promise<Write> {
  const id = idOf({ params });
  return pulls.deleteReviewComment(repository, id, await findParentNumber(ctx.db, "review_comment", repository.id, id));
}

async function placeOf(call: RepositoryCall): Promise<issues.IssuePlace> {
  return issuePlace(call.ctx, call.repository, numberOf(call));
}

function numberOf({ params }: Pick<RepositoryCall, "params">): number {
  const number = smallNumberParam(params.number);
  if (number === null) throw notFound();
  return number;
}

function idOf({ params }: Pick<RepositoryCall, "params">): number {
  const id = numberParam(params.id);
  if (id === null) throw notFound();
  return id;
}

function below(name: string | undefined): string {
  return `/${encodeURIComponent(name ?? "")}`;
}
