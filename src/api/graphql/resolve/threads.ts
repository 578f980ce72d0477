/** The threads of review comments: the comments of each, and whether the thread is resolved. */

import { countHeldLists, threadComments, threadSource } from "../../../mirror/read/lists.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { type PageArguments, pageRequest, storedConnection } from "./connection.ts";
import { enumValue, nodeId, ofRepository, type Resolver, rest, type TypeResolvers } from "./fields.ts";

/** The threads of a pull request. Upstream answers if the mirror does not hold them all. */
export const pullThreads: Resolver = async (
  { repositoryId, rest: { number } },
  args: PageArguments,
  call: GraphqlCall,
  info: FieldInfo,
) => {
  const parent = { r: repositoryId, n: Number(number) };
  type Place = { repositoryId: number; number: number };
  const held = await call
    .loader<Place, number | null>("held threads", (places, db) => countHeldLists(db, "threads", places))
    .load({ repositoryId, number: parent.n });
  if (held !== null)
    return storedConnection(call, info, args, { kind: "PullRequestReviewThread", source: threadSource, parent });
  pageRequest(info, args, (cursor) => cursor);
  throw await lackingThreads(call, repositoryId);
};

async function lackingThreads(call: GraphqlCall, repositoryId: number): Promise<Error> {
  call.lacks();
  const repository = await call.ctx.mirror.repositories.byId(repositoryId, call.access);
  return repository?.mirrors.includes("threads")
    ? typedError(
        call.isForMirror ? "NOT_YET" : "UNPROCESSABLE",
        "The review threads of this pull request are not mirrored yet.",
      )
    : typedError("UNPROCESSABLE", "The review threads of this pull request are not mirrored.");
}

export const threadResolvers: Readonly<Record<string, TypeResolvers>> = {
  PullRequestReviewThread: {
    ...ofRepository,
    id: nodeId,
    pullRequest: async ({ repositoryId, rest: { pull_number: number } }, _args, call) => {
      const pull = await call.numbered("PullRequest", repositoryId, Number(number));
      if (!pull) throw typedError("NOT_FOUND", "Could not resolve to a PullRequest.");
      return pull;
    },
    path: rest("path"),
    line: rest("line"),
    startLine: rest("start_line"),
    originalLine: rest("original_line"),
    originalStartLine: rest("original_start_line"),
    diffSide: rest("diff_side"),
    startDiffSide: rest("start_diff_side"),
    subjectType: ({ rest: { subject_type } }) => enumValue(subject_type),
    isResolved: rest("is_resolved"),
    isOutdated: rest("is_outdated"),
    isCollapsed: rest("is_collapsed"),
    resolvedBy: ({ rest: { resolved_by } }): Node | null => {
      const actor = actorOf(resolved_by);
      return actor?.kind === "User" ? actor : null;
    },
    comments: ({ repositoryId, rest: { root_id: root } }, args: PageArguments, call, info) =>
      storedConnection(call, info, args, {
        kind: "PullRequestReviewComment",
        source: threadComments,
        parent: { r: repositoryId, n: Number(root) },
      }),
  },
};
