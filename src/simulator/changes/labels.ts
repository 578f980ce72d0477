import type { Label, Repository } from "../world/records.ts";
import { invalid } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { tellIssue } from "./issues.ts";

export interface LabelInput {
  readonly repository: Repository;
  readonly name: string;
  readonly color?: string;
  readonly description?: string | null;
}

export function createLabel(world: World, by: number, input: LabelInput): Label {
  checkLabel(world, input.repository, input);
  const label = world.addLabel({ ...input, color: (input.color ?? "ededed").toLowerCase() });
  world.emit({ event: "label", action: "created", repository: label.repository, senderId: by, label });
  return label;
}

export interface LabelEdit {
  readonly name?: string;
  readonly color?: string;
  readonly description?: string | null;
}

/** Shows in every issue at once and moves no issue's `updated_at`. */
export function editLabel(world: World, by: number, label: Label, edit: LabelEdit): void {
  checkLabel(world, label.repository, edit, label);
  world.changing(label);
  const changes: Record<string, unknown> = {};
  if (edit.name !== undefined && edit.name !== label.name) {
    changes.name = { from: label.name };
    label.name = edit.name;
  }
  const color = edit.color?.toLowerCase();
  if (color !== undefined && color !== label.color) {
    changes.color = { from: label.color };
    label.color = color;
  }
  if (edit.description !== undefined && edit.description !== label.description) {
    changes.description = { from: label.description };
    label.description = edit.description;
  }
  if (Object.keys(changes).length === 0) return;
  label.updatedAt = world.now();
  world.emit({ event: "label", action: "edited", repository: label.repository, senderId: by, label, changes });
}

/** Every carrier loses it and tells `unlabeled` without the label, besides `label.deleted`. */
export function deleteLabel(world: World, by: number, label: Label): void {
  const { repository } = label;
  label.deleted = true;
  world.labels.delete(label.id);
  repository.rows.labels.delete(label.id);
  const carriers = [...repository.rows.issuesByCreated.ascending()].filter((issue) =>
    issue.labelIds.includes(label.id),
  );
  for (const issue of carriers) {
    world.changing(issue);
    issue.labelIds = issue.labelIds.filter((id) => id !== label.id);
    if (world.bumps.labelDelete) world.bump(issue);
    tellIssue(world, by, issue, "unlabeled");
  }
  world.emit({ event: "label", action: "deleted", repository, senderId: by, label });
}

function checkLabel(world: World, repository: Repository, fields: LabelEdit, own?: Label): void {
  if (fields.name !== undefined) {
    if (fields.name.trim() === "") throw invalid({ resource: "Label", code: "missing_field", field: "name" });
    // github/docs#32156 shows the answer.
    if ([...fields.name].length > 50) throw tooLong("name", 50);
    const same = world.labelByName(repository, fields.name);
    if (same && same !== own) throw invalid({ resource: "Label", code: "already_exists", field: "name" });
  }
  if (fields.color !== undefined && !/^[0-9a-f]{6}$/i.test(fields.color)) {
    throw invalid({ resource: "Label", code: "invalid", field: "color" });
  }
  if (fields.description && [...fields.description].length > 100) throw tooLong("description", 100);
}

function tooLong(field: string, most: number): Error {
  const message = `${field} is too long (maximum is ${most} characters)`;
  return invalid({ resource: "Label", code: "custom", field, message });
}
