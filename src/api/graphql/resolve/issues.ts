import { type Json, objectOf, rowsOf } from "../../../json.ts";
import { issueCommentSource, reviewSource } from "../../../mirror/read/comments.ts";
import type { Order } from "../../../mirror/read/pages.ts";
import { actorOf, type Node } from "../call/node.ts";
import { ownsRepositories } from "./accounts.ts";
import { rollupOf } from "./checks.ts";
import { pullCommits, pullFiles } from "./commits.ts";
import { type Connection, heldConnection, type PageArguments, storedConnection } from "./connection.ts";
import {
  comment,
  enumValue,
  given,
  onceRead,
  pullState,
  type Resolver,
  rest,
  type TypeResolvers,
  upper,
} from "./fields.ts";
import { pullMerging } from "./pull-merging.ts";
import { pullReactionGroups, pullReactions, reactionGroups, reactions } from "./reactions.ts";
import { embeddedRepository } from "./repository-details.ts";
import { latestReviews, reviewRequests } from "./reviews.ts";
import { pullThreads } from "./threads.ts";
import { timelineItems } from "./timelines.ts";

const issueOrPull: TypeResolvers = {
  ...comment,
  number: rest("number"),
  title: rest("title"),
  closed: ({ rest: { state } }) => state === "closed",
  closedAt: rest("closed_at"),
  locked: ({ rest: { locked } }) => locked === true,
  activeLockReason: upper("active_lock_reason"),
  milestone: ({ rest: { milestone }, repositoryId }) => held("Milestone", repositoryId, [milestone ?? null])[0] ?? null,
  labels: (
    { rest: { labels }, repositoryId },
    args: PageArguments & { orderBy?: Order | null },
    _call,
    info,
  ): Connection => {
    const byName = args.orderBy?.field === "NAME";
    const keyOf = ({ rest: label }: Node) =>
      byName ? String(label.name).toLowerCase() : String(label.id).padStart(20, "0");
    return heldConnection(info, args, held("Label", repositoryId, labels), {
      keyOf,
      direction: args.orderBy?.direction === "DESC" ? "desc" : "asc",
    });
  },
  assignees: ({ rest: { assignees } }, args: PageArguments, _call, info) =>
    // Assignees keep the order that REST gives them.
    heldConnection(info, args, held("User", 0, assignees), { keyOf: (_node, at) => String(at).padStart(4, "0") }),
  timelineItems,
  // The service has ended classic projects. Those of an old enterprise server are not mirrored.
  projectCards: (_node, args: PageArguments, _call, info) => heldConnection(info, args, [], { keyOf: () => "" }),
  comments: ({ rest: { number }, repositoryId }, args: PageArguments & { orderBy?: Order | null }, call, info) =>
    storedConnection(call, info, args, {
      kind: "IssueComment",
      source: issueCommentSource(args.orderBy),
      parent: { r: repositoryId, n: Number(number) },
    }),
};

function held(kind: "Label" | "Milestone" | "User", repositoryId: number, value: Json | undefined): Node[] {
  return rowsOf(value).map((one) => ({ kind, repositoryId, rest: one }));
}

/**
 * The issue that this one is a part of. One in a repository that the caller does not see is left out, as in REST. Only a
 * read shows the parent, and it shows nothing where there is none.
 */
const parentOf: Resolver = async ({ rest: { parent_issue_url: address } }, _args, call) => {
  const [, name, number] = /\/repos\/([^/]+\/[^/]+)\/issues\/(\d+)$/.exec(String(address)) ?? [];
  const repository = name === undefined ? null : await call.repositoryNamed(name, true);
  const parent = repository && (await call.numbered("Issue", repository.repositoryId, Number(number)));
  if (parent) return given(call, parent);
  call.lacks();
  return null;
};

export const issue: TypeResolvers = {
  ...issueOrPull,
  reactionGroups,
  reactions,
  parent: parentOf,
  state: upper("state"),
  stateReason: ({ rest: { state_reason } }, { enableDuplicate }: { enableDuplicate?: boolean | null }) => {
    const reason = enumValue(state_reason);
    // Older clients do not know the reason "duplicate", and get this one.
    return reason === "DUPLICATE" && !enableDuplicate ? "NOT_PLANNED" : reason;
  },
  subIssuesSummary: (node, args, call, info) => {
    const { total, completed, percent_completed } = objectOf(onceRead("sub_issues_summary")(node, args, call, info));
    return { total, completed, percentCompleted: percent_completed };
  },
};

export const pullRequest: TypeResolvers = {
  ...issueOrPull,
  ...pullMerging,
  commits: pullCommits,
  files: pullFiles,
  reactionGroups: pullReactionGroups,
  reactions: pullReactions,
  state: pullState,
  permalink: rest("html_url"),
  isDraft: ({ rest: { draft } }) => draft === true,
  merged: ({ rest: { merged_at } }) => merged_at != null,
  mergedAt: rest("merged_at"),
  mergedBy: (node, args, call, info) =>
    node.rest.merged_at == null ? null : actorOf(onceRead("merged_by")(node, args, call, info)),
  mergeable: ({ rest: { mergeable, state } }, _args, call) => {
    // Upstream works it out when asked, so it may know by now.
    if (mergeable === undefined || (mergeable === null && state === "open")) call.lacks();
    return mergeable === true ? "MERGEABLE" : mergeable === false ? "CONFLICTING" : "UNKNOWN";
  },
  maintainerCanModify: onceRead("maintainer_can_modify"),
  additions: onceRead("additions"),
  deletions: onceRead("deletions"),
  changedFiles: onceRead("changed_files"),
  totalCommentsCount: ({ rest: { comments, review_comments } }, _args, call) => {
    if (typeof comments === "number" && typeof review_comments === "number") return comments + review_comments;
    call.lacks();
    return null;
  },
  baseRefName: ({ rest: { base } }) => objectOf(base).ref,
  baseRefOid: ({ rest: { base } }) => objectOf(base).sha,
  headRefName: ({ rest: { head } }) => objectOf(head).ref,
  headRefOid: ({ rest: { head } }) => objectOf(head).sha,
  baseRepository: (node, _args, call) => call.requireRepositoryById(node.repositoryId),
  headRepository: ({ rest: { head } }, _args, call) => embeddedRepository(call, objectOf(head).repo),
  headRepositoryOwner: ({ rest: { head } }) => {
    const owner = actorOf(objectOf(head).user);
    return owner && ownsRepositories(owner) ? owner : null;
  },
  isCrossRepository: ({ rest: { head }, repositoryId }) => objectOf(objectOf(head).repo).id !== repositoryId,
  statusCheckRollup: ({ rest: { head }, repositoryId }, _args, call, info) =>
    rollupOf(call, info, repositoryId, objectOf(head).sha),
  reviewRequests: (node, args: PageArguments, _call, info) => reviewRequests(node, args, info),
  latestReviews,
  reviewThreads: pullThreads,
  reviews: (
    { rest: { number }, repositoryId },
    args: PageArguments & { author?: string | null; states?: string[] | null },
    call,
    info,
  ) =>
    storedConnection(call, info, args, {
      kind: "PullRequestReview",
      source: reviewSource(args),
      parent: { r: repositoryId, n: Number(number) },
    }),
};
