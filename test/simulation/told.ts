import type { Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";

const USERS =
  "user|owner|creator|assignee|assignees\\.\\d+|closed_by|merged_by|requested_reviewers\\.\\d+|organization";

/**
 * Fields whose changes move no `updated_at` that orders a list. Without a webhook, or when it is lost, only an audit
 * finds these changes. Webhooks and catch-ups together show all others.
 */
const untold: readonly RegExp[] = [
  // A user who becomes a contributor is one in everything that they ever wrote. No webhook says so.
  /(^|\.)author_association$/,
  // The deletion of a comment moves only the count.
  /(^|\.)(comments|review_comments)$/,
  // It is not known that upstream moves any time when an issue is locked.
  /^(locked|active_lock_reason)$/,
  // Reactions have no webhook and move no time.
  /(^|\.)reactions(\.|$)/,
  // Upstream computes these on the first request, and never announces them.
  /^(mergeable|rebaseable|mergeable_state|merge_commit_sha)$/,
  // No webhook tells that a user was renamed or deleted.
  new RegExp(`(^|\\.)(${USERS})(\\.|$)`),
  /^(head|base)\.label$/,
  // Tain does not follow the fork that a pull request came from.
  /^head\.(repo|user)(\.|$)/,
];

/** Whether webhooks and catch-ups together show a difference in this field, when some webhooks were lost. */
export function isTold(_kind: Kind, path: string, mine: Json | undefined): boolean {
  const isDeleted = path === "(whole)" && mine !== undefined;
  return !isDeleted && !untold.some((pattern) => pattern.test(path));
}

/** Fields that no webhook shows, or that also change without a webhook. A catch-up shows them. */
const unheard: readonly RegExp[] = [
  // Each webhook shows a milestone's counters, and they move without its `updated_at`. The webhook that arrives last
  // decides.
  /(^|\.)(open_issues|closed_issues)$/,
  // These are fields of the repository itself: see `isHeard`.
  /^(base|head)\.repo\./,
  // GitHub docs: no action of `pull_request` tells of this field.
  /^maintainer_can_modify$/,
];

/**
 * Whether webhooks alone show a difference in this field, when none was lost. What they say of a repository itself
 * comes late and in any order. A webhook of a new pull request does not tell the id that it has as an issue. So its
 * issue waits for a read.
 */
export function isHeard(kind: Kind, path: string, mine: Json | undefined): boolean {
  if (kind === "repository" || unheard.some((one) => one.test(path))) return false;
  // No deleted resource stays in the mirror, because the webhook of its deletion came.
  if (path === "(whole)") return mine !== undefined || kind !== "issue";
  return isTold(kind, path, mine);
}
