import { createIssue, editIssue, type IssueEdit, lockIssue, unlockIssue } from "../changes/issues.ts";
import { createLabel } from "../changes/labels.ts";
import { issueView, labelView } from "../views/issue.ts";
import type { Issue, Label, LockReason, Seconds } from "../world/records.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { mayPush, mayTriage } from "../world/tokens.ts";
import type { World } from "../world/world.ts";
import { numberOf, oneOf, required, text, textOrNull, texts } from "./body.ts";
import {
  type Answer,
  type Call,
  contributor,
  created,
  issueToWrite,
  NO_CONTENT,
  notFound,
  ok,
  type RepositoryCall,
  seenIssue,
  seenIssueOnly,
} from "./call.ts";
import { paged } from "./pagination.ts";

export function getIssue(call: RepositoryCall): Answer {
  const issue = seenIssue(call);
  return ok(issueView(call.view, issue), { lastModified: lastModified(call.world, issue) });
}

/** `updated_at`, or later when something nested changed after it. */
export function lastModified(world: World, issue: Issue): Seconds {
  let latest = issue.updatedAt;
  for (const id of [issue.authorId, ...issue.assigneeIds]) {
    if (id !== null) latest = Math.max(latest, world.user(id).updatedAt);
  }
  for (const id of issue.labelIds) latest = Math.max(latest, world.labels.get(id)?.updatedAt ?? 0);
  if (issue.milestoneId !== null) latest = Math.max(latest, world.milestones.get(issue.milestoneId)?.updatedAt ?? 0);
  return latest;
}

export function postIssue(call: RepositoryCall): Answer {
  const by = contributor(call);
  const { body, repository } = call;
  if (!repository.hasIssues) throw new Refusal(410, "Issues has been disabled in this repository.");
  const raw = required(body.title, "title");
  const title = typeof raw === "number" ? String(raw) : required(text(body, "title"), "title");
  // Without push access the rest is silently dropped.
  const trusted = mayPush(call.role);
  const issue = createIssue(call.world, by, {
    repository,
    title,
    body: textOrNull(body, "body") ?? null,
    ...(trusted
      ? {
          labelIds: labelIds(call, by) ?? [],
          assigneeIds: assigneeIds(call) ?? [],
          milestoneId: milestoneId(call) ?? null,
        }
      : {}),
  });
  return created(issueView(call.view, issue));
}

const STATE_REASONS = ["completed", "not_planned", "duplicate", "reopened"] as const;

export function patchIssue(call: RepositoryCall): Answer {
  const by = contributor(call);
  const issue = issueToWrite(call);
  if (!mayTriage(call.role) && issue.authorId !== by) throw new Refusal(403, "Must have admin rights to Repository.");
  const { body } = call;
  const title = text(body, "title");
  const newBody = textOrNull(body, "body");
  const state = oneOf(body, "state", ["open", "closed"]);
  const stateReason = body.state_reason === null ? null : oneOf(body, "state_reason", STATE_REASONS);
  const trusted = mayTriage(call.role);
  const labels = trusted ? labelIds(call, by) : undefined;
  const assignees = trusted ? assigneeIds(call) : undefined;
  const milestone = trusted ? milestoneId(call) : undefined;
  const typeName = trusted ? textOrNull(body, "type") : undefined;
  const type = call.world.issueTypes.find(({ name }) => name === typeName);
  if (typeName && !type) throw invalid({ value: typeName, resource: "Issue", field: "type", code: "invalid" });
  const edit: IssueEdit = {
    ...(typeName === undefined ? {} : { typeId: type?.id ?? null }),
    ...(title === undefined ? {} : { title }),
    ...(newBody === undefined ? {} : { body: newBody }),
    ...(state === undefined ? {} : { state }),
    ...(stateReason === undefined ? {} : { stateReason }),
    ...(labels === undefined ? {} : { labelIds: labels }),
    ...(assignees === undefined ? {} : { assigneeIds: assignees }),
    ...(milestone === undefined ? {} : { milestoneId: milestone }),
  };
  return ok(issueView(call.view, editIssue(call.world, by, issue, edit)));
}

/** The labels named in the body (`name` or `{name}`); unknown names are made. */
function labelIds(call: RepositoryCall, by: number): readonly number[] | undefined {
  const given = call.body.labels;
  if (given === undefined) return undefined;
  if (!Array.isArray(given))
    throw new Refusal(422, `Invalid request.\n\nFor 'properties/labels', ${JSON.stringify(given)} is not an array.`);
  return given.map((one) => {
    const name = typeof one === "string" ? one : one?.name;
    if (typeof name !== "string" || name.trim() === "")
      throw invalid({ resource: "Label", field: "name", code: "invalid", value: one });
    const label =
      call.world.labelByName(call.repository, name) ??
      createLabel(call.world, by, { repository: call.repository, name });
    return label.id;
  });
}

function assigneeIds(call: RepositoryCall): readonly number[] | undefined {
  const single = call.view.version === "2022-11-28" ? textOrNull(call.body, "assignee") : undefined;
  const logins =
    texts(call.body, "assignees") ??
    (single === undefined ? undefined : single === null || single === "" ? [] : [single]);
  return logins && usersNamed(call, logins, "assignees");
}

function usersNamed(call: RepositoryCall, logins: readonly string[], field: string): number[] {
  return logins.map((login) => {
    const user = call.world.userByLogin(login);
    if (!user) throw invalid({ value: login, resource: "Issue", field, code: "invalid" });
    return user.id;
  });
}

function milestoneId(call: RepositoryCall): number | null | undefined {
  if (call.body.milestone === null) return null;
  const number = numberOf(call.body, "milestone");
  if (number === undefined) return undefined;
  const found = call.world.milestoneByNumber(call.repository, number);
  if (!found) throw invalid({ value: number, resource: "Issue", field: "milestone", code: "invalid" });
  return found.id;
}

export function listIssueLabels(call: RepositoryCall): Answer {
  return paged(call, { rows: labelsOf(call, seenIssueOnly(call)) }, (label) => labelView(call.view, label));
}

function labelsOf(call: Call, issue: Issue): Label[] {
  return issue.labelIds.map((id) => call.world.labels.get(id)).filter((label) => label !== undefined);
}

/** POST adds, PUT replaces. The body is `{labels: […]}` or the bare array (`body[""]`). */
export function postIssueLabels(call: RepositoryCall): Answer {
  return changeLabels(call, (present, given) => [...present, ...given]);
}

export function putIssueLabels(call: RepositoryCall): Answer {
  return changeLabels(call, (_present, given) => given);
}

export function deleteIssueLabels(call: RepositoryCall): Answer {
  setLabels(call, []);
  return NO_CONTENT;
}

export function deleteIssueLabel(call: RepositoryCall): Answer {
  const issue = issueToWrite(call);
  const label = call.world.labelByName(call.repository, call.params.name ?? "");
  if (!label || !issue.labelIds.includes(label.id)) throw new Refusal(404, "Label does not exist");
  const changed = setLabels(
    call,
    issue.labelIds.filter((id) => id !== label.id),
  );
  return ok(labelsOf(call, changed).map((one) => labelView(call.view, one)));
}

function changeLabels(
  call: RepositoryCall,
  change: (present: readonly number[], given: readonly number[]) => readonly number[],
): Answer {
  const by = needTriage(call);
  const issue = issueToWrite(call);
  const given = labelIds(call, by) ?? [];
  const changed = setLabels(call, change(issue.labelIds, given));
  return ok(labelsOf(call, changed).map((label) => labelView(call.view, label)));
}

function setLabels(call: RepositoryCall, ids: readonly number[]): Issue {
  return editIssue(call.world, needTriage(call), issueToWrite(call), { labelIds: ids });
}

function needTriage(call: RepositoryCall): number {
  const by = contributor(call);
  if (!mayTriage(call.role)) throw new Refusal(403, "Must have push access to repository");
  return by;
}

export function postAssignees(call: RepositoryCall): Answer {
  const issue = issueToWrite(call);
  const given = usersNamed(call, texts(call.body, "assignees") ?? [], "assignees");
  editIssue(call.world, needTriage(call), issue, { assigneeIds: [...issue.assigneeIds, ...given] });
  return { status: 201, body: issueView(call.view, issue) };
}

export function deleteAssignees(call: RepositoryCall): Answer {
  const issue = issueToWrite(call);
  const given = usersNamed(call, texts(call.body, "assignees") ?? [], "assignees");
  editIssue(call.world, needTriage(call), issue, {
    assigneeIds: issue.assigneeIds.filter((id) => !given.includes(id)),
  });
  return ok(issueView(call.view, issue));
}

const LOCK_REASONS: readonly LockReason[] = ["off-topic", "too heated", "resolved", "spam"];

export function putLock(call: RepositoryCall): Answer {
  const by = needTriage(call);
  lockIssue(call.world, by, issueToWrite(call), oneOf(call.body, "lock_reason", LOCK_REASONS) ?? null);
  return NO_CONTENT;
}

export function deleteLock(call: RepositoryCall): Answer {
  const by = needTriage(call);
  const issue = issueToWrite(call);
  if (!issue.locked) throw notFound();
  unlockIssue(call.world, by, issue);
  return NO_CONTENT;
}
