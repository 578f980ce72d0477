/** What happened to an issue or pull request, in its order. Of all that the service tells here, only the last closing is modelled. */
import type { GraphQLResolveInfo } from "graphql";
import { time } from "../views/view.ts";
import type { Issue } from "../world/records.ts";
import { actor, type Call, issuePage, pathOf } from "./call.ts";
import { arraySource, connection, type PageArguments } from "./connection.ts";
import { pack } from "./cursor.ts";
import type { Fields } from "./resolvers.ts";

/** Put together per query. */
export interface ClosedEvent {
  readonly closing: Issue;
  readonly at: number;
}

interface TimelineArguments extends PageArguments {
  readonly itemTypes?: readonly string[] | null;
  readonly since?: number | null;
  readonly skip?: number | null;
}

export function timelineItems(issue: Issue, args: TimelineArguments, call: Call, info: GraphQLResolveInfo) {
  const isWanted = args.itemTypes?.includes("CLOSED_EVENT") ?? true;
  const all: ClosedEvent[] =
    issue.lastClosedAt !== null && isWanted ? [{ closing: issue, at: issue.lastClosedAt }] : [];
  const items = all.filter(({ at }) => at >= (args.since ?? 0)).slice(args.skip ?? 0);
  const page = connection(call, info, args, arraySource(items, { keyOf: ({ at }) => at, idOf: () => issue.id }));
  return {
    ...page,
    totalCount: all.length,
    filteredCount: items.length,
    pageCount: () => page.nodes().length,
    updatedAt: time(issue.updatedAt),
  };
}

export const closedEventFields: Fields<ClosedEvent> = {
  id: ({ closing, at }) => `CE_${pack([0, closing.repository.id, closing.id, at]).toString("base64url")}`,
  actor: ({ closing }, _, call) => actor(call, closing.closedById),
  closable: ({ closing }) => closing,
  createdAt: ({ at }) => time(at),
  stateReason: ({ closing }) => closing.stateReason?.toUpperCase() ?? null,
  url: ({ closing, at }, _, call) => `${issuePage(call, closing)}#event-${at}`,
  resourcePath: ({ closing, at }, _, call) => `${pathOf(call, issuePage(call, closing))}#event-${at}`,
};
