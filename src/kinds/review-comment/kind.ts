import { CHANGES, exists, mayBeEmpty, numberInAddress, resource, resourceEvents } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { pullRequestReviewComments } from "./table.ts";

export const reviewComment = resource("review_comment", pullRequestReviewComments, {
  right: "pulls",
  columns: (fields) => ({
    review_id: fields.pull_request_review_id ?? null,
    pull_number: numberInAddress(fields.pull_request_url),
    user_id: referenceId(fields.user),
  }),
  needed: ["created_at", "updated_at"],
  upstream: { path: (id) => `/pulls/comments/${id}`, phase: "review comments", isOfPulls: true },
  parent: { kind: "pull_request", address: "pull_request_url", column: "pull_number", buriedWith: "issue" },
  events: resourceEvents({
    event: "pull_request_review_comment",
    in: "comment",
    beside: { pull_request: "pull_request" },
    fields: { body: mayBeEmpty },
    actions: { created: exists(true), edited: CHANGES, deleted: exists(false) },
  }),
});
