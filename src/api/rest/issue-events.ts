import { type Fields, isObject, type Json, objectOf } from "../../json.ts";
import {
  type FoundEvent,
  findHeldEvents,
  findHeldList,
  findIssueEvent,
  findIssueEvents,
  type HeldEvents,
} from "../../mirror/read/issue-events.ts";
import { findIssueDocuments } from "../../mirror/read/pages.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { OutdatedFault } from "../call/outdated.ts";
import { showEach } from "../call/view.ts";
import { requireRight, seenInLists } from "../callers/permissions.ts";
import { notFound, notHeld, unread } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { requireIssue } from "./issues.ts";
import { askedPage, boundedPage, numberParam, pageDb } from "./page.ts";

/** What happened in the repository, the newest first, each event with its issue. */
export async function listRepositoryEvents(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository } = call;
  const seen = seenInLists(call);
  return await answerHeld(call, await findHeldList(ctx.db, repository.id), () =>
    eventsPage(call, { ...(seen !== "both" && { under: seen }) }),
  );
}

/** What happened to an issue or pull request, the oldest first. */
export async function listIssueEvents(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository } = call;
  const { number } = await requireIssue(call);
  const [held] = await findHeldEvents(ctx.db, [{ repositoryId: repository.id, number }]);
  return await answerHeld(call, held ?? null, () => eventsPage(call, { number }));
}

/** An event never changes. One that is not here may have happened since the list was read, or be older than the list. */
export async function getIssueEvent(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const id = numberParam(params.id);
  if (id === null) throw notFound();
  const found = await findIssueEvent(ctx.db, repository.id, id);
  if (!found) throw notHeld();
  requireRight(call, found.isPull ? "pulls" : "issues");
  const [text] = await showEvents(call, [found], { withIssue: true });
  if (text === undefined) throw notHeld();
  return ok(text, { lastModified: found.createdAt });
}

/**
 * The answer of the mirror with the time of its list. If more has happened since, upstream is asked.
 * @throws UnreadFault if the list is not here; OutdatedFault
 */
async function answerHeld(
  { repository, isFresh }: RepositoryCall,
  held: HeldEvents | null,
  answer: () => Promise<Answer>,
): Promise<Answer> {
  if (!held) throw unread();
  const confirmedAt = held.readAt;
  const shown = async () => ({ ...(await answer()), confirmedAt, isOwnTime: true as const });
  if (held.isCurrent && !isFresh) return await shown();
  throw new OutdatedFault({ kind: "issue_event", repositoryId: repository.id, parentId: null }, async () => ({
    ...(await shown()),
    missing: repository.missing,
    notFresh: "something has happened since these events were read",
  }));
}

async function eventsPage(
  call: RepositoryCall,
  list: { number?: number; under?: "issues" | "pulls" },
): Promise<Answer> {
  const { page, limit } = askedPage(call.query);
  const db = pageDb(call, { isFiltered: list.under !== undefined });
  const bounds = boundedPage(call, Object.keys(list).length > 0 ? null : "issue events");
  const { rows, total } = await findIssueEvents(db, call.repository.id, { ...list, ...bounds });
  const link = numberedLink(call.api + call.path, call.query, { page, last: Math.ceil(total / limit) });
  const texts = await showEvents(call, rows, { withIssue: list.number === undefined });
  return ok(`[${texts.join(",")}]`, { link });
}

/** Keys that show another issue, which may be of a repository that the caller does not see. */
const LINKED: ReadonlySet<string> = new Set(["sub_issue", "parent_issue", "blocked_by", "blocking"]);

/** The events as JSON texts. With their issues, those are left out whose issue cannot be shown. */
async function showEvents(
  call: RepositoryCall,
  events: readonly FoundEvent[],
  { withIssue }: { withIssue: boolean },
): Promise<string[]> {
  const numbers = [...new Set(events.map(({ number }) => number))];
  const issues: ReadonlyMap<number, StoredDocument> = withIssue
    ? await findIssueDocuments(call.ctx.db, call.repository.id, numbers, { withBody: true })
    : new Map();
  const issueTexts = await showEach(call, [...issues.values()]);
  const issueOf = new Map([...issues.keys()].map((number, at) => [number, issueTexts[at] ?? null]));
  const texts = await showEach(call, [...events]);
  return texts.flatMap((text, at) => {
    const number = events[at]?.number;
    const issue = number === undefined ? null : (issueOf.get(number) ?? null);
    if (text === null || (withIssue && issue === null)) return [];
    return [asShown(objectOf(JSON.parse(text)), issue)];
  });
}

/** The event with its issue where the address of that stands, or without both. Pure. */
function asShown(event: Fields, issue: string | null): string {
  const shown = "commit_url" in event ? event : { ...event, commit_id: null, commit_url: null };
  const entries = Object.entries(shown).flatMap(([key, value]) => {
    if (key === "issue_url") return issue === null ? [] : [`"issue":${issue}`];
    return [`${JSON.stringify(key)}:${JSON.stringify(LINKED.has(key) ? seenLink(value ?? null) : value)}`];
  });
  return `{${entries.join(",")}}`;
}

/** Null for an issue whose repository the caller is not shown, or that does not tell its repository. */
function seenLink(link: Json): Json {
  return isObject(link) && isObject(link.repository) ? link : null;
}
