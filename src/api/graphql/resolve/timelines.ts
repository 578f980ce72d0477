/** What happened to an issue or pull request, as far as REST's events tell it. */
import { type Fields, type Json, objectOf, textOf } from "../../../json.ts";
import { eventSource, findHeldEvents, type HeldEvents } from "../../../mirror/read/issue-events.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { type Connection, type PageArguments, storedConnection } from "./connection.ts";
import {
  account,
  databaseId,
  enumValue,
  lacking,
  nodeId,
  pathnameOf,
  type Resolver,
  rest,
  type TypeResolvers,
} from "./fields.ts";

interface TimelineArguments extends PageArguments {
  itemTypes?: readonly string[] | null;
  since?: string | null;
  skip?: number | null;
}

/** The field that shows what an event happened to. */
type SubjectField = "assignable" | "closable" | "labelable" | "lockable" | "subject" | "issue" | "pullRequest";

/** The types that REST's events tell whole, by the event, each with what it shows beside its actor and time. */
const EVENTS: Readonly<Record<string, readonly [type: string, parent: SubjectField | null, own?: TypeResolvers]>> = {
  assigned: ["AssignedEvent", "assignable", { assignee: account("assignee") }],
  unassigned: ["UnassignedEvent", "assignable", { assignee: account("assignee") }],
  closed: ["ClosedEvent", "closable", { ...addresses(), stateReason: closedAs }],
  reopened: ["ReopenedEvent", "closable"],
  labeled: ["LabeledEvent", "labelable", { label }],
  unlabeled: ["UnlabeledEvent", "labelable", { label }],
  milestoned: ["MilestonedEvent", "subject", { milestoneTitle: within("milestone", "title") }],
  demilestoned: ["DemilestonedEvent", "subject", { milestoneTitle: within("milestone", "title") }],
  renamed: [
    "RenamedTitleEvent",
    "subject",
    { currentTitle: within("rename", "to"), previousTitle: within("rename", "from") },
  ],
  locked: ["LockedEvent", "lockable", { lockReason: ({ rest: { lock_reason } }: Node) => enumValue(lock_reason) }],
  unlocked: ["UnlockedEvent", "lockable"],
  pinned: ["PinnedEvent", "issue"],
  unpinned: ["UnpinnedEvent", "issue"],
  mentioned: ["MentionedEvent", null, { databaseId }],
  subscribed: ["SubscribedEvent", null],
  referenced: ["ReferencedEvent", null],
  transferred: ["TransferredEvent", "issue"],
  review_requested: ["ReviewRequestedEvent", "pullRequest", { requestedReviewer }],
  review_request_removed: ["ReviewRequestRemovedEvent", "pullRequest", { requestedReviewer }],
  ready_for_review: ["ReadyForReviewEvent", "pullRequest", addresses()],
  convert_to_draft: ["ConvertToDraftEvent", "pullRequest", addresses()],
  merged: ["MergedEvent", "pullRequest", addresses()],
  head_ref_deleted: ["HeadRefDeletedEvent", "pullRequest"],
};

/** GraphQL's type of an event of REST's. Null: it has none here. */
export function eventTypeOf({ event }: Fields): string | null {
  return EVENTS[textOf(event) ?? ""]?.[0] ?? null;
}

/** By the type of items that is asked for, such as `LABELED_EVENT`, the event of REST's. */
const ITEM_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries(EVENTS).map(([event, [type]]) => [type.replaceAll(/(?<!^)(?=[A-Z])/g, "_").toUpperCase(), event]),
);

/**
 * The events of an issue or pull request, if only such are asked for. Comments, reviews, commits and references from
 * elsewhere stand among all others in their order, and upstream alone has these.
 */
export const timelineItems: Resolver = async (
  { repositoryId, rest: { number } },
  args: TimelineArguments,
  call: GraphqlCall,
  info: FieldInfo,
): Promise<Connection & { filteredCount: () => unknown; pageCount: () => unknown }> => {
  const events = (args.itemTypes ?? []).flatMap((type) => ITEM_TYPES.get(type) ?? []);
  const isAll = events.length > 0 && events.length === args.itemTypes?.length && !args.skip;
  if (!isAll) lacking(call, "issue-events");
  await requireEvents(call, repositoryId, Number(number));
  const list = (since: string | null) => {
    const stored = {
      ...{ kind: "TimelineEvent" as const, source: eventSource(events, since) },
      parent: { r: repositoryId, n: Number(number) },
    };
    // Lists of the same arguments share their counts.
    const named: TimelineArguments = { ...args, since };
    return storedConnection(call, info, named, stored);
  };
  const shown = list(args.since ?? null);
  return {
    ...shown,
    totalCount: args.since == null ? shown.totalCount : () => list(null).totalCount(),
    filteredCount: shown.totalCount,
    pageCount: async () => (await shown.nodes()).length,
  };
};

/** @throws GraphQLError as `lacking`, if the mirror does not hold the events of this issue */
async function requireEvents(call: GraphqlCall, repositoryId: number, number: number): Promise<void> {
  const repository = await call.ctx.mirror.repositories.byId(repositoryId, call.access);
  const held = repository?.mirrors.includes("issue-events")
    ? await call
        .loader<{ repositoryId: number; number: number }, HeldEvents | null>("held events", (places, db) =>
          findHeldEvents(db, places),
        )
        .load({ repositoryId, number })
    : null;
  if (!held) lacking(call, "issue-events");
  call.showsReadAt(held.readAt);
  if (held.isCurrent) return;
  await call.wantList("issue_event", repositoryId);
  // Upstream answers, if it may. For all others the answer says when the events were read, which a mirror would not heed.
  call.lacks();
  if (call.isForMirror) throw typedError("NOT_YET", "The events of this issue are to be read again.");
}

function within(key: string, inner: string): Resolver {
  return ({ rest: { [key]: value } }: Node) => objectOf(value)[inner] ?? "";
}

function addresses(): TypeResolvers {
  const url = async (node: Node, call: GraphqlCall) => {
    const { rest: parent } = await parentOf(node, call);
    return `${textOf(parent.html_url) ?? ""}#event-${String(node.rest.id)}`;
  };
  return {
    url: (node, _args, call) => url(node, call),
    resourcePath: async (node, _args, call) => {
      const { rest: parent } = await parentOf(node, call);
      return `${pathnameOf(parent.html_url) ?? ""}#event-${String(node.rest.id)}`;
    },
  };
}

/** Why it was closed; REST says nothing if it was completed, and nothing of pull requests. */
async function closedAs(node: Node, _args: unknown, call: GraphqlCall): Promise<Json> {
  const reason = enumValue(node.rest.state_reason);
  if (reason !== null) return reason;
  return (await parentOf(node, call)).kind === "PullRequest" ? null : lacking(call, "issue-events");
}

/** The label that has the name now. One that was renamed or deleted since is upstream's to tell. */
async function label({ repositoryId, rest: event }: Node, _args: unknown, call: GraphqlCall): Promise<Node> {
  const found = await call.label(repositoryId, textOf(objectOf(event.label).name) ?? "");
  return found ?? lacking(call, "issue-events");
}

function requestedReviewer(
  { rest: { requested_reviewer: user } }: Node,
  _args: unknown,
  call: GraphqlCall,
): Node | null {
  return user == null ? lacking(call, "issue-events") : actorOf(user);
}

/** The issue or pull request that the event happened to. */
async function parentOf({ repositoryId, rest: { issue_url: address } }: Node, call: GraphqlCall): Promise<Node> {
  const number = Number(textOf(address)?.split("/").at(-1));
  const found =
    (await call.numbered("PullRequest", repositoryId, number)) ?? (await call.numbered("Issue", repositoryId, number));
  if (found) return found;
  throw typedError("NOT_FOUND", "Could not resolve to an issue or pull request.");
}

export const eventResolvers: Readonly<Record<string, TypeResolvers>> = Object.fromEntries(
  Object.values(EVENTS).map(([type, parent, own]): [string, TypeResolvers] => [
    type,
    {
      id: nodeId,
      actor: account("actor"),
      createdAt: rest("created_at"),
      ...(parent && { [parent]: (node: Node, _args: never, call: GraphqlCall) => parentOf(node, call) }),
      ...own,
    },
  ]),
);
