import type { Milestone, Repository, Seconds } from "../world/records.ts";
import { invalid } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { tellIssue } from "./issues.ts";

export interface MilestoneInput {
  readonly repository: Repository;
  readonly title: string;
  readonly description?: string | null;
  readonly state?: "open" | "closed";
  readonly dueOn?: Seconds | null;
}

export function createMilestone(world: World, by: number, input: MilestoneInput): Milestone {
  checkTitle(input.repository, input.title);
  const closedAt = input.state === "closed" ? world.now() : null;
  const milestone = world.addMilestone({ ...input, creatorId: by, closedAt });
  tell(world, by, milestone, "created");
  return milestone;
}

export interface MilestoneEdit {
  readonly title?: string;
  readonly description?: string | null;
  readonly state?: "open" | "closed";
  readonly dueOn?: Seconds | null;
}

/** Shows in every issue at once and moves no issue's `updated_at`. */
export function editMilestone(world: World, by: number, milestone: Milestone, edit: MilestoneEdit): void {
  if (edit.title !== undefined) checkTitle(milestone.repository, edit.title, milestone);
  world.changing(milestone);
  const changes: Record<string, unknown> = {};
  if (edit.title !== undefined && edit.title !== milestone.title) {
    changes.title = { from: milestone.title };
    milestone.title = edit.title;
  }
  if (edit.description !== undefined && edit.description !== milestone.description) {
    changes.description = { from: milestone.description };
    milestone.description = edit.description;
  }
  if (edit.dueOn !== undefined && edit.dueOn !== milestone.dueOn) {
    changes.due_on = {
      from: milestone.dueOn === null ? null : new Date(milestone.dueOn * 1_000).toISOString().replace(".000", ""),
    };
    milestone.dueOn = edit.dueOn;
  }
  const edited = Object.keys(changes).length > 0;
  const moved = edit.state !== undefined && edit.state !== milestone.state;
  if (moved && edit.state) {
    milestone.state = edit.state;
    milestone.closedAt = edit.state === "closed" ? world.now() : null;
  }
  if (!edited && !moved) return;
  milestone.updatedAt = world.now();
  if (edited) tell(world, by, milestone, "edited", changes);
  if (moved) tell(world, by, milestone, milestone.state === "closed" ? "closed" : "opened");
}

/** Its issues lose it; each tells `demilestoned`. */
export function deleteMilestone(world: World, by: number, milestone: Milestone): void {
  const { repository } = milestone;
  const carriers = [...repository.rows.issuesByCreated.ascending()].filter(
    (issue) => issue.milestoneId === milestone.id,
  );
  for (const issue of carriers) {
    world.changing(issue);
    world.countIssue(issue, -1);
    issue.milestoneId = null;
    world.countIssue(issue, 1);
    world.bump(issue);
  }
  milestone.deleted = true;
  world.milestones.delete(milestone.id);
  repository.rows.milestones.delete(milestone.id);
  for (const issue of carriers) tellIssue(world, by, issue, "demilestoned", { milestone });
  tell(world, by, milestone, "deleted");
}

function tell(world: World, by: number, milestone: Milestone, action: string, changes?: Record<string, unknown>): void {
  world.emit({
    event: "milestone",
    action,
    repository: milestone.repository,
    senderId: by,
    milestone,
    ...(changes ? { changes } : {}),
  });
}

function checkTitle(repository: Repository, title: string, own?: Milestone): void {
  if (title.trim() === "") throw invalid({ resource: "Milestone", code: "missing_field", field: "title" });
  for (const other of repository.rows.milestones.values()) {
    if (other !== own && other.title === title)
      throw invalid({ resource: "Milestone", code: "already_exists", field: "title" });
  }
}
