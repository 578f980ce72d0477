import {
  convertToPull,
  createPull,
  editPull,
  mergePull,
  removeRequestedReviewers,
  requestReviewers,
  updatePullBranch,
} from "../changes/pulls.ts";
import { askMergeable, fullPull, pullSummary } from "../views/pull.ts";
import { simpleUser } from "../views/user.ts";
import type { Issue, PullIssue, Repository } from "../world/records.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { mayPush } from "../world/tokens.ts";
import { commentCount, isPull } from "../world/world.ts";
import { flag, numberOf, oneOf, required, text, textOrNull, texts } from "./body.ts";
import { type Answer, contributor, created, needPush, ok, pullToWrite, type RepositoryCall, seenPull } from "./call.ts";
import { lastModified } from "./issues.ts";
import { type Listing, paged } from "./pagination.ts";

/** No `since` here; ascending unless sorted by creation. */
export function listPulls(call: RepositoryCall): Answer {
  const listing = pullListing(call);
  return paged(call, listing, (row) => {
    const seen = call.world.lag.seen(row);
    return seen && isPull(seen) ? pullSummary(call.view, seen) : null;
  });
}

function pullListing(call: RepositoryCall): Listing<Issue> {
  const { query, repository } = call;
  const { rows, openPulls } = repository;
  // Seen in 2026: no unknown word is refused, and without a direction any sort that was sent is ascending.
  const state = query.get("state") === "closed" || query.get("state") === "all" ? query.get("state") : "open";
  const sort = query.get("sort");
  const head = query.get("head");
  const base = query.get("base");
  const ascending = (query.get("direction") ?? (sort === null ? "desc" : "asc")) === "asc";
  const all = rows.pullsByCreated.size;
  const size = state === "open" ? openPulls : state === "closed" ? all - openPulls : all;

  let found: Iterable<Issue>;
  if (sort === "updated") {
    found = only(
      ascending ? rows.issuesByUpdated.ascending() : rows.issuesByUpdated.descending(),
      (row) => row.pull !== null,
    );
  } else if (sort === "popularity") {
    const sign = ascending ? 1 : -1;
    found = [...rows.pullsByCreated.ascending()].sort(
      (a, b) => sign * (commentCount(a) - commentCount(b) || a.id - b.id),
    );
  } else found = ascending ? rows.pullsByCreated.ascending() : rows.pullsByCreated.descending();

  if (state !== "all") found = only(found, (row) => row.state === state);
  if (head === null && base === null) return { rows: found, size };
  if (base !== null) found = only(found, (row) => row.pull?.base.ref === base);
  // `user:branch`; without a colon the service does not filter.
  if (head?.includes(":")) found = only(found, (row) => row.pull?.head.label.toLowerCase() === head.toLowerCase());
  return { rows: found };
}

function* only<Row>(rows: Iterable<Row>, wanted: (row: Row) => boolean): Generator<Row> {
  for (const row of rows) if (wanted(row)) yield row;
}

export function getPull(call: RepositoryCall): Answer {
  const issue = seenPull(call);
  const accept = call.params.accept;
  if (accept === "diff" || accept === "patch")
    return { status: 200, text: { type: `application/vnd.github.${accept}; charset=utf-8`, content: diffOf(issue) } };
  askMergeable(call.view, issue);
  return ok(fullPull(call.view, issue), { lastModified: lastModified(call.world, issue) });
}

// The simulated world has no files: a diff that names the commits is all that can be said.
function diffOf(issue: PullIssue): string {
  const { base, head } = issue.pull;
  return `diff --git a/README.md b/README.md\nindex ${base.sha.slice(0, 7)}..${head.sha.slice(0, 7)} 100644\n`;
}

export function postPull(call: RepositoryCall): Answer {
  const by = contributor(call);
  const { body, repository, world } = call;
  const headText = required(text(body, "head"), "head");
  const baseRef = required(text(body, "base"), "base");
  const { headRepository, headRef } = headOf(call, headText);
  if (headRepository === repository && !mayPush(call.role)) throw new Refusal(404, "Not Found");
  const maintainerCanModify = flag(body, "maintainer_can_modify");
  const source = {
    headRepository,
    headRef,
    baseRef,
    draft: flag(body, "draft") ?? false,
    ...(maintainerCanModify === undefined ? {} : { maintainerCanModify }),
  };
  const number = numberOf(body, "issue");
  if (number !== undefined) {
    const issue = world.issue(repository, number);
    if (!issue) throw invalid({ resource: "PullRequest", field: "issue", code: "missing", value: number });
    return created(fullPull(call.view, convertToPull(world, by, issue, source)));
  }
  const title = required(text(body, "title"), "title");
  const issue = createPull(world, by, { repository, title, body: textOrNull(body, "body") ?? null, ...source });
  return created(fullPull(call.view, issue));
}

/** `branch` or `owner:branch`: the owner's repository in the same network. */
function headOf(call: RepositoryCall, head: string): { headRepository: Repository; headRef: string } {
  const { world, repository } = call;
  const colon = head.indexOf(":");
  if (colon < 0) return { headRepository: repository, headRef: head };
  const owner = world.userByLogin(head.slice(0, colon));
  const headRef = head.slice(colon + 1);
  const named = text(call.body, "head_repo");
  for (const candidate of world.repositories.values()) {
    if (candidate.ownerId !== owner?.id) continue;
    const inNetwork =
      candidate === repository || candidate.parentId === repository.id || candidate.id === repository.parentId;
    if (inNetwork && (named === undefined || named === candidate.name)) return { headRepository: candidate, headRef };
  }
  throw invalid({ resource: "PullRequest", field: "head", code: "invalid" });
}

export function patchPull(call: RepositoryCall): Answer {
  const by = contributor(call);
  const issue = pullToWrite(call);
  if (!mayPush(call.role) && issue.authorId !== by) throw new Refusal(403, "Must have push access to repository");
  const { body } = call;
  const title = text(body, "title");
  const newBody = textOrNull(body, "body");
  const state = oneOf(body, "state", ["open", "closed"]);
  const baseRef = text(body, "base");
  const maintainerCanModify = flag(body, "maintainer_can_modify");
  editPull(call.world, by, issue, {
    ...(title === undefined ? {} : { title }),
    ...(newBody === undefined ? {} : { body: newBody }),
    ...(state === undefined ? {} : { state }),
    ...(baseRef === undefined ? {} : { baseRef }),
    ...(maintainerCanModify === undefined ? {} : { maintainerCanModify }),
  });
  return ok(fullPull(call.view, issue));
}

const MERGE_METHODS = ["merge", "squash", "rebase"] as const;

export function putMerge(call: RepositoryCall): Answer {
  const by = needPush(call);
  const issue = pullToWrite(call);
  const sha = text(call.body, "sha");
  const method = oneOf(call.body, "merge_method", MERGE_METHODS) ?? "merge";
  const { allowMergeCommit, allowSquashMerge, allowRebaseMerge } = call.repository;
  const allowed = { merge: allowMergeCommit, squash: allowSquashMerge, rebase: allowRebaseMerge };
  const words = { merge: "Merge commits are", squash: "Squash merges are", rebase: "Rebase merges are" };
  if (!allowed[method]) throw new Refusal(405, `${words[method]} not allowed on this repository.`);
  if (sha !== undefined && sha !== issue.pull.head.sha)
    throw new Refusal(409, "Head branch was modified. Review and try the merge again.");
  const title = text(call.body, "commit_title");
  const message = text(call.body, "commit_message");
  mergePull(call.world, by, issue, {
    method,
    ...(title === undefined ? {} : { title }),
    ...(message === undefined ? {} : { message }),
  });
  return ok({ sha: issue.pull.mergeCommitSha, merged: true, message: "Pull Request successfully merged" });
}

/** Brings the base branch into the head: in the background, so the answer says only that it will be done. */
export function putUpdateBranch(call: RepositoryCall): Answer {
  const by = needPush(call);
  const issue = pullToWrite(call);
  const expected = text(call.body, "expected_head_sha");
  if (expected !== undefined && expected !== issue.pull.head.sha)
    throw new Refusal(422, "expected head sha didn’t match current head ref.");
  updatePullBranch(call.world, by, issue);
  const url = `${call.view.apiUrl}/repos/${call.world.fullName(call.repository)}/pulls/${issue.number}`;
  return { status: 202, body: { message: "Updating pull request branch.", url }, headers: { Location: url } };
}

export function getMerge(call: RepositoryCall): Answer {
  return { status: seenPull(call).pull.mergedAt === null ? 404 : 204 };
}

export function postRequestedReviewers(call: RepositoryCall): Answer {
  const by = needPush(call);
  const issue = pullToWrite(call);
  requestReviewers(call.world, by, issue, reviewers(call));
  return { status: 201, body: pullSummary(call.view, issue) };
}

export function deleteRequestedReviewers(call: RepositoryCall): Answer {
  const by = needPush(call);
  const issue = pullToWrite(call);
  removeRequestedReviewers(call.world, by, issue, reviewers(call));
  return ok(pullSummary(call.view, issue));
}

export function getRequestedReviewers(call: RepositoryCall): Answer {
  const { requestedReviewerIds } = seenPull(call).pull;
  return ok({ users: requestedReviewerIds.map((id) => simpleUser(call.view, id)), teams: [] });
}

function reviewers(call: RepositoryCall): number[] {
  return (texts(call.body, "reviewers") ?? []).map((login) => {
    const user = call.world.userByLogin(login);
    if (!user)
      throw new Refusal(
        422,
        "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator.",
      );
    return user.id;
  });
}
