import type { Json } from "../../src/json.ts";
import type { Kind } from "../../src/mirror/store/resource.ts";

const USERS =
  "user|owner|creator|assignee|assignees\\.\\d+|closed_by|merged_by|requested_reviewers\\.\\d+|organization";

/**
 * These changes move no `updated_at` that orders a list of changes. So nothing shows them once their webhook is lost,
 * or if there is none; an audit finds them. Webhooks and catch-ups together show all others.
 */
const untold: readonly RegExp[] = [
  // Who has become a contributor is one in everything they ever wrote; no webhook says so.
  /(^|\.)author_association$/,
  // A comment that was deleted moves only the count.
  /(^|\.)(comments|review_comments)$/,
  // Upstream is not known to move anything when an issue is locked.
  /^(locked|active_lock_reason)$/,
  // Computed on the first request, and never announced.
  /^(mergeable|rebaseable|mergeable_state|merge_commit_sha)$/,
  // A user renamed or deleted: there is no webhook.
  new RegExp(`(^|\\.)(${USERS})(\\.|$)`),
  /^(head|base)\.label$/,
  // A fork that a pull request came from is not ours to follow.
  /^head\.(repo|user)(\.|$)/,
];

/** Whether webhooks and catch-ups together show a difference in this field, when some webhooks were lost. */
export function isTold(_kind: Kind, path: string, mine: Json | undefined): boolean {
  const isDeleted = path === "(whole)" && mine !== undefined;
  return !isDeleted && !untold.some((pattern) => pattern.test(path));
}

/** What a webhook does not show, or what moves without any. A catch-up shows it. */
const unheard: readonly RegExp[] = [
  // Each webhook shows a milestone's counters, and they move without its `updated_at`. The last that arrives stands.
  /(^|\.)(open_issues|closed_issues)$/,
  // The repository itself, about which see below.
  /^(base|head)\.repo\./,
  // GitHub docs: no action of `pull_request` tells of it.
  /^maintainer_can_modify$/,
];

/**
 * Whether webhooks alone show a difference in this field, when none was lost. What they say of a repository itself
 * comes late and in any order. They do not tell the id that a new pull request has as an issue, so that side of it
 * waits for a read.
 */
export function isHeard(kind: Kind, path: string, mine: Json | undefined): boolean {
  if (kind === "repository" || unheard.some((one) => one.test(path))) return false;
  // Nothing that was deleted stays: its webhook came.
  if (path === "(whole)") return mine !== undefined || kind !== "issue";
  return isTold(kind, path, mine);
}
