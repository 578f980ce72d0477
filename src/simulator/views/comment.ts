import type { Comment, Review, ReviewComment } from "../world/records.ts";
import { commentAuthor, simpleUserOrNull } from "./user.ts";
import {
  association,
  bodyFields,
  type Json,
  reactions,
  repositoryPage,
  repositoryUrl,
  time,
  type View,
} from "./view.ts";

export function commentView(view: View, comment: Comment): Json {
  const { issue } = comment;
  const base = repositoryUrl(view, issue.repository);
  const page = `${repositoryPage(view, issue.repository)}/${issue.pull ? "pull" : "issues"}/${issue.number}`;
  const url = `${base}/issues/comments/${comment.id}`;
  return {
    url,
    html_url: `${page}#issuecomment-${comment.id}`,
    issue_url: `${base}/issues/${issue.number}`,
    id: comment.id,
    node_id: view.world.nodeId("IssueComment", comment, issue.repository.id, view.nextIds),
    user: commentAuthor(view, comment.authorId),
    created_at: time(comment.createdAt),
    updated_at: time(comment.updatedAt),
    ...bodyFields(view, comment.body),
    author_association: association(view.world, issue.repository, comment.authorId, comment.association),
    reactions: reactions(url, comment.reactions),
    performed_via_github_app: null,
  };
}

export function reviewView(view: View, review: Review): Json {
  const { issue } = review;
  const page = `${repositoryPage(view, issue.repository)}/pull/${issue.number}#pullrequestreview-${review.id}`;
  const pullUrl = `${repositoryUrl(view, issue.repository)}/pulls/${issue.number}`;
  return {
    id: review.id,
    node_id: view.world.nodeId("PullRequestReview", review, issue.repository.id, view.nextIds),
    user: simpleUserOrNull(view, review.authorId),
    ...bodyFields(view, review.body),
    state: review.state,
    html_url: page,
    pull_request_url: pullUrl,
    author_association: association(view.world, issue.repository, review.authorId, review.association),
    _links: { html: { href: page }, pull_request: { href: pullUrl } },
    ...(review.submittedAt === null ? {} : { submitted_at: time(review.submittedAt) }),
    commit_id: review.commitId,
  };
}

export function reviewCommentView(view: View, comment: ReviewComment): Json {
  const { issue } = comment;
  const base = repositoryUrl(view, issue.repository);
  const url = `${base}/pulls/comments/${comment.id}`;
  const page = `${repositoryPage(view, issue.repository)}/pull/${issue.number}#discussion_r${comment.id}`;
  const pullUrl = `${base}/pulls/${issue.number}`;
  // Deleted authors: null here, the ghost elsewhere.
  const authorId = comment.authorId !== null && view.world.users.has(comment.authorId) ? comment.authorId : null;
  return {
    url,
    pull_request_review_id: comment.reviewId,
    id: comment.id,
    node_id: view.world.nodeId("PullRequestReviewComment", comment, issue.repository.id, view.nextIds),
    diff_hunk: comment.diffHunk,
    path: comment.path,
    commit_id: comment.commitId,
    original_commit_id: comment.originalCommitId,
    user: commentAuthor(view, authorId),
    ...bodyFields(view, comment.body),
    created_at: time(comment.createdAt),
    updated_at: time(comment.updatedAt),
    html_url: page,
    pull_request_url: pullUrl,
    author_association: association(view.world, issue.repository, comment.authorId, comment.association),
    _links: { self: { href: url }, html: { href: page }, pull_request: { href: pullUrl } },
    reactions: reactions(url, comment.reactions),
    start_line: comment.startLine,
    original_start_line: comment.originalStartLine,
    start_side: comment.startSide,
    line: comment.line,
    original_line: comment.originalLine,
    side: comment.side,
    ...(comment.inReplyToId === null ? {} : { in_reply_to_id: comment.inReplyToId }),
    original_position: comment.originalPosition,
    position: comment.position,
    subject_type: comment.subjectType,
  };
}
