/** What happened to issues, in REST (GitHub docs, "Issue events" and "Issue event types"). */

import type { IssueEvent } from "../world/issue-events.ts";
import { eventNodeId, legacyNodeId } from "../world/node-id.ts";
import { issueView } from "./issue.ts";
import { simpleUserOrNull } from "./user.ts";
import { type Json, repositoryUrl, time, type View } from "./view.ts";

/**
 * GraphQL's type of an event, and what its ids begin with. The prefixes LE, LOE and CE were recorded; unconfirmed are all
 * others. An event that is not here has no type there.
 */
const TYPES: Readonly<Record<string, readonly [type: string, prefix: string]>> = {
  assigned: ["AssignedEvent", "AE"],
  unassigned: ["UnassignedEvent", "UNAE"],
  closed: ["ClosedEvent", "CE"],
  reopened: ["ReopenedEvent", "REE"],
  labeled: ["LabeledEvent", "LE"],
  unlabeled: ["UnlabeledEvent", "UNLE"],
  milestoned: ["MilestonedEvent", "MIE"],
  demilestoned: ["DemilestonedEvent", "DEME"],
  renamed: ["RenamedTitleEvent", "RTE"],
  locked: ["LockedEvent", "LOE"],
  unlocked: ["UnlockedEvent", "UNLOE"],
  pinned: ["PinnedEvent", "PINE"],
  unpinned: ["UnpinnedEvent", "UNPINE"],
  mentioned: ["MentionedEvent", "MEE"],
  subscribed: ["SubscribedEvent", "SE"],
  referenced: ["ReferencedEvent", "REFE"],
  review_requested: ["ReviewRequestedEvent", "RRE"],
  review_request_removed: ["ReviewRequestRemovedEvent", "RRRE"],
  review_dismissed: ["ReviewDismissedEvent", "RDE"],
  ready_for_review: ["ReadyForReviewEvent", "RFRE"],
  convert_to_draft: ["ConvertToDraftEvent", "CTDE"],
  merged: ["MergedEvent", "ME"],
  transferred: ["TransferredEvent", "TRE"],
  head_ref_deleted: ["HeadRefDeletedEvent", "HRDE"],
};

export const EVENT_TYPES: readonly string[] = Object.values(TYPES).map(([type]) => type);

export function eventTypeOf({ happened }: Pick<IssueEvent, "happened">): string | null {
  return TYPES[happened]?.[0] ?? null;
}

export function issueEventNodeId({ world, nextIds }: Pick<View, "world" | "nextIds">, event: IssueEvent): string {
  const [type, prefix] = TYPES[event.happened] ?? ["IssueEvent", "EV"];
  const { id, issue } = event;
  if (!nextIds && event.createdAt < world.legacyNodeIdsBefore) return legacyNodeId(type, id);
  return eventNodeId(prefix, [issue.repository.id, issue.id, id]);
}

/** @param withIssue as the list of a repository and a single event show it; the list of an issue leaves it out */
export function issueEventView(view: View, event: IssueEvent, { withIssue }: { withIssue: boolean }): Json {
  const { id, issue, details, commitId } = event;
  const base = repositoryUrl(view, issue.repository);
  return {
    id,
    node_id: issueEventNodeId(view, event),
    url: `${base}/issues/events/${id}`,
    actor: simpleUserOrNull(view, event.actorId),
    event: event.happened,
    commit_id: commitId,
    commit_url: commitId === null ? null : `${base}/commits/${commitId}`,
    created_at: time(event.createdAt),
    ...detailParts(view, event),
    ...(withIssue && { issue: issueView(view, issue) }),
    ...("stateReason" in details && { state_reason: details.stateReason ?? null }),
    performed_via_github_app: null,
  };
}

function detailParts(view: View, { details, actorId }: IssueEvent): Json {
  const { label, milestone, rename, assigneeId, requestedReviewerId, dismissed } = details;
  return {
    ...(label && { label }),
    ...(milestone && { milestone }),
    ...(rename && { rename }),
    ...(assigneeId !== undefined && {
      assignee: simpleUserOrNull(view, assigneeId),
      assigner: simpleUserOrNull(view, actorId),
    }),
    ...(requestedReviewerId !== undefined && {
      review_requester: simpleUserOrNull(view, actorId),
      requested_reviewer: simpleUserOrNull(view, requestedReviewerId),
    }),
    ...("lockReason" in details && { lock_reason: details.lockReason ?? null }),
    ...(dismissed && {
      dismissed_review: {
        state: dismissed.state,
        review_id: dismissed.reviewId,
        dismissal_message: dismissed.message,
      },
    }),
  };
}
