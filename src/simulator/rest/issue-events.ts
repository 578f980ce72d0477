/** GitHub docs, "Issue events". The repository's list begins with the newest, an issue's with the oldest. */
import { issueEventView } from "../views/issue-event.ts";
import { kindOf } from "../world/access.ts";
import type { IssueEvent } from "../world/issue-events.ts";
import { type Answer, needKind, notFound, ok, type RepositoryCall, seenIssueOnly } from "./call.ts";
import { paged } from "./pagination.ts";

export function listRepositoryEvents(call: RepositoryCall): Answer {
  const events = call.world.issueEvents.ofRepository(call.repository);
  const show = (event: IssueEvent) => shown(call, event, true);
  if (call.mayTouch("issues") && call.mayTouch("pull_requests"))
    return paged(call, { rows: events.descending(), size: events.size }, show);
  // Either permission opens the route.
  return paged(call, { rows: [...events.descending()].filter(({ issue }) => call.mayTouch(kindOf(issue))) }, show);
}

export function listIssueEvents(call: RepositoryCall): Answer {
  const rows = call.world.issueEvents.of(seenIssueOnly(call));
  return paged(call, { rows, size: rows.length }, (event) => shown(call, event, false));
}

export function getIssueEvent(call: RepositoryCall): Answer {
  const event = call.world.issueEvents.byId.get(Number(call.params.id));
  if (event?.issue.repository !== call.repository) throw notFound();
  needKind(call, event.issue);
  const shownEvent = shown(call, event, true);
  if (!shownEvent) throw notFound();
  return ok(shownEvent, { lastModified: event.createdAt });
}

/** Null: the replica does not have it yet. */
function shown({ world, view }: RepositoryCall, event: IssueEvent, withIssue: boolean) {
  const seen = world.lag.seen(event);
  const issue = seen && world.lag.seen(seen.issue);
  return seen && issue && issueEventView(view, { ...seen, issue }, { withIssue });
}
