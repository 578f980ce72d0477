import { objectOf } from "../../json.ts";
import { resource, stateOf } from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";
import { pullRequestEvents } from "./events.ts";
import { pullRequests } from "./table.ts";

export const pullRequest = resource("pull_request", pullRequests, {
  right: "pulls",
  keyColumn: "number",
  columns: (fields) => {
    const [head, base] = [objectOf(fields.head), objectOf(fields.base)];
    return {
      state: stateOf(fields),
      merged: fields.merged ?? (fields.merged_at === undefined ? null : fields.merged_at !== null),
      user_id: referenceId(fields.user),
      milestone_id: referenceId(fields.milestone),
      merged_by_id: referenceId(fields.merged_by),
      head_label: head.label ?? null,
      head_ref: head.ref ?? null,
      head_sha: head.sha ?? null,
      head_repository_id: referenceId(head.repo),
      base_ref: base.ref ?? null,
      base_sha: base.sha ?? null,
    };
  },
  needed: ["title", "created_at", "updated_at"],
  upstream: { path: (number) => `/pulls/${number}`, phase: "pulls", isOfPulls: true },
  // The keys of pull-request that pull-request-simple lacks, in GitHub's OpenAPI description.
  detailKeys: new Set([
    "merged",
    "mergeable",
    "rebaseable",
    "mergeable_state",
    "merged_by",
    "comments",
    "review_comments",
    "maintainer_can_modify",
    "commits",
    "additions",
    "deletions",
    "changed_files",
  ]),
  inPayload: (document) => {
    const merged = document.merged_at === undefined ? document.merged : document.merged_at !== null;
    return merged === undefined ? document : { ...document, merged };
  },
  lackedIdentity: ({ id }) => (typeof id === "number" ? null : "id"),
  events: pullRequestEvents,
});
