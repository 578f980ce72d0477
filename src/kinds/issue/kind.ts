import { type Fields, objectOf } from "../../json.ts";
import { resource, stateOf } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { issueEvents } from "./events.ts";
import { issues } from "./table.ts";

export const issue = resource("issue", issues, {
  right: "issues or pulls",
  keyColumn: "number",
  columns: (fields) => ({
    state: stateOf(fields),
    is_pull_request: isPullRequest(fields),
    user_id: referenceId(fields.user),
    milestone_id: referenceId(fields.milestone),
    closed_by_id: referenceId(fields.closed_by),
  }),
  needed: ["title", "created_at", "updated_at"],
  upstream: { path: (number) => `/issues/${number}`, phase: "issues" },
  // A payload does not say who has closed an issue.
  inPayload: ({ closed_by: _, ...rest }) => rest,
  lackedIdentity: ({ id }) => (typeof id === "number" ? null : "id"),
  events: issueEvents,
});

/** Answers from before 2014 give every issue a `pull_request`, with nulls inside. */
export function isPullRequest(fields: Fields): boolean {
  return (
    typeof objectOf(fields.pull_request).url === "string" || typeof objectOf(fields.pull_request).html_url === "string"
  );
}
