import type { PullIssue } from "../world/records.ts";
import type { World } from "../world/world.ts";

/** A thread is called by its first comment. Unconfirmed: that `updated_at` of the pull request stays. */
export function resolveThread(world: World, by: number, issue: PullIssue, thread: number, resolved: boolean): void {
  const { resolvedThreads } = world.code;
  if (resolvedThreads.has(thread) === resolved) return;
  if (resolved) resolvedThreads.set(thread, by);
  else resolvedThreads.delete(thread);
  const action = resolved ? "resolved" : "unresolved";
  const { repository } = issue;
  world.emit({ event: "pull_request_review_thread", action, repository, senderId: by, issue, thread });
}
