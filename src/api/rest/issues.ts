import { rowsOf } from "../../json.ts";
import type { FoundIssue } from "../../mirror/read/issue-lookups.ts";
import {
  findIssues,
  type IssueFilter,
  type IssueOrder,
  type IssuePosition,
  isFiltered,
  type ListedIssue,
} from "../../mirror/read/issues.ts";
import { MOST_LABELS } from "../../mirror/read/label-lists.ts";
import { findMilestone } from "../../mirror/read/milestones.ts";
import { sees } from "../../mirror/read/repositories.ts";
import { findLacked, lackedMark, storeMarks } from "../../mirror/store/marks.ts";
import { findTransfer } from "../../mirror/store/transfers.ts";
import { enqueueRefreshes, orLater } from "../../queues/queues.ts";
import { type Answer, moved, ok, type RepositoryCall } from "../call/call.ts";
import { showFields, showList, showOne } from "../call/view.ts";
import { requireRight, seenInLists } from "../callers/permissions.ts";
import { ApiFault, hint, invalid, invalidFilter, notFound, unmirrored } from "../dialect/fault.ts";
import { cursorLink, numberedLink, readCursor, writeCursor } from "../dialect/paging.ts";
import { choice, isOutside, issueState, moment, pageNumber, pageSize, sentDirection } from "../dialect/protocol.ts";
import { askedPage, smallNumberParam } from "./page.ts";

/**
 * The last row that pages reach. GitHub was seen to refuse page 100 of 100 rows (go-github issues 3565, 3976); whether
 * it refuses nearer ones is not known.
 */
const DEEPEST_ROW = 10_000;

export async function listIssues(call: RepositoryCall): Promise<Answer> {
  const { query, ctx, repository } = call;
  const filter = await issueFilter(call);
  const order = askedOrder(query);
  const limit = pageSize(query);
  const position = issuePosition(query, limit);
  const db = isFiltered(filter) ? call.searchDb : ctx.db;
  const [found, lacked] = await Promise.all([
    findIssues(db, repository.id, filter, order, { position, limit: limit + 1 }),
    hastenLacked(call),
  ]);

  const isBackward = "side" in position && position.side === "before";
  const page = found.slice(0, limit);
  if (isBackward) page.reverse();
  const hasMore = found.length > limit;
  const [first, last] = [page[0], page.at(-1)];
  const link = cursorLink(call.api + call.path, query, {
    page: pageNumber(query),
    size: limit,
    // The row that a cursor names stands beyond the page, so there is another page on that side.
    next: last && (hasMore || isBackward) ? issueCursor(last) : null,
    previous: first && (isBackward ? hasMore : "side" in position || position.offset > 0) ? issueCursor(first) : null,
  });
  const documents = page.map(({ document, body }) => ({ repositoryId: repository.id, document, body }));
  const answer = ok(await showList(call, documents, { areRepositories: false }), { link });
  if (lacked.numbers.length === 0) return answer;
  const what = `what is not listed yet: ${lacked.numbers.join(", ")}.`;
  // With headers of its own it is not kept.
  return {
    ...answer,
    headers: hint(`${lacked.areAsked ? "Upstream is asked" : "Upstream has still to be asked"} for ${what}`),
  };
}

/**
 * Asks at once for new pull requests that lists of issues lack, out of the caller's share: with nobody reading they would
 * wait for others. Whoever does not see both issues and pull requests is told of none, since nothing says yet which they
 * are.
 */
async function hastenLacked(call: RepositoryCall): Promise<{ numbers: readonly number[]; areAsked: boolean }> {
  const {
    ctx,
    caller,
    repository: { id: repositoryId },
  } = call;
  const lacked = seenInLists(call) === "both" ? await findLacked(ctx.db, repositoryId) : [];
  const numbers = lacked.map(({ key }) => key);
  const waiting = lacked.filter(({ isReadFor }) => !isReadFor);
  if (waiting.length === 0) return { numbers, areAsked: true };
  if (caller.kind === "anonymous" || !(await ctx.upstream.takeDoubt(caller))) return { numbers, areAsked: false };
  const now = ctx.clock.now();
  const marks = waiting.map(({ key }) => lackedMark({ repositoryId, key, now }));
  await storeMarks(ctx.db, marks);
  const jobs = marks.map(({ kind, key }) => ({ job: { kind, repositoryId, key }, delayMs: 0 }));
  await orLater(ctx, { refreshes: jobs.length }, () => enqueueRefreshes(ctx, jobs));
  return { numbers, areAsked: true };
}

const ISSUE_SORTS = ["created", "updated", "comments"] as const;

/** The order of a list of issues. A word that is neither a sort nor a direction takes the other parameter along. */
export function askedOrder(query: URLSearchParams): IssueOrder {
  const isOdd = isOutside(query, "sort", ISSUE_SORTS) || isOutside(query, "direction", ["asc", "desc"]);
  if (isOdd) return { sort: "created", direction: "desc" };
  return { sort: choice(query, "sort", ISSUE_SORTS), direction: sentDirection(query, "desc") ?? "desc" };
}

function issuePosition(query: URLSearchParams, limit: number): IssuePosition {
  for (const side of ["after", "before"] as const) {
    const text = query.get(side);
    if (!text) continue;
    const [key, number] = readCursor(text) ?? [];
    if (typeof key !== "number" || number === undefined || number > 0x7fff_ffff || key > 8.64e15) {
      throw invalid({ value: text, resource: "Issue", field: side, code: "invalid" });
    }
    return { side, key, number };
  }
  const page = pageNumber(query);
  if (page > 1 && page * limit >= DEEPEST_ROW) {
    throw new ApiFault(
      422,
      "Pagination with the page parameter is not supported for large datasets, please use cursor based pagination (after/before)",
    );
  }
  return { offset: (page - 1) * limit };
}

function issueCursor({ key, number }: ListedIssue): string {
  return writeCursor([key, number], "url-safe");
}

async function issueFilter(call: RepositoryCall): Promise<IssueFilter> {
  const { query, ctx, repository } = call;
  const state = issueState(query);
  if (query.get("issue_field_values")) {
    // Without the filter, the answer would show issues that were not asked for.
    const message = "Filtering by issue fields is not mirrored";
    throw unmirrored({ resource: "Issue", field: "issue_field_values", code: "custom", message });
  }
  const text = (name: string) => query.get(name) || undefined;
  const [milestone, assignee] = [text("milestone"), text("assignee")];
  return {
    state,
    since: moment(query, "since") ?? undefined,
    milestone:
      milestone === undefined || milestone === "*"
        ? milestone
        : milestone === "none"
          ? null
          : await milestoneNumber(milestone, ctx, repository.id),
    assignee: assignee === undefined || assignee === "*" ? assignee : assignee === "none" ? null : { login: assignee },
    creator: text("creator"),
    mentioned: text("mentioned"),
    labels: askedLabels(query),
    type: askedType(query),
    ...(seenInLists(call) === "issues" ? { hasPulls: false } : {}),
  };
}

/**
 * The labels that issues must have; undefined when the parameter is absent or empty.
 * @throws ApiFault 422 for more labels than an issue can have
 */
export function askedLabels(query: URLSearchParams): string[] | undefined {
  const names = (query.get("labels") || undefined)
    ?.split(",")
    .map((part) => part.trim())
    .filter(Boolean);
  if (names && names.length > MOST_LABELS) {
    const message = `labels is too long (maximum is ${MOST_LABELS} labels)`;
    throw invalid({ resource: "Issue", field: "labels", code: "custom", message });
  }
  return names;
}

/** The type that issues must have. */
export function askedType(query: URLSearchParams): IssueFilter["type"] {
  const type = query.get("type") || undefined;
  return type === undefined || type === "*" ? type : type === "none" ? null : { name: type };
}

async function milestoneNumber(text: string, { db }: RepositoryCall["ctx"], repositoryId: number): Promise<number> {
  const number = smallNumberParam(text);
  if (number === null || !(await findMilestone(db, repositoryId, number))) {
    throw invalidFilter("milestone", text);
  }
  return number;
}

export async function getIssue(call: RepositoryCall): Promise<Answer> {
  const issue = await lookUpIssue(call);
  if ("path" in issue) return moved(call, issue.path);
  const { document, body, updatedAt } = issue;
  return ok(await showOne(call, { repositoryId: call.repository.id, document, body }), { lastModified: updatedAt });
}

/** The issue. @throws ApiFault 404, also for paths below a transferred issue; 410 for a deleted issue; 403 */
export async function requireIssue(call: RepositoryCall): Promise<FoundIssue> {
  const issue = await lookUpIssue(call);
  if ("path" in issue) throw notFound();
  return issue;
}

/**
 * The issue, or its new path if it was transferred.
 * @throws ApiFault 404, also if the caller may not see the new issue; 410 for a deleted issue; 403 for one of a kind
 *   that they may not see
 */
async function lookUpIssue(call: RepositoryCall): Promise<FoundIssue | { path: string }> {
  const { ctx, repository, params, access } = call;
  const number = smallNumberParam(params.number);
  if (number === null) throw notFound();
  const { issue, isPull } = await ctx.mirror.issues.find(repository.id, number);
  if (!issue) throw notFound();
  requireRight(call, isPull ? "pulls" : "issues");
  if (issue !== "deleted") return issue;
  const place = await findTransfer(ctx.db, { repositoryId: repository.id, number });
  if (!place) throw new ApiFault(410, "This issue was deleted");
  const home = await ctx.mirror.repositories.byId(place.repositoryId, access);
  if (!home || !sees(access, home, "issues")) throw notFound();
  return { path: `/repositories/${place.repositoryId}/issues/${place.number}` };
}

/** The issue's labels, in the order in which the issue carries them. */
export async function listIssueLabels(call: RepositoryCall): Promise<Answer> {
  const { document, body } = await requireIssue(call);
  const labels = rowsOf((await showFields(call, { repositoryId: call.repository.id, document, body })).labels);
  const { page, limit, offset } = askedPage(call.query);
  const link = numberedLink(call.api + call.path, call.query, { page, last: Math.ceil(labels.length / limit) });
  return ok(JSON.stringify(labels.slice(offset, offset + limit)), { link });
}
