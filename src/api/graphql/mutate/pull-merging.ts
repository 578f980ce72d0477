/** What a pull request says of its commits and of being merged. */
import { objectOf } from "../../../json.ts";
import type { GraphqlCall, Node } from "../call.ts";
import { typedError } from "../errors.ts";
import { heldConnection, type PageArguments, pageRequest } from "../resolve/connection.ts";
import { enumValue, notMirrored, onceRead, type Resolver, type TypeResolvers } from "../resolve/fields.ts";
import type { FieldInfo } from "../run/plan.ts";

const commit = (repositoryId: number, oid: unknown): Node | null =>
  typeof oid === "string" ? { kind: "Commit", repositoryId, rest: { oid } } : null;

/** REST shows only the number of a pull request's commits, and the last one. */
const commits: Resolver = (node, args: PageArguments, call: GraphqlCall, info: FieldInfo) => {
  const totalCount = () => onceRead("commits")(node, args, call, info);
  const isLast = args.last === 1 && args.first == null && !args.before;
  if (!isLast) {
    pageRequest(info, args, () => null);
    const refused = () => {
      call.lacks();
      throw typedError(
        "UNPROCESSABLE",
        "Of the commits of a pull request only their number and the last one are mirrored: ask for `commits(last: 1)`.",
      );
    };
    return { totalCount, nodes: refused, edges: refused, pageInfo: refused };
  }
  const last: Node = { kind: "PullRequestCommit", repositoryId: node.repositoryId, rest: node.rest };
  const connection = heldConnection(info, args, [last], { keyOf: () => String(objectOf(node.rest.head).sha) });
  const pageInfo = async () => ({ ...(await connection.pageInfo()), hasPreviousPage: Number(totalCount()) > 1 });
  return { ...connection, totalCount, pageInfo };
};

export const pullMerging: TypeResolvers = {
  commits,
  mergeStateStatus: ({ rest: { mergeable_state, state } }, _args, call) => {
    if (mergeable_state == null || (mergeable_state === "unknown" && state === "open")) call.lacks();
    return enumValue(mergeable_state) ?? "UNKNOWN";
  },
  mergeCommit: ({ repositoryId, rest: { merged_at, merge_commit_sha } }) =>
    merged_at == null ? null : commit(repositoryId, merge_commit_sha),
  // REST shows both under one key.
  potentialMergeCommit: ({ repositoryId, rest: { state, merge_commit_sha } }) =>
    state === "open" ? commit(repositoryId, merge_commit_sha) : null,
  // Only upstream knows whether the branch still exists, and what it asks of changes to it.
  baseRef: notMirrored,
  reviewDecision: notMirrored,
};

export const commitOfPull: TypeResolvers = {
  commit: ({ repositoryId, rest: { head } }) => commit(repositoryId, objectOf(head).sha),
  pullRequest: (node) => ({ ...node, kind: "PullRequest" }),
};
