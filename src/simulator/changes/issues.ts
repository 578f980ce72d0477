import type { WorldEvent } from "../world/event.ts";
import { unlinkAll } from "../world/issue-links.ts";
import { GHOST_ID, type Issue, type LockReason, type Repository, type StateReason } from "../world/records.ts";
import { checkBody, checkTitle, Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { addIssueEvent, noteHappened } from "./issue-events.ts";

/** Notes and tells what happened to an issue, or to a pull request when it is one. */
export function tellIssue(
  world: World,
  by: number,
  issue: Issue,
  action: string,
  extra: Partial<WorldEvent> = {},
): void {
  const event = issue.pull ? "pull_request" : "issues";
  noteHappened(world, by, issue, { ...extra, action });
  world.emit({ event, action, repository: issue.repository, senderId: by, issue, ...extra });
}

export interface IssueInput {
  readonly repository: Repository;
  readonly title: string;
  readonly body?: string | null;
  readonly labelIds?: readonly number[];
  readonly assigneeIds?: readonly number[];
  readonly milestoneId?: number | null;
}

/** Tells `opened`, then one event per label, assignee and milestone. */
export function createIssue(world: World, by: number, input: IssueInput): Issue {
  checkTitle("Issue", input.title);
  checkBody("Issue", input.body);
  if (!input.repository.hasIssues) throw new Refusal(410, "Issues has been disabled in this repository.");
  world.changing(input.repository);
  const issue = world.addIssue({
    ...input,
    authorId: by,
    labelIds: unique(input.labelIds),
    assigneeIds: unique(input.assigneeIds),
  });
  touchMilestone(world, issue.milestoneId);
  tellIssue(world, by, issue, "opened");
  tellSets(world, by, issue, [], [], null);
  return issue;
}

export interface IssueEdit {
  readonly title?: string;
  readonly body?: string | null;
  readonly state?: "open" | "closed";
  /** Counts only when the state changes. */
  readonly stateReason?: StateReason | null;
  /** The whole new set. */
  readonly labelIds?: readonly number[];
  /** The whole new set. */
  readonly assigneeIds?: readonly number[];
  readonly milestoneId?: number | null;
  readonly typeId?: number | null;
}

/** Absent keys stay. Equal values change nothing, move no time and send no event. */
export function editIssue(world: World, by: number, issue: Issue, edit: IssueEdit): Issue {
  const resource = issue.pull ? "PullRequest" : "Issue";
  if (edit.title !== undefined) checkTitle(resource, edit.title);
  checkBody(resource, edit.body);
  if (issue.pull?.mergedAt != null && edit.state === "open") {
    throw new Refusal(422, "Validation Failed", [
      {
        resource,
        field: "state",
        code: "invalid",
        message: "state cannot be changed. The pull request cannot be reopened.",
      },
    ]);
  }
  world.changing(issue);
  world.changing(issue.repository);
  const { labelIds: labelsBefore, assigneeIds: assigneesBefore, milestoneId: milestoneBefore } = issue;
  let bump = false;

  const changes: Record<string, unknown> = {};
  if (edit.title !== undefined && edit.title !== issue.title) {
    changes.title = { from: issue.title };
    issue.title = edit.title;
    bump ||= world.bumps.titleEdit;
  }
  if (edit.body !== undefined && edit.body !== issue.body) {
    changes.body = { from: issue.body };
    issue.body = edit.body;
    bump = true;
  }
  const edited = Object.keys(changes).length > 0;
  if (edited) issue.editedAt = world.now();

  const moved = edit.state !== undefined && edit.state !== issue.state;
  if (moved && edit.state) {
    setState(world, by, issue, edit.state, edit.stateReason);
    bump ||= edit.state === "closed" || world.bumps.reopen;
  }
  if (edit.labelIds && !sameSet(edit.labelIds, issue.labelIds)) {
    issue.labelIds = unique(edit.labelIds);
    bump = true;
  }
  if (edit.assigneeIds && !sameSet(edit.assigneeIds, issue.assigneeIds)) {
    issue.assigneeIds = unique(edit.assigneeIds);
    bump = true;
  }
  if (edit.milestoneId !== undefined && edit.milestoneId !== issue.milestoneId) {
    world.countIssue(issue, -1);
    issue.milestoneId = edit.milestoneId;
    world.countIssue(issue, 1);
    touchMilestone(world, milestoneBefore);
    touchMilestone(world, issue.milestoneId);
    bump = true;
  }
  const { typeId: typeBefore } = issue;
  if (edit.typeId !== undefined && edit.typeId !== typeBefore) {
    issue.typeId = edit.typeId;
    bump ||= world.bumps.typeChange;
  }

  if (bump) world.bump(issue);
  if (edited) tellIssue(world, by, issue, "edited", { changes });
  if (moved) tellIssue(world, by, issue, edit.state === "closed" ? "closed" : "reopened");
  tellSets(world, by, issue, labelsBefore, assigneesBefore, milestoneBefore);
  const typeOf = (id: number | null) => world.issueTypes.find((one) => one.id === id);
  const [before, after] = [typeOf(typeBefore), typeOf(issue.typeId)];
  if (before && before !== after) tellIssue(world, by, issue, "untyped", { issueType: before });
  if (after && before !== after) tellIssue(world, by, issue, "typed", { issueType: after });
  return issue;
}

function setState(
  world: World,
  by: number,
  issue: Issue,
  state: "open" | "closed",
  reason: StateReason | null | undefined,
): void {
  world.countIssue(issue, -1);
  issue.state = state;
  world.countIssue(issue, 1);
  issue.closedAt = state === "closed" ? world.now() : null;
  // Recorded (octokit.rb, 2016): a reopened issue still shows who closed it.
  if (state === "closed") {
    issue.closedById = by;
    issue.lastClosedAt = issue.closedAt;
  }
  if (issue.pull) issue.stateReason = null;
  else if (state === "open") issue.stateReason = "reopened";
  else issue.stateReason = reason && reason !== "reopened" ? reason : "completed";
}

export function lockIssue(world: World, by: number, issue: Issue, reason: LockReason | null = null): void {
  if (issue.locked && issue.lockReason === reason) return;
  world.changing(issue);
  issue.locked = true;
  issue.lockReason = reason;
  if (world.bumps.lock) world.bump(issue);
  tellIssue(world, by, issue, "locked");
}

export function unlockIssue(world: World, by: number, issue: Issue): void {
  if (!issue.locked) return;
  world.changing(issue);
  issue.locked = false;
  issue.lockReason = null;
  if (world.bumps.lock) world.bump(issue);
  tellIssue(world, by, issue, "unlocked");
}

export function pinIssue(world: World, by: number, issue: Issue, pinned: boolean): void {
  if (issue.pull) throw new Refusal(422, "Only issues can be pinned");
  if (issue.pinned === pinned) return;
  world.changing(issue);
  issue.pinned = pinned;
  if (world.bumps.pin) world.bump(issue);
  tellIssue(world, by, issue, pinned ? "pinned" : "unpinned");
}

/** Leaves a tombstone: reads answer 410. Pull requests cannot be deleted. */
export function deleteIssue(world: World, by: number, issue: Issue): void {
  if (issue.pull) throw new Refusal(422, "Pull requests cannot be deleted");
  bury(world, issue, null);
  tellIssue(world, by, issue, "deleted");
}

/**
 * The issue goes on as a new row (new id, new number) in the target, with its comments; labels of the same name come
 * along, the milestone does not. The old number redirects. Both repositories hear of it.
 */
export function transferIssue(world: World, by: number, issue: Issue, target: Repository): Issue {
  if (issue.pull) throw new Refusal(422, "Pull requests cannot be transferred");
  if (target === issue.repository) throw new Refusal(422, "The issue is already in this repository");
  const labelIds = issue.labelIds.flatMap((id) => {
    const label = world.labels.get(id);
    const same = label && world.labelByName(target, label.name);
    return same ? [same.id] : [];
  });
  world.changing(target);
  const { id: _id, number: _number, repository: _repository, thread, pull: _pull, links: _links, ...kept } = issue;
  const moved = world.addIssue({ ...kept, repository: target, labelIds, milestoneId: null, updatedAt: world.now() });
  for (const comment of thread) {
    const { id: _commentId, issue: _issue, ...text } = comment;
    world.addComment({ ...text, issue: moved });
  }
  bury(world, issue, moved);
  // Unconfirmed: that nothing else of what happened comes along.
  addIssueEvent(world, by, moved, { happened: "transferred" });
  tellIssue(world, by, issue, "transferred", { transfer: { to: moved } });
  tellIssue(world, by, moved, "opened", { transfer: { from: issue } });
  return moved;
}

function bury(world: World, issue: Issue, to: Issue | null): void {
  const { rows } = issue.repository;
  unlinkAll(world, issue);
  world.changing(issue.repository);
  world.countIssue(issue, -1);
  issue.deleted = true;
  rows.byNumber[issue.number] = undefined;
  rows.issuesByCreated.removed();
  rows.issuesByUpdated.removed();
  for (const comment of issue.thread) {
    comment.deleted = true;
    world.comments.delete(comment.id);
    rows.commentsById.removed();
    rows.commentsByUpdated.removed();
  }
  world.issues.delete(issue.id);
  world.issueEvents.forget(issue);
  const kind = to ? "transferred" : "deleted";
  rows.tombstones.set(issue.number, { kind, last: issue, to, at: world.clock.now() });
}

/** GitHub: setting or clearing a milestone moves the milestone's own `updated_at` too. */
function touchMilestone(world: World, id: number | null): void {
  const milestone = id === null ? undefined : world.milestones.get(id);
  if (!milestone) return;
  world.changing(milestone);
  milestone.updatedAt = world.now();
}

function tellSets(
  world: World,
  by: number,
  issue: Issue,
  labelsBefore: readonly number[],
  assigneesBefore: readonly number[],
  milestoneBefore: number | null,
): void {
  for (const id of labelsBefore) {
    const label = world.labels.get(id);
    if (label && !issue.labelIds.includes(id)) tellIssue(world, by, issue, "unlabeled", { label });
  }
  for (const id of issue.labelIds) {
    const label = world.labels.get(id);
    if (label && !labelsBefore.includes(id)) tellIssue(world, by, issue, "labeled", { label });
  }
  for (const id of assigneesBefore) {
    if (!issue.assigneeIds.includes(id)) tellIssue(world, by, issue, "unassigned", { assigneeId: id });
  }
  for (const id of issue.assigneeIds) {
    if (!assigneesBefore.includes(id)) tellIssue(world, by, issue, "assigned", { assigneeId: id });
  }
  if (milestoneBefore === issue.milestoneId) return;
  const before = milestoneBefore === null ? undefined : world.milestones.get(milestoneBefore);
  if (before) tellIssue(world, by, issue, "demilestoned", { milestone: before });
  const after = issue.milestoneId === null ? undefined : world.milestones.get(issue.milestoneId);
  if (after) tellIssue(world, by, issue, "milestoned", { milestone: after });
}

function unique(ids: readonly number[] | undefined): readonly number[] {
  return [...new Set(ids ?? [])].filter((id) => id !== GHOST_ID);
}

function sameSet(a: readonly number[], b: readonly number[]): boolean {
  const set = new Set(a);
  return set.size === b.length && b.every((id) => set.has(id));
}
