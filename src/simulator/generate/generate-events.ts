/** What must have happened to the issues and pull requests of a generated repository for them to be as they are. */
import { addIssueEvent, type IssueEventInput } from "../changes/issue-events.ts";
import type { Issue, Repository } from "../world/records.ts";
import type { World } from "../world/world.ts";

interface Happened extends IssueEventInput {
  readonly issue: Issue;
  readonly by: number | null;
  readonly at: number;
}

/** Adds the events in the order of their times, as their ids have it. */
export function addIssueEvents(world: World, { rows }: Repository): void {
  const all = [...rows.issuesByCreated.ascending()].flatMap((issue) => happenedTo(world, issue));
  for (const { issue, by, ...input } of all.sort((one, other) => one.at - other.at))
    addIssueEvent(world, by, issue, input);
}

function happenedTo(world: World, issue: Issue): Happened[] {
  const born = { issue, by: issue.authorId, at: issue.createdAt };
  const milestone = issue.milestoneId === null ? undefined : world.milestones.get(issue.milestoneId);
  const labels = issue.labelIds.flatMap((id) => world.labels.get(id) ?? []);
  const at = issue.lastClosedAt;
  const closing = at === null ? null : { issue, by: issue.closedById, at };
  return [
    ...labels.map(({ name, color }) => ({ ...born, happened: "labeled", details: { label: { name, color } } })),
    ...issue.assigneeIds.map((assigneeId) => ({ ...born, happened: "assigned", details: { assigneeId } })),
    ...(milestone ? [{ ...born, happened: "milestoned", details: { milestone: { title: milestone.title } } }] : []),
    ...(issue.locked ? [{ ...born, happened: "locked", details: { lockReason: issue.lockReason } }] : []),
    ...(closing && issue.pull?.mergedAt != null
      ? [{ ...closing, happened: "merged", commitId: issue.pull.mergeCommitSha }]
      : []),
    ...(closing ? [{ ...closing, happened: "closed", details: { stateReason: null } }] : []),
  ];
}
