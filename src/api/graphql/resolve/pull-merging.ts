/** What a pull request shows about being merged. */
import { objectOf } from "../../../json.ts";
import { actorOf, type Node } from "../call/node.ts";
import { commitNode, enumValue, fieldNotHeld, notMirrored, pathnameOf, rest, type TypeResolvers } from "./fields.ts";
import { hasFreeBase } from "./held-refs.ts";
import { baseRef, headRef } from "./refs.ts";

const below = (page: string): TypeResolvers => ({
  [`${page}Url`]: ({ rest: { html_url } }) => `${html_url}/${page}`,
  [`${page}ResourcePath`]: ({ rest: { html_url } }) => pathnameOf(`${html_url}/${page}`),
});

export const pullMerging: TypeResolvers = {
  canBeRebased: ({ rest: { rebaseable, state } }, _args, call) => {
    if (rebaseable === undefined || (rebaseable === null && state === "open")) call.lacks();
    return rebaseable === true;
  },
  mergeStateStatus: ({ rest: { mergeable_state, state } }, _args, call) => {
    if (mergeable_state == null || (mergeable_state === "unknown" && state === "open")) call.lacks();
    return enumValue(mergeable_state) ?? "UNKNOWN";
  },
  mergeCommit: ({ repositoryId, rest: { merged_at, merge_commit_sha } }) =>
    merged_at == null ? null : commitNode(repositoryId, merge_commit_sha),
  // REST shows the test merge and the merge under one key.
  potentialMergeCommit: ({ repositoryId, rest: { state, merge_commit_sha } }) =>
    state === "open" ? commitNode(repositoryId, merge_commit_sha) : null,
  autoMergeRequest: ({ repositoryId, rest: pull }, _args, call): Node | null => {
    const { auto_merge: asked } = pull;
    if (asked == null) return null;
    // REST and GraphQL may word the commit differently.
    call.lacks();
    return { kind: "AutoMergeRequest", repositoryId, rest: { ...objectOf(asked), pull } };
  },
  // No event and no route of REST tells of the queue. Only open pull requests wait in it, and only before a branch with a
  // rule.
  isInMergeQueue: async (node, _args, call, info) =>
    node.rest.state === "open" && !(await hasFreeBase(call, node)) ? fieldNotHeld(call, info, node.kind) : false,
  isMergeQueueEnabled: async (node, _args, call, info) =>
    (await hasFreeBase(call, node)) ? false : fieldNotHeld(call, info, node.kind),
  baseRef,
  headRef,
  ...below("checks"),
  ...below("revert"),
  // Only upstream knows which reviews are required.
  reviewDecision: notMirrored,
};

export const autoMerging: TypeResolvers = {
  commitBody: rest("commit_message"),
  commitHeadline: rest("commit_title"),
  enabledBy: ({ rest: { enabled_by } }) => actorOf(enabled_by),
  mergeMethod: ({ rest: { merge_method } }) => enumValue(merge_method),
  pullRequest: ({ repositoryId, rest: { pull } }): Node => ({
    kind: "PullRequest",
    repositoryId,
    rest: objectOf(pull),
  }),
};
