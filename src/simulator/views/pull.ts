import { createHash } from "node:crypto";
import type { Pull, PullEnd, PullIssue } from "../world/records.ts";
import { commentCount } from "../world/world.ts";
import { asRecorded } from "./histories-recorded.ts";
import { issueNodeId, sharedParts } from "./issue.ts";
import { repositorySummary } from "./repository.ts";
import { simpleUser, simpleUserOrNull } from "./user.ts";
import { bodyFields, type Json, repositoryPage, repositoryUrl, time, timeOrNull, type View } from "./view.ts";

/** pull-request-simple: rows of lists, and pull requests inside review events. */
export function pullSummary(view: View, issue: PullIssue): Json {
  const { pull } = issue;
  const base = repositoryUrl(view, issue.repository);
  const url = `${base}/pulls/${issue.number}`;
  const asIssue = `${base}/issues/${issue.number}`;
  const page = `${repositoryPage(view, issue.repository)}/pull/${issue.number}`;
  const shared = sharedParts(view, issue);
  const links = {
    self: url,
    html: page,
    issue: asIssue,
    comments: `${asIssue}/comments`,
    review_comments: `${url}/comments`,
    review_comment: `${base}/pulls/comments{/number}`,
    commits: `${url}/commits`,
    statuses: `${base}/statuses/${pull.head.sha}`,
  };
  return asRecorded(view, issue, "pull", {
    url,
    id: pull.id,
    node_id: issueNodeId(view, issue),
    html_url: page,
    diff_url: `${page}.diff`,
    patch_url: `${page}.patch`,
    issue_url: asIssue,
    number: issue.number,
    state: issue.state,
    locked: issue.locked,
    title: issue.title,
    user: shared.user,
    ...bodyFields(view, issue.body),
    created_at: time(issue.createdAt),
    updated_at: time(issue.updatedAt),
    closed_at: timeOrNull(issue.closedAt),
    merged_at: timeOrNull(pull.mergedAt),
    ...(view.version === "2022-11-28" ? { merge_commit_sha: mergeCommit(view, issue) } : {}),
    ...shared.assignee,
    assignees: shared.assignees,
    requested_reviewers: pull.requestedReviewerIds
      .filter((id) => view.world.users.has(id))
      .map((id) => simpleUser(view, id)),
    requested_teams: [],
    labels: shared.labels,
    milestone: shared.milestone,
    draft: pull.draft,
    commits_url: links.commits,
    review_comments_url: links.review_comments,
    review_comment_url: links.review_comment,
    comments_url: links.comments,
    statuses_url: links.statuses,
    head: pullEnd(view, pull.head),
    base: pullEnd(view, pull.base),
    _links: Object.fromEntries(Object.entries(links).map(([name, href]) => [name, { href }])),
    author_association: shared.association,
    auto_merge: null,
    active_lock_reason: issue.lockReason,
  });
}

/** pull-request: what a single read adds. It does not start the mergeability job; see `askMergeable`. */
export function fullPull(view: View, issue: PullIssue): Json {
  const { pull } = issue;
  return {
    ...pullSummary(view, issue),
    merged: pull.mergedAt !== null,
    ...mergeability(view, issue),
    merged_by: simpleUserOrNull(view, pull.mergedById),
    comments: commentCount(issue),
    review_comments: pull.reviewComments.length,
    maintainer_can_modify: pull.maintainerCanModify,
    commits: pull.commits,
    additions: pull.additions,
    deletions: pull.deletions,
    changed_files: pull.changedFiles,
  };
}

/** A single read starts the background job that finds whether the pull request can be merged. */
export function askMergeable(view: View, issue: PullIssue): void {
  if (issue.state === "open" && issue.pull.mergeableKnownAt === null) {
    issue.pull.mergeableKnownAt = view.world.clock.now() + view.world.mergeableDelayMs;
  }
}

function mergeableKnown(view: View, pull: Pull): boolean {
  return pull.mergeableKnownAt !== null && pull.mergeableKnownAt <= view.world.clock.now();
}

export function mergeability(view: View, issue: PullIssue): Json {
  const { pull } = issue;
  if (issue.state === "closed") return { mergeable: null, rebaseable: null, mergeable_state: "unknown" };
  if (!mergeableKnown(view, pull))
    return { mergeable: null, rebaseable: null, mergeable_state: pull.draft ? "draft" : "unknown" };
  if (!pull.mergeable) return { mergeable: false, rebaseable: false, mergeable_state: "dirty" };
  return { mergeable: true, rebaseable: true, mergeable_state: pull.draft ? "draft" : "clean" };
}

/** The test merge while open (once known), the landed commit afterwards. */
export function mergeCommit(view: View, issue: PullIssue): string | null {
  const { pull } = issue;
  if (pull.mergeCommitSha !== null || issue.state === "closed") return pull.mergeCommitSha;
  if (!mergeableKnown(view, pull) || !pull.mergeable) return null;
  return createHash("sha1").update(pull.base.sha).update(pull.head.sha).digest("hex");
}

function pullEnd(view: View, end: PullEnd): Json {
  const repository = end.repositoryId === null ? undefined : view.world.repositories.get(end.repositoryId);
  return {
    label: end.label,
    ref: end.ref,
    sha: end.sha,
    user: end.userId !== null && view.world.users.has(end.userId) ? simpleUser(view, end.userId) : null,
    // Unconfirmed: that a fork out of sight looks like a deleted one, as in GraphQL.
    repo: repository && view.sees(repository) ? repositorySummary(view, repository) : null,
  };
}
