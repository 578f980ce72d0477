/**
 * What happened to an issue or pull request, in its order. Of all that the service tells here, comments, reviews, commits
 * and cross-references are not modelled.
 */
import type { GraphQLResolveInfo } from "graphql";
import { eventTypeOf, issueEventNodeId } from "../views/issue-event.ts";
import { time } from "../views/view.ts";
import type { IssueEvent } from "../world/issue-events.ts";
import type { Issue } from "../world/records.ts";
import { actor, type Call, issuePage, pathOf, seen } from "./call.ts";
import { arraySource, connection, type PageArguments } from "./connection.ts";
import type { Fields } from "./resolvers.ts";

interface TimelineArguments extends PageArguments {
  readonly itemTypes?: readonly string[] | null;
  readonly since?: number | null;
  readonly skip?: number | null;
}

export function timelineItems(issue: Issue, args: TimelineArguments, call: Call, info: GraphQLResolveInfo) {
  const all = happenedTo(issue, call).filter((event) => isWanted(event, args.itemTypes));
  const items = all.filter(({ createdAt }) => createdAt >= (args.since ?? 0)).slice(args.skip ?? 0);
  const source = arraySource(items, { keyOf: ({ createdAt }) => createdAt, idOf: ({ id }) => id });
  const page = connection(call, info, args, source);
  return {
    ...page,
    totalCount: all.length,
    filteredCount: items.length,
    pageCount: () => page.nodes().length,
    updatedAt: time(issue.updatedAt),
  };
}

/** A generated issue that is closed has no events of its own: its closing is told all the same. */
function happenedTo(issue: Issue, call: Call): readonly IssueEvent[] {
  const events = call.world.issueEvents.of(issue).filter((event) => seen(call, event) !== null);
  if (issue.lastClosedAt === null || events.some(({ happened }) => happened === "closed")) return events;
  const { id, closedById: actorId, stateReason, lastClosedAt: createdAt } = issue;
  const closed = { id, issue, happened: "closed", actorId, commitId: null, details: { stateReason }, createdAt };
  return [...events, { ...closed, deleted: false }];
}

/** `LabeledEvent` → `LABELED_EVENT`. */
function isWanted(event: IssueEvent, types: readonly string[] | null | undefined): boolean {
  const type = eventTypeOf(event);
  return type !== null && (types?.includes(type.replaceAll(/(?<!^)(?=[A-Z])/g, "_").toUpperCase()) ?? true);
}

const subject = ({ issue }: IssueEvent) => issue;

/** Of all types of events; each has some of these. */
export const eventFields: Fields<IssueEvent> = {
  id: (event, _, call) => issueEventNodeId(call.view, event),
  databaseId: ({ id }) => id,
  actor: ({ actorId }, _, call) => actor(call, actorId),
  createdAt: ({ createdAt }) => time(createdAt),
  ...{ assignable: subject, closable: subject, labelable: subject, lockable: subject, issue: subject, subject },
  pullRequest: subject,
  url: ({ id, issue }, _, call) => `${issuePage(call, issue)}#event-${id}`,
  resourcePath: ({ id, issue }, _, call) => `${pathOf(call, issuePage(call, issue))}#event-${id}`,
  stateReason: ({ details }) => details.stateReason?.toUpperCase() ?? null,
  label: ({ issue, details }, _, call) => {
    const label = call.world.labelByName(issue.repository, details.label?.name ?? "");
    return seen(call, label);
  },
  assignee: ({ details }, _, call) => actor(call, details.assigneeId ?? null),
  user: ({ details }, _, call) => {
    const user = actor(call, details.assigneeId ?? null);
    return user?.type === "User" ? user : null;
  },
  requestedReviewer: ({ details }, _, call) => actor(call, details.requestedReviewerId ?? null),
  milestoneTitle: ({ details }) => details.milestone?.title ?? "",
  currentTitle: ({ details }) => details.rename?.to ?? "",
  previousTitle: ({ details }) => details.rename?.from ?? "",
  lockReason: ({ details }) => details.lockReason?.replaceAll(/[- ]/g, "_").toUpperCase() ?? null,
};
