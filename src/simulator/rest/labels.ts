import { createLabel, deleteLabel, editLabel } from "../changes/labels.ts";
import { createMilestone, deleteMilestone, editMilestone } from "../changes/milestones.ts";
import { labelView, milestoneView } from "../views/issue.ts";
import type { Label, Milestone } from "../world/records.ts";
import { oneOf, required, text, textOrNull, timeOf } from "./body.ts";
import { type Answer, created, NO_CONTENT, needPush, notFound, ok, type RepositoryCall } from "./call.ts";
import { paged } from "./pagination.ts";

export function listLabels(call: RepositoryCall): Answer {
  const { labels } = call.repository.rows;
  return paged(call, { rows: labels.values(), size: labels.size }, (row) => {
    const seen = call.world.lag.seen(row);
    return seen && labelView(call.view, seen);
  });
}

function findLabel(call: RepositoryCall): Label {
  const label = call.world.labelByName(call.repository, call.params.name ?? "");
  if (!label) throw notFound();
  return label;
}

export function getLabel(call: RepositoryCall): Answer {
  const seen = call.world.lag.seen(findLabel(call));
  if (!seen) throw notFound();
  return ok(labelView(call.view, seen), { lastModified: seen.updatedAt });
}

export function postLabel(call: RepositoryCall): Answer {
  const by = needPush(call);
  const color = text(call.body, "color");
  const description = textOrNull(call.body, "description");
  const label = createLabel(call.world, by, {
    repository: call.repository,
    name: required(text(call.body, "name"), "name"),
    ...(color === undefined ? {} : { color }),
    ...(description === undefined ? {} : { description }),
  });
  return created(labelView(call.view, label));
}

export function patchLabel(call: RepositoryCall): Answer {
  const by = needPush(call);
  const label = findLabel(call);
  const name = text(call.body, "new_name");
  const color = text(call.body, "color");
  const description = textOrNull(call.body, "description");
  editLabel(call.world, by, label, {
    ...(name === undefined ? {} : { name }),
    ...(color === undefined ? {} : { color }),
    ...(description === undefined ? {} : { description }),
  });
  return ok(labelView(call.view, label));
}

export function removeLabel(call: RepositoryCall): Answer {
  deleteLabel(call.world, needPush(call), findLabel(call));
  return NO_CONTENT;
}

/** Sorted by due date ascending unless asked otherwise; those without one come last. */
export function listMilestones(call: RepositoryCall): Answer {
  const { query } = call;
  // Seen in 2026: no unknown word is refused.
  const state = query.get("state") === "closed" || query.get("state") === "all" ? query.get("state") : "open";
  const key =
    query.get("sort") === "completeness" ? completeness : (row: Milestone) => row.dueOn ?? Number.POSITIVE_INFINITY;
  const sign = query.get("direction") === "desc" ? -1 : 1;
  const rows = [...call.repository.rows.milestones.values()]
    .filter((row) => state === "all" || row.state === state)
    .sort((a, b) => sign * (key(a) === key(b) ? a.number - b.number : key(a) - key(b)));
  return paged(call, { rows, size: rows.length }, (row) => {
    const seen = call.world.lag.seen(row);
    return seen && milestoneView(call.view, seen);
  });
}

function completeness(milestone: Milestone): number {
  const all = milestone.openIssues + milestone.closedIssues;
  return all === 0 ? 0 : milestone.closedIssues / all;
}

function findMilestone(call: RepositoryCall): Milestone {
  const milestone = call.world.milestoneByNumber(call.repository, Number(call.params.number));
  if (!milestone) throw notFound();
  return milestone;
}

export function getMilestone(call: RepositoryCall): Answer {
  const seen = call.world.lag.seen(findMilestone(call));
  if (!seen) throw notFound();
  return ok(milestoneView(call.view, seen), { lastModified: seen.updatedAt });
}

export function postMilestone(call: RepositoryCall): Answer {
  const by = needPush(call);
  const title = required(text(call.body, "title"), "title");
  const milestone = createMilestone(call.world, by, { repository: call.repository, title, ...fieldsOf(call) });
  return created(milestoneView(call.view, milestone));
}

export function patchMilestone(call: RepositoryCall): Answer {
  const by = needPush(call);
  const milestone = findMilestone(call);
  const title = text(call.body, "title");
  editMilestone(call.world, by, milestone, { ...(title === undefined ? {} : { title }), ...fieldsOf(call) });
  return ok(milestoneView(call.view, milestone));
}

export function removeMilestone(call: RepositoryCall): Answer {
  deleteMilestone(call.world, needPush(call), findMilestone(call));
  return NO_CONTENT;
}

function fieldsOf(call: RepositoryCall) {
  const description = textOrNull(call.body, "description");
  const state = oneOf(call.body, "state", ["open", "closed"]);
  const dueOn = timeOf(call.body, "due_on");
  return {
    ...(description === undefined ? {} : { description }),
    ...(state === undefined ? {} : { state }),
    ...(dueOn === undefined ? {} : { dueOn }),
  };
}
