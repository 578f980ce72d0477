/** The fields of comments, reviews, comments on diffs and requests for reviews. */

import { type Json, objectOf, rowsOf } from "../../../json.ts";
import { latestReviewSource, reviewCommentSource } from "../../../mirror/read/comments.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { type Connection, heldConnection, type PageArguments, storedConnection } from "./connection.ts";
import {
  comment,
  commitNode,
  databaseId,
  nodeId,
  notMirrored,
  type Resolver,
  resourcePath,
  rest,
  type TypeResolvers,
} from "./fields.ts";
import { reactionGroups, reactions } from "./reactions.ts";

/** The number at the end of the address of an issue or pull request. */
function numberAtEnd(address: Json | undefined): number {
  return Number(String(address).split("/").at(-1));
}

async function requireNode(what: string, node: Promise<Node | null>): Promise<Node> {
  const found = await node;
  if (!found) throw typedError("NOT_FOUND", `Could not resolve to ${what}.`);
  return found;
}

const pullOf: Resolver = (node, _args, call) =>
  requireNode(
    "a PullRequest",
    call.numbered("PullRequest", node.repositoryId, numberAtEnd(node.rest.pull_request_url)),
  );

const commitIn =
  (key: string): Resolver =>
  ({ rest: fields, repositoryId }) =>
    commitNode(repositoryId, fields[key]);

const byId =
  (kind: "PullRequestReview" | "PullRequestReviewComment", key: string): Resolver =>
  ({ rest: fields }, _args, call) =>
    typeof fields[key] === "number" ? call.byId(kind, fields[key]) : null;

/** The requests for reviews, to people and to teams, in the order that REST gives them. */
export function reviewRequests(node: Node, args: PageArguments, info: FieldInfo): Connection {
  const of = (key: string, kind: "Team" | "User"): Node[] =>
    rowsOf(node.rest[key]).map((asked) => ({
      kind: "ReviewRequest",
      repositoryId: node.repositoryId,
      rest: { id: asked.id ?? null, kind, asked, number: node.rest.number ?? null },
    }));
  const held = [...of("requested_reviewers", "User"), ...of("requested_teams", "Team")];
  return heldConnection(info, args, held, { keyOf: (_node, at) => String(at).padStart(4, "0") });
}

/** The last review of each reviewer who is not asked for another one. */
export const latestReviews: Resolver = (
  { rest: { number }, repositoryId },
  args: PageArguments,
  call: GraphqlCall,
  info: FieldInfo,
) =>
  storedConnection(call, info, args, {
    kind: "PullRequestReview",
    source: latestReviewSource,
    parent: { r: repositoryId, n: Number(number) },
  });

const begunAt: Resolver = ({ rest: { created_at, submitted_at } }, _args, call) => {
  if (created_at === undefined) call.lacks();
  return created_at ?? submitted_at;
};

/** Only an edit moves the time of a comment. */
const includesCreatedEdit: Resolver = ({ rest: { created_at, updated_at } }) => updated_at !== created_at;

export const reviewResolvers: Readonly<Record<string, TypeResolvers>> = {
  IssueComment: {
    ...comment,
    reactionGroups,
    reactions,
    // REST sets `minimized` on minimized comments alone.
    isMinimized: ({ rest: { minimized } }) => minimized != null,
    minimizedReason: ({ rest: { minimized } }) => objectOf(minimized).reason ?? null,
    includesCreatedEdit,
    // A comment under a pull request also has an issue: the pull request's issue side.
    issue: (node, _args, call) =>
      requireNode("an Issue", call.numbered("Issue", node.repositoryId, numberAtEnd(node.rest.issue_url))),
    pullRequest: (node, _args, call) =>
      call.numbered("PullRequest", node.repositoryId, numberAtEnd(node.rest.issue_url)),
  },
  PullRequestReview: {
    ...comment,
    // REST does not tell the reactions to reviews.
    reactionGroups: notMirrored,
    state: rest("state"),
    submittedAt: rest("submitted_at"),
    // REST does not tell when a review was begun.
    createdAt: begunAt,
    publishedAt: begunAt,
    // REST does not tell when a review was edited. So the mirror knows no edit of a review that only REST has shown.
    updatedAt: ({ rest: { updated_at, submitted_at } }, _args, call) => {
      if (updated_at === undefined) call.lacks();
      return updated_at ?? submitted_at;
    },
    pullRequest: pullOf,
    commit: commitIn("commit_id"),
    comments: (node, args: PageArguments, call, info) =>
      storedConnection(call, info, args, {
        kind: "PullRequestReviewComment",
        source: reviewCommentSource,
        parent: { r: node.repositoryId, n: Number(node.rest.id) },
      }),
  },
  PullRequestReviewComment: {
    ...comment,
    reactionGroups,
    reactions,
    includesCreatedEdit,
    // Comments of pending reviews are not mirrored.
    state: () => "SUBMITTED",
    pullRequest: pullOf,
    pullRequestReview: byId("PullRequestReview", "pull_request_review_id"),
    replyTo: byId("PullRequestReviewComment", "in_reply_to_id"),
    commit: commitIn("commit_id"),
    originalCommit: commitIn("original_commit_id"),
    diffHunk: rest("diff_hunk"),
    path: rest("path"),
    line: rest("line"),
    originalLine: rest("original_line"),
    startLine: rest("start_line"),
    originalStartLine: rest("original_start_line"),
    subjectType: ({ rest: { subject_type } }) => (subject_type === "file" ? "FILE" : "LINE"),
    // A comment on a line loses that line when the diff no longer has it.
    outdated: ({ rest: { subject_type, line } }) => subject_type !== "file" && line == null,
  },
  ReviewRequest: {
    pullRequest: ({ repositoryId, rest: { number } }, _args, call) =>
      requireNode("a PullRequest", call.numbered("PullRequest", repositoryId, Number(number))),
    requestedReviewer: ({ repositoryId, rest: { kind, asked } }) =>
      kind === "Team" ? { kind: "Team", repositoryId, rest: objectOf(asked) } : actorOf(asked),
  },
  Team: {
    id: nodeId,
    databaseId,
    name: rest("name"),
    slug: rest("slug"),
    // Only teams of the organization that owns a repository can be asked there.
    organization: async ({ repositoryId }, _args, call) =>
      actorOf((await call.requireRepositoryById(repositoryId)).rest.owner),
    description: rest("description"),
    url: rest("html_url"),
    resourcePath,
  },
};
