import { objectOf, textOf } from "../../json.ts";
import { adds, asShown, type ResourceEvents, removes, resourceEvents, sets, shows } from "../contract/kind.ts";
import { DISCUSSED, sinceOpened } from "../issue/events.ts";

const LISTS: ResourceEvents["lists"] = {
  ...DISCUSSED.lists,
  requested_reviewers: { member: "requested_reviewer", kind: "user" },
};

export const pullRequestEvents = resourceEvents({
  event: "pull_request",
  in: "pull_request",
  by: "number",
  fields: {
    ...DISCUSSED.fields,
    draft: asShown,
    head: (value) => textOf(objectOf(value).sha) ?? undefined,
    base: (value) => textOf(objectOf(value).ref) ?? undefined,
  },
  lists: LISTS,
  actions: {
    ...DISCUSSED.actions,
    review_requested: adds("requested_reviewer"),
    review_request_removed: removes("requested_reviewer"),
    converted_to_draft: sets("draft", true),
    ready_for_review: sets("draft", false),
    synchronize: shows("head"),
  },
  sinceBirth: (fields) => sinceOpened(LISTS, fields),
  toldSinceBirth: "closing",
  former: (field, was) => (field === "base" ? { ref: { from: was } } : { from: was === "" ? null : was }),
  more: (action, was, now) => (action === "synchronize" ? { before: was, after: now } : {}),
  extra: (number) => ({ number }),
});
