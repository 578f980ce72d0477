import type { Fields } from "../../json.ts";
import type { Right } from "../../kinds/contract/rights.ts";
import { findLabel } from "../../mirror/read/labels.ts";
import { findMilestone } from "../../mirror/read/milestones.ts";
import type { RepositoryCall } from "../call/call.ts";
import type { ServedOperation } from "../call/operation.ts";
import { notFound } from "../dialect/fault.ts";
import * as comments from "../writes/comment-writes.ts";
import * as issues from "../writes/issue-writes.ts";
import * as labels from "../writes/label-writes.ts";
import * as pulls from "../writes/pull-writes.ts";
import { answerWrite, type WriteOperation } from "./answer-write.ts";
import { getIssueComment, getReview, getReviewComment } from "./comments.ts";
import { getIssue } from "./issues.ts";
import { getLabel, getMilestone } from "./labels.ts";
import { numberParam, smallNumberParam } from "./page.ts";
import { getPull } from "./pulls.ts";

const through =
  (method: "POST" | "PATCH" | "PUT" | "DELETE") =>
  (path: string, takes: Right, operation: WriteOperation): ServedOperation => {
    const whole = { ...operation, route: `/repos/{owner}/{repo}${path.replace(/:(\w+)/g, "{$1}")}` };
    const run = { of: "repository", takes, with: (call: RepositoryCall) => answerWrite(call, whole) } as const;
    // The service takes the slash in a label's name encoded and as it is.
    const takesRest = path.endsWith("/labels/:name");
    return { path, takesRest, route: { method, isFree: false, run } };
  };
const [post, patch, put, remove] = [through("POST"), through("PATCH"), through("PUT"), through("DELETE")];

const issue = { as: getIssue, by: ({ number }: Fields) => ({ number }) };
const pull = { as: getPull, by: ({ number }: Fields) => ({ number }) };
const comment = { as: getIssueComment, by: ({ id }: Fields) => ({ id }) };
const review = {
  as: getReview,
  by: ({ id, pull_request_url }: Fields) => ({ id, number: String(pull_request_url).split("/").at(-1) }),
};
const reviewComment = { as: getReviewComment, by: ({ id }: Fields) => ({ id }) };
const label = { as: getLabel, by: ({ name }: Fields) => ({ name }) };
const milestone = { as: getMilestone, by: ({ number }: Fields) => ({ number }) };

/** Every write that the mirror understands. Its answer is sent once the mirror shows what upstream did. */
export const WRITE_OPERATIONS: readonly ServedOperation[] = [
  post("/issues", "issues", {
    write: ({ repository }, body) => issues.createIssue(repository, body),
    shows: issue,
    isDeprecated: true,
  }),
  patch("/issues/:number", "issues or pulls", {
    write: async (call, body) => issues.editIssue(await issueAddress(call), body),
    shows: issue,
    isDeprecated: true,
  }),
  put("/issues/:number/lock", "issues or pulls", {
    takes: "object or nothing",
    write: async (call, body) => issues.lockIssue(await issueAddress(call), "PUT", body || null),
  }),
  remove("/issues/:number/lock", "issues or pulls", {
    takes: "nothing",
    write: async (call) => issues.lockIssue(await issueAddress(call), "DELETE", null),
  }),
  post("/issues/:number/assignees", "issues or pulls", {
    write: async (call, body) => issues.changeAssignees(await issueAddress(call), "POST", body),
    shows: issue,
  }),
  remove("/issues/:number/assignees", "issues or pulls", {
    write: async (call, body) => issues.changeAssignees(await issueAddress(call), "DELETE", body),
    shows: issue,
  }),
  post("/issues/:number/labels", "issues or pulls", {
    takes: "object or list",
    write: async (call, body) => issues.changeLabels(await issueAddress(call), { method: "POST", body }),
  }),
  put("/issues/:number/labels", "issues or pulls", {
    takes: "object or list",
    write: async (call, body) => issues.changeLabels(await issueAddress(call), { method: "PUT", body }),
  }),
  remove("/issues/:number/labels", "issues or pulls", {
    takes: "nothing",
    write: async (call) => issues.changeLabels(await issueAddress(call), { method: "DELETE", body: null }),
  }),
  remove("/issues/:number/labels/:name", "issues or pulls", {
    takes: "nothing",
    write: async (call) =>
      issues.changeLabels(await issueAddress(call), {
        method: "DELETE",
        below: nameSegment(call.params.name),
        body: null,
      }),
  }),
  post("/issues/:number/comments", "issues or pulls", {
    write: async (call, body) => comments.createComment(await issueAddress(call), body),
    shows: comment,
  }),
  patch("/issues/comments/:id", "issues or pulls", {
    write: (call, body) => comments.editComment("issue_comment", call.repository, requiredId(call), body),
    shows: comment,
  }),
  remove("/issues/comments/:id", "issues or pulls", {
    takes: "nothing",
    write: (call) => comments.deleteComment(call.ctx, "issue_comment", call.repository, requiredId(call)),
  }),
  post("/pulls", "pulls", {
    write: ({ repository }, body) => pulls.createPull(repository, body),
    shows: pull,
  }),
  patch("/pulls/:number", "pulls", {
    write: async (call, body) => pulls.editPull(await issueAddress(call), body),
    shows: pull,
  }),
  post("/pulls/:number/reviews", "pulls", {
    write: async (call, body) => pulls.createReview(await issueAddress(call), body),
    shows: review,
  }),
  post("/pulls/:number/reviews/:id/events", "pulls", {
    write: async (call, body) => pulls.submitReview(await issueAddress(call), requiredId(call), body),
    shows: review,
  }),
  put("/pulls/:number/reviews/:id", "pulls", {
    write: async (call, body) => pulls.editReview(await issueAddress(call), requiredId(call), body),
    shows: review,
  }),
  put("/pulls/:number/reviews/:id/dismissals", "pulls", {
    write: async (call, body) => pulls.dismissReview(await issueAddress(call), requiredId(call), body),
    shows: review,
  }),
  remove("/pulls/:number/reviews/:id", "pulls", {
    takes: "nothing",
    write: async (call) => pulls.deleteReview(await issueAddress(call), requiredId(call)),
  }),
  post("/pulls/:number/comments", "pulls", {
    write: async (call, body) => comments.createReviewComment(await issueAddress(call), "", body),
    shows: reviewComment,
  }),
  post("/pulls/:number/comments/:id/replies", "pulls", {
    write: async (call, body) =>
      comments.createReviewComment(await issueAddress(call), `/${requiredId(call)}/replies`, body),
    shows: reviewComment,
  }),
  patch("/pulls/comments/:id", "pulls", {
    write: (call, body) => comments.editComment("review_comment", call.repository, requiredId(call), body),
    shows: reviewComment,
  }),
  remove("/pulls/comments/:id", "pulls", {
    takes: "nothing",
    write: (call) => comments.deleteComment(call.ctx, "review_comment", call.repository, requiredId(call)),
  }),
  post("/labels", "issues or pulls", {
    write: ({ repository }, body) => labels.putLabel("label", repository, "", body),
    shows: label,
  }),
  patch("/labels/:name", "issues or pulls", {
    write: ({ repository, params }, body) => labels.putLabel("label", repository, nameSegment(params.name), body),
    shows: label,
  }),
  remove("/labels/:name", "issues or pulls", {
    takes: "nothing",
    write: async ({ ctx, repository, params }) => {
      const known = await findLabel(ctx.db, repository.id, params.name ?? "");
      return labels.removeLabel("label", repository, nameSegment(params.name), known?.id ?? null);
    },
  }),
  post("/milestones", "issues or pulls", {
    write: ({ repository }, body) => labels.putLabel("milestone", repository, "", body),
    shows: milestone,
  }),
  patch("/milestones/:number", "issues or pulls", {
    write: (call, body) => labels.putLabel("milestone", call.repository, `/${requiredNumber(call)}`, body),
    shows: milestone,
  }),
  remove("/milestones/:number", "issues or pulls", {
    takes: "nothing",
    write: async (call) => {
      const number = requiredNumber(call);
      const known = await findMilestone(call.ctx.db, call.repository.id, number);
      return labels.removeLabel("milestone", call.repository, `/${number}`, known?.id ?? null);
    },
  }),
];

async function issueAddress(call: RepositoryCall): Promise<issues.IssueAddress> {
  return issues.issuePlace(call.ctx, call.repository, requiredNumber(call));
}

function requiredNumber({ params }: Pick<RepositoryCall, "params">): number {
  const number = smallNumberParam(params.number);
  if (number === null) throw notFound();
  return number;
}

function requiredId({ params }: Pick<RepositoryCall, "params">): number {
  const id = numberParam(params.id);
  if (id === null) throw notFound();
  return id;
}

function nameSegment(name: string | undefined): string {
  return `/${encodeURIComponent(name ?? "")}`;
}
