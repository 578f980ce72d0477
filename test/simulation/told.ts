import type { Json } from "../../src/json.ts";
import type { Kind } from "../../src/mirror/store/resource.ts";

const USERS =
  "user|owner|creator|assignee|assignees\\.\\d+|closed_by|merged_by|requested_reviewers\\.\\d+|organization";

/**
 * Of these changes upstream moves no `updated_at` that a list of changes is ordered by, so that nothing tells of them once
 * their webhook was lost, or there is none; an audit finds them. All else is told by webhooks and catch-ups together.
 */
const untold: readonly RegExp[] = [
  // Who has become a contributor is one in everything they ever wrote; no webhook says so.
  /(^|\.)author_association$/,
  // A comment that was deleted moves only the count.
  /(^|\.)(comments|review_comments)$/,
  // Upstream is not known to move anything when an issue is locked.
  /^(locked|active_lock_reason)$/,
  // Worked out once somebody asks, and never announced.
  /^(mergeable|rebaseable|mergeable_state|merge_commit_sha)$/,
  // A user renamed or deleted: there is no webhook.
  new RegExp(`(^|\\.)(${USERS})(\\.|$)`),
  /^(head|base)\.label$/,
  // A fork that a pull request came from is not ours to follow.
  /^head\.(repo|user)(\.|$)/,
];

/** Whether webhooks, some of which were lost, and catch-ups together tell of it when this differs. */
export function isTold(_kind: Kind, path: string, mine: Json | undefined): boolean {
  const isDeleted = path === "(whole)" && mine !== undefined;
  return !isDeleted && !untold.some((pattern) => pattern.test(path));
}
