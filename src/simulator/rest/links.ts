/** Sub-issues and dependencies: bodies name the other issue by its id. */
import { addBlocker, addSubIssue, moveSubIssue, removeBlocker, removeSubIssue } from "../changes/links.ts";
import { issueTypeView, issueView } from "../views/issue.ts";
import { linkedIssues, linksOf, parentOf } from "../world/issue-links.ts";
import type { Issue } from "../world/records.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { mayTriage } from "../world/tokens.ts";
import { numberOf } from "./body.ts";
import {
  type Answer,
  contributor,
  created,
  issueToWrite,
  notFound,
  ok,
  type RepositoryCall,
  seenIssueOnly,
} from "./call.ts";
import { paged } from "./pagination.ts";
import { inRepository, type Route } from "./router.ts";

function linked(call: RepositoryCall, ids: readonly number[]): Answer {
  return paged(call, { rows: linkedIssues(call.world, ids) }, (row) => {
    const seen = call.world.lag.seen(row);
    return seen && issueView(call.view, seen);
  });
}

function editor(call: RepositoryCall): number {
  const by = contributor(call);
  if (!mayTriage(call.role)) throw new Refusal(403, "Must have triage rights to Repository.");
  return by;
}

/** The issue that a key of the body names by its id. */
function named(call: RepositoryCall, key: string): Issue {
  const id = numberOf(call.body, key);
  const issue = id === undefined ? undefined : call.world.issues.get(id);
  if (!issue) throw invalid({ resource: "Issue", field: key, code: "invalid", value: call.body[key] });
  return issue;
}

function getParent(call: RepositoryCall): Answer {
  const parent = parentOf(call.world, seenIssueOnly(call));
  const seen = parent && call.world.lag.seen(parent);
  if (!seen) throw notFound();
  return ok(issueView(call.view, seen));
}

function postSubIssue(call: RepositoryCall): Answer {
  const parent = issueToWrite(call);
  addSubIssue(call.world, editor(call), parent, named(call, "sub_issue_id"), call.body.replace_parent === true);
  return created(issueView(call.view, parent));
}

function deleteSubIssue(call: RepositoryCall): Answer {
  const parent = issueToWrite(call);
  removeSubIssue(call.world, editor(call), parent, named(call, "sub_issue_id"));
  return ok(issueView(call.view, parent));
}

function patchPriority(call: RepositoryCall): Answer {
  const parent = issueToWrite(call);
  editor(call);
  const after = call.body.after_id === undefined ? null : named(call, "after_id");
  moveSubIssue(call.world, parent, named(call, "sub_issue_id"), after);
  return ok(issueView(call.view, parent));
}

function postBlocker(call: RepositoryCall): Answer {
  const blocked = issueToWrite(call);
  addBlocker(call.world, editor(call), blocked, named(call, "issue_id"));
  return created(issueView(call.view, blocked));
}

function deleteBlocker(call: RepositoryCall): Answer {
  const blocked = issueToWrite(call);
  const blocking = call.world.issues.get(Number(call.params.id));
  if (!blocking) throw notFound();
  removeBlocker(call.world, editor(call), blocked, blocking);
  return ok(issueView(call.view, blocked));
}

const SUB_ISSUES = "issues/sub-issues";
const DEPENDENCIES = "issues/issue-dependencies";

export const LINK_ROUTES: readonly Route[] = [
  inRepository("GET", "/issues/:number/parent", `${SUB_ISSUES}#get-parent-issue`, getParent),
  inRepository("GET", "/issues/:number/sub_issues", `${SUB_ISSUES}#list-sub-issues`, (call) =>
    linked(call, linksOf(seenIssueOnly(call)).subIssueIds),
  ),
  inRepository("POST", "/issues/:number/sub_issues", `${SUB_ISSUES}#add-sub-issue`, postSubIssue, { content: true }),
  inRepository("DELETE", "/issues/:number/sub_issue", `${SUB_ISSUES}#remove-sub-issue`, deleteSubIssue),
  inRepository("PATCH", "/issues/:number/sub_issues/priority", `${SUB_ISSUES}#reprioritize-sub-issue`, patchPriority),
  inRepository(
    "GET",
    "/issues/:number/dependencies/blocked_by",
    `${DEPENDENCIES}#list-dependencies-an-issue-is-blocked-by`,
    (call) => linked(call, linksOf(seenIssueOnly(call)).blockedByIds),
  ),
  inRepository(
    "POST",
    "/issues/:number/dependencies/blocked_by",
    `${DEPENDENCIES}#add-a-dependency-an-issue-is-blocked-by`,
    postBlocker,
    { content: true },
  ),
  inRepository(
    "DELETE",
    "/issues/:number/dependencies/blocked_by/:id",
    `${DEPENDENCIES}#remove-dependency-an-issue-is-blocked-by`,
    deleteBlocker,
  ),
  inRepository(
    "GET",
    "/issues/:number/dependencies/blocking",
    `${DEPENDENCIES}#list-dependencies-an-issue-is-blocking`,
    (call) => linked(call, linksOf(seenIssueOnly(call)).blockingIds),
  ),
  inRepository("GET", "/issue-types", "repos/issue-types#list-issue-types-for-a-repository", ({ world, view }) =>
    ok(world.issueTypes.map(({ id }) => issueTypeView(view, id))),
  ),
];
