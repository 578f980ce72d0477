import type { Comment, Issue } from "../world/records.ts";
import { checkBody, invalid, Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";

/** Bumps the issue and its counter. */
export function createComment(world: World, by: number, issue: Issue, body: string): Comment {
  checkCommentBody(body);
  world.changing(issue);
  const comment = world.addComment({ issue, authorId: by, body });
  world.bump(issue);
  world.emit({ event: "issue_comment", action: "created", repository: issue.repository, senderId: by, issue, comment });
  return comment;
}

export function editComment(world: World, by: number, comment: Comment, body: string): void {
  checkCommentBody(body);
  if (body === comment.body) return;
  const { issue } = comment;
  world.changing(comment);
  const changes = { body: { from: comment.body } };
  comment.body = body;
  world.bumpComment(comment);
  if (world.bumps.commentEdit) {
    world.changing(issue);
    world.bump(issue);
  }
  world.emit({
    event: "issue_comment",
    action: "edited",
    repository: issue.repository,
    senderId: by,
    issue,
    comment,
    changes,
  });
}

export function deleteComment(world: World, by: number, comment: Comment): void {
  if (comment.deleted) throw new Refusal(404, "Not Found");
  const { issue } = comment;
  world.changing(issue);
  world.changing(comment);
  comment.deleted = true;
  issue.thread = issue.thread.filter((one) => one !== comment);
  world.lag.delete(world.comments, comment);
  issue.repository.rows.commentsById.removed();
  issue.repository.rows.commentsByUpdated.removed();
  if (world.bumps.commentDelete) world.bump(issue);
  world.emit({ event: "issue_comment", action: "deleted", repository: issue.repository, senderId: by, issue, comment });
}

function checkCommentBody(body: string): void {
  if (body.trim() === "")
    throw invalid({ resource: "IssueComment", field: "body", code: "custom", message: "body cannot be blank" });
  checkBody("IssueComment", body);
}
