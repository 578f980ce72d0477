import type { Fields } from "../../json.ts";
import {
  adds,
  asShown,
  CHANGES,
  exists,
  type FieldChange,
  mayBeEmpty,
  membersOf,
  type ResourceEvents,
  referredId,
  refers,
  removes,
  resourceEvents,
  sets,
} from "../contract/kind.ts";
import { referenceId } from "../contract/placeholders.ts";

/** What issues and pull requests have alike. */
export const DISCUSSED = {
  fields: { title: asShown, body: mayBeEmpty, state: asShown, locked: asShown, milestone: referredId },
  lists: { labels: { member: "label", kind: "label" }, assignees: { member: "assignee", kind: "user" } },
  actions: {
    opened: exists(true),
    edited: CHANGES,
    closed: sets("state", "closed"),
    reopened: sets("state", "open"),
    labeled: adds("label"),
    unlabeled: removes("label"),
    assigned: adds("assignee"),
    unassigned: removes("assignee"),
    milestoned: refers("milestone", "milestone"),
    demilestoned: sets("milestone", null),
    locked: sets("locked", true),
    unlocked: sets("locked", false),
  },
} as const satisfies Partial<ResourceEvents>;

/** Members of lists, a milestone, and that it was closed: all come after the first event. */
export function sinceOpened(lists: ResourceEvents["lists"], fields: Fields): FieldChange[] {
  return [
    ...Object.entries(lists).flatMap(([list, { member }]) =>
      (membersOf(fields, list) ?? []).map((id): FieldChange => [`${member} ${id}`, false]),
    ),
    ...(referenceId(fields.milestone) === null ? [] : [["milestone", null] satisfies FieldChange]),
    ...(fields.state === "closed" ? [["state", "open"] satisfies FieldChange] : []),
  ];
}

export const issueEvents = resourceEvents({
  event: "issues",
  in: "issue",
  by: "number",
  ...DISCUSSED,
  actions: { ...DISCUSSED.actions, deleted: exists(false), transferred: exists(false) },
  issueNumber: (_fields, number) => number,
  sinceBirth: (fields) => sinceOpened(DISCUSSED.lists, fields),
  toldSinceBirth: "closing",
});
