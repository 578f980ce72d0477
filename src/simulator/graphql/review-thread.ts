import type { PullIssue, ReviewComment } from "../world/records.ts";
import { pack, unpack } from "./cursor.ts";

/** The comments on one place of the diff: one begins it, the others answer. Put together per query. */
export interface ReviewThread {
  readonly id: number;
  readonly issue: PullIssue;
  readonly root: ReviewComment;
  readonly comments: readonly ReviewComment[];
}

/** In the order of their beginnings. An answer whose beginning was deleted begins a thread of its own. */
export function reviewThreads(issue: PullIssue): ReviewThread[] {
  const threads = new Map<number, { root: ReviewComment; comments: ReviewComment[] }>();
  for (const comment of issue.pull.reviewComments) {
    const id = comment.inReplyToId ?? comment.id;
    const thread = threads.get(id);
    if (thread) thread.comments.push(comment);
    else threads.set(id, { root: comment, comments: [comment] });
  }
  return [...threads].map(([id, thread]) => ({ id, issue, ...thread }));
}

// Threads are newer than the old form of ids: they have the new one only.
export function threadNodeId(thread: ReviewThread): string {
  return `PRRT_${pack([0, thread.issue.repository.id, thread.id]).toString("base64url")}`;
}

/** The id of a thread's first comment, or undefined when the text is no thread's id. */
export function parseThreadNodeId(text: string): number | undefined {
  if (!text.startsWith("PRRT_")) return undefined;
  const value = unpack(Buffer.from(text.slice(5), "base64url"));
  const id = Array.isArray(value) && value.length === 3 ? value[2] : undefined;
  return typeof id === "number" ? id : undefined;
}
