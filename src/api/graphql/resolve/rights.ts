/** Checks the caller's rights to the contents of a repository. */
import { hasWhereSeen, type Right, sees } from "../../../mirror/read/sight.ts";
import { type CodeRight, notAccessible, readsCode } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call.ts";
import { notGiven, typedError } from "../errors.ts";
import type { Node } from "../node.ts";
import { requireShownRepository } from "./fields.ts";

/** Requires this right. @throws GraphQLError FORBIDDEN; NOT_FOUND for a repository that the caller does not see */
async function requireRight(call: GraphqlCall, repositoryId: number, right: Right): Promise<void> {
  const { rest } = await requireShownRepository(call, repositoryId);
  const isSeen = sees(call.sight, { id: repositoryId, isPrivate: rest.private === true }, right);
  if (!isSeen) throw notGiven(notAccessible(call.caller));
}

/**
 * Whether the caller may read all these resources of commits. False: only upstream knows.
 * @throws GraphQLError FORBIDDEN to our own tokens that may not
 */
export async function readsCodeOf(
  call: GraphqlCall,
  repositoryId: number,
  ...rights: readonly CodeRight[]
): Promise<boolean> {
  const { rest } = await requireShownRepository(call, repositoryId);
  const { caller, sight } = call;
  const repository = { id: repositoryId, isPrivate: rest.private === true };
  if (rights.every((right) => readsCode(caller, sight, repository, right))) return true;
  if (caller.by.of === "own") throw notGiven(notAccessible(caller));
  return false;
}

/** Runs `show` for callers who have the right. Most callers have it in every repository that they see. */
export function withRight<Shown>(
  call: GraphqlCall,
  { repositoryId, right }: { repositoryId: number; right: Right },
  show: () => Shown | Promise<Shown>,
): Shown | Promise<Shown> {
  return hasWhereSeen(call.sight, right) ? show() : requireRight(call, repositoryId, right).then(show);
}

/** The node, if the caller may read it. Its repository is one that they see. @throws GraphQLError FORBIDDEN */
export async function given(call: GraphqlCall, node: Node): Promise<Node> {
  if (hasWhereSeen(call.sight, "issues") && hasWhereSeen(call.sight, "pulls")) return node;
  const right = await rightFor(call, node);
  if (right !== "metadata") await requireRight(call, node.repositoryId, right);
  return node;
}

/** The right that a node takes besides sight of its repository, if the node lies in one. */
export async function rightFor(call: GraphqlCall, node: Node): Promise<Right> {
  const { kind, repositoryId, rest } = node;
  switch (kind) {
    case "Issue":
      // An issue may be the issue side of a pull request.
      return rest.pull_request == null ? "issues" : "pulls";
    case "PullRequest":
    case "PullRequestReview":
    case "PullRequestReviewComment":
      return "pulls";
    case "Label":
    case "Milestone":
      return "issues or pulls";
    case "IssueComment": {
      const number = Number(String(rest.issue_url).split("/").at(-1));
      const parent =
        (await call.numbered("Issue", repositoryId, number)) ??
        (await call.numbered("PullRequest", repositoryId, number));
      if (!parent) throw typedError("NOT_FOUND", "Could not resolve to an issue or pull request.");
      return rightFor(call, parent);
    }
    default:
      return "metadata";
  }
}
