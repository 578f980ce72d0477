import { dependenciesSummary, parentOf, subIssuesSummary } from "../world/issue-links.ts";
import type { Issue, Label, Milestone, PullIssue } from "../world/records.ts";
import { commentCount, isPull } from "../world/world.ts";
import { asRecorded } from "./histories-recorded.ts";
import { simpleUser, simpleUserOrNull } from "./user.ts";
import {
  association,
  bodyFields,
  type Json,
  reactions,
  repositoryPage,
  repositoryUrl,
  time,
  timeOrNull,
  type View,
} from "./view.ts";

export function labelView(view: View, label: Label): Json {
  const shown = view.labels.get(label.id);
  if (shown) return shown;
  const json = {
    id: label.id,
    node_id: view.world.nodeId("Label", label, label.repository.id, view.nextIds),
    url: `${repositoryUrl(view, label.repository)}/labels/${encodeURIComponent(label.name)}`,
    name: label.name,
    color: label.color,
    default: label.isDefault,
    description: label.description,
  };
  view.labels.set(label.id, json);
  return json;
}

export function milestoneView(view: View, milestone: Milestone): Json {
  const shown = view.milestones.get(milestone.id);
  if (shown) return shown;
  const url = `${repositoryUrl(view, milestone.repository)}/milestones/${milestone.number}`;
  const json = {
    url,
    html_url: `${repositoryPage(view, milestone.repository)}/milestone/${milestone.number}`,
    labels_url: `${url}/labels`,
    id: milestone.id,
    node_id: view.world.nodeId("Milestone", milestone, milestone.repository.id, view.nextIds),
    number: milestone.number,
    title: milestone.title,
    description: milestone.description,
    creator: simpleUserOrNull(view, milestone.creatorId),
    open_issues: milestone.openIssues,
    closed_issues: milestone.closedIssues,
    state: milestone.state,
    created_at: time(milestone.createdAt),
    updated_at: time(milestone.updatedAt),
    due_on: timeOrNull(milestone.dueOn),
    closed_at: timeOrNull(milestone.closedAt),
  };
  view.milestones.set(milestone.id, json);
  return json;
}

/** What issues and pull requests show alike. */
export function sharedParts(view: View, issue: Issue) {
  const { world } = view;
  const assignees = issue.assigneeIds.filter((id) => world.users.has(id)).map((id) => simpleUser(view, id));
  const labels: Json[] = [];
  for (const id of issue.labelIds) {
    const label = world.labels.get(id);
    if (label) labels.push(labelView(view, label));
  }
  const milestone = issue.milestoneId === null ? undefined : world.milestones.get(issue.milestoneId);
  return {
    user: simpleUserOrNull(view, issue.authorId),
    labels,
    assignees,
    assignee: view.version === "2022-11-28" ? { assignee: assignees[0] ?? null } : {},
    milestone: milestone ? milestoneView(view, milestone) : null,
    association: association(world, issue.repository, issue.authorId, issue.association),
  };
}

/**
 * The node id of the pull request, also in its issue row: there only the number is the issue's (seen in recordings).
 */
export function issueNodeId(view: View, issue: Issue): string {
  const { world } = view;
  if (!isPull(issue)) return world.nodeId("Issue", issue, issue.repository.id, view.nextIds);
  return world.nodeId(
    "PullRequest",
    { id: issue.pull.id, createdAt: issue.createdAt },
    issue.repository.id,
    view.nextIds,
  );
}

/** An issue row; for a pull request its issue side, with `draft` and `pull_request`. */
export function issueView(view: View, issue: Issue): Json {
  const base = repositoryUrl(view, issue.repository);
  const url = `${base}/issues/${issue.number}`;
  const page = `${repositoryPage(view, issue.repository)}/${issue.pull ? "pull" : "issues"}/${issue.number}`;
  const shared = sharedParts(view, issue);
  return asRecorded(view, issue, "issue", {
    url,
    repository_url: base,
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    html_url: page,
    id: issue.id,
    node_id: issueNodeId(view, issue),
    number: issue.number,
    title: issue.title,
    user: shared.user,
    labels: shared.labels,
    state: issue.state,
    locked: issue.locked,
    ...shared.assignee,
    assignees: shared.assignees,
    milestone: shared.milestone,
    comments: commentCount(issue),
    created_at: time(issue.createdAt),
    updated_at: time(issue.updatedAt),
    closed_at: timeOrNull(issue.closedAt),
    author_association: shared.association,
    ...(isPull(issue) ? pullPart(issue, base, page) : issuePart(view, issue)),
    active_lock_reason: issue.lockReason,
    ...bodyFields(view, issue.body),
    closed_by: simpleUserOrNull(view, issue.closedById),
    reactions: reactions(url, issue.reactions),
    timeline_url: `${url}/timeline`,
    performed_via_github_app: null,
    state_reason: issue.stateReason,
  });
}

/** An issue without a parent has no such key. */
function issuePart(view: View, issue: Issue): Json {
  const { total, completed, percentCompleted } = subIssuesSummary(view.world, issue);
  const parent = parentOf(view.world, issue);
  return {
    type: issue.typeId === null ? null : issueTypeView(view, issue.typeId),
    sub_issues_summary: { total, completed, percent_completed: percentCompleted },
    issue_dependencies_summary: dependenciesSummary(view.world, issue),
    ...(parent ? { parent_issue_url: `${repositoryUrl(view, parent.repository)}/issues/${parent.number}` } : {}),
  };
}

export function issueTypeView(view: View, id: number): Json | null {
  const type = view.world.issueTypes.find((one) => one.id === id);
  if (!type) return null;
  return {
    id: type.id,
    node_id: view.world.nodeId("IssueType", type),
    name: type.name,
    description: type.description,
    color: type.color,
    created_at: time(type.createdAt),
    updated_at: time(type.createdAt),
    is_enabled: true,
  };
}

function pullPart(issue: PullIssue, base: string, page: string): Json {
  return {
    draft: issue.pull.draft,
    pull_request: {
      url: `${base}/pulls/${issue.number}`,
      html_url: page,
      diff_url: `${page}.diff`,
      patch_url: `${page}.patch`,
      merged_at: timeOrNull(issue.pull.mergedAt),
    },
  };
}
