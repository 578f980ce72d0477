import { CHANGES, exists, mayBeEmpty, numberInAddress, resource, resourceEvents } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { issueComments } from "./table.ts";

export const issueComment = resource("issue_comment", issueComments, {
  right: "issues or pulls",
  columns: ({ issue_url, user }) => ({ issue_number: numberInAddress(issue_url), user_id: referenceId(user) }),
  needed: ["created_at", "updated_at"],
  upstream: { path: (id) => `/issues/comments/${id}`, phase: "issue comments" },
  parent: { kind: "issue", address: "issue_url", column: "issue_number", buriedWith: "issue" },
  events: resourceEvents({
    event: "issue_comment",
    in: "comment",
    beside: { issue: "issue" },
    fields: { body: mayBeEmpty },
    actions: { created: exists(true), edited: CHANGES, deleted: exists(false) },
    issueNumber: ({ issue_url }) => numberInAddress(issue_url),
  }),
});
