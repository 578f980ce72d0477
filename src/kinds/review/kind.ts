import { textOf } from "../../json.ts";
import { CHANGES, exists, mayBeEmpty, numberInAddress, resource, resourceEvents, sets } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { pullRequestReviewComments } from "../review-comment/table.ts";
import { pullRequestReviews } from "./table.ts";

export const review = resource("review", pullRequestReviews, {
  right: "pulls",
  columns: ({ pull_request_url, user }) => ({
    pull_number: numberInAddress(pull_request_url),
    user_id: referenceId(user),
  }),
  needed: ["state"],
  upstream: {
    path: (id, pull) => `/pulls/${pull}/reviews/${id}`,
    numberColumn: "pull_number",
    namedBy: { kind: "review_comment", table: pullRequestReviewComments, column: "review_id" },
    phase: "reviews",
    isOfPulls: true,
  },
  // REST sends no updated_at of a review; webhooks and GraphQL do.
  detailKeys: new Set(["updated_at"]),
  isVersioned: false,
  parent: { kind: "pull_request", address: "pull_request_url", column: "pull_number", buriedWith: "issue" },
  inPayload: (document) => ({ ...document, state: (textOf(document.state) ?? "").toLowerCase() }),
  events: resourceEvents({
    event: "pull_request_review",
    in: "review",
    beside: { pull_request: "pull_request" },
    // Webhooks write the state in lower case.
    fields: { body: mayBeEmpty, state: (value) => textOf(value)?.toUpperCase() },
    // Upstream tells of no review's deletion.
    actions: { submitted: exists(true), edited: CHANGES, dismissed: sets("state", "DISMISSED") },
    // Only its author sees a review before it is submitted.
    isHidden: ({ state }) => state === "PENDING",
    madeAt: ({ submitted_at }) => submitted_at,
  }),
});
