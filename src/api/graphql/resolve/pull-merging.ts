/** What a pull request shows about being merged. */
import { commitNode, enumValue, notMirrored, type TypeResolvers } from "./fields.ts";

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
  // Only upstream knows whether the branch still exists, and which reviews it requires.
  baseRef: notMirrored,
  reviewDecision: notMirrored,
};
