import type { WorldEvent } from "../world/event.ts";
import type { EventDetails, IssueEvent } from "../world/issue-events.ts";
import type { Issue, Seconds } from "../world/records.ts";
import type { World } from "../world/world.ts";

export interface IssueEventInput {
  readonly happened: string;
  readonly commitId?: string | null;
  readonly details?: EventDetails;
  /** Default: now. */
  readonly at?: Seconds;
}

/** Notes what happened. By itself it moves no time, and no webhook tells of it: so are references by commits. */
export function addIssueEvent(world: World, by: number | null, issue: Issue, input: IssueEventInput): IssueEvent {
  const event: IssueEvent = {
    id: world.issueEvents.nextId(),
    issue,
    happened: input.happened,
    actorId: by,
    commitId: input.commitId ?? null,
    details: input.details ?? {},
    createdAt: input.at ?? world.now(),
    deleted: false,
  };
  world.issueEvents.add(event);
  world.lag.created(event);
  return event;
}

/** By the action of the webhook that tells the same. Absent: no event comes of it. */
const HAPPENED: Readonly<Record<string, string>> = {
  ...{ closed: "closed", reopened: "reopened", locked: "locked", unlocked: "unlocked" },
  ...{ labeled: "labeled", unlabeled: "unlabeled", assigned: "assigned", unassigned: "unassigned" },
  ...{ milestoned: "milestoned", demilestoned: "demilestoned", pinned: "pinned", unpinned: "unpinned" },
  ...{ review_requested: "review_requested", review_request_removed: "review_request_removed" },
  ...{ ready_for_review: "ready_for_review", converted_to_draft: "convert_to_draft" },
};

/** The event of what a webhook is about to tell. */
export function noteHappened(
  world: World,
  by: number,
  issue: Issue,
  {
    action,
    changes,
    ...told
  }: Pick<WorldEvent, "changes" | "label" | "milestone" | "assigneeId" | "requestedReviewerId"> & {
    action: string;
  },
): void {
  const former = changes?.title;
  if (action === "edited" && typeof former === "object" && former !== null && "from" in former)
    addIssueEvent(world, by, issue, {
      happened: "renamed",
      details: { rename: { from: String(former.from), to: issue.title } },
    });
  const happened = HAPPENED[action];
  // Unconfirmed: that nothing is noted when the label itself was deleted.
  const isOfLabel = action === "labeled" || action === "unlabeled";
  if (happened === undefined || (isOfLabel && !told.label)) return;
  const { mergedAt, mergeCommitSha: commitId } = issue.pull ?? { mergedAt: null, mergeCommitSha: null };
  if (action === "closed" && mergedAt !== null && mergedAt === issue.closedAt)
    addIssueEvent(world, by, issue, { happened: "merged", commitId });
  addIssueEvent(world, by, issue, { happened, details: detailsOf(issue, action, told) });
}

function detailsOf(
  issue: Issue,
  action: string,
  {
    label,
    milestone,
    assigneeId,
    requestedReviewerId,
  }: Pick<WorldEvent, "label" | "milestone" | "assigneeId" | "requestedReviewerId">,
): EventDetails {
  return {
    ...(label && { label: { name: label.name, color: label.color } }),
    ...(milestone && { milestone: { title: milestone.title } }),
    ...(assigneeId !== undefined && { assigneeId }),
    ...(requestedReviewerId !== undefined && { requestedReviewerId }),
    ...(action === "locked" && { lockReason: issue.lockReason }),
    ...(action === "closed" && { stateReason: issue.stateReason === "completed" ? null : issue.stateReason }),
  };
}
