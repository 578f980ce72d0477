/** Writes about comments, in a conversation or on a diff: what each sends, and what its success changes. */
import { objectOf, textOf } from "../../json.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { findParentNumber } from "../../mirror/read/comments.ts";
import { keyIn, observe } from "../../mirror/store/observation.ts";
import type { ApiContext } from "../call/call.ts";
import { counts, type IssueAddress, issuePlace, type RepositoryAddress, sides } from "./issue-writes.ts";
import type { Write } from "./write.ts";

/** Where upstream has the comments of a kind, and the count of them that their parent shows. */
const COMMENTS = {
  issue_comment: { of: "issues", count: "comments" },
  review_comment: { of: "pulls", count: "review_comments" },
} as const;

type WrittenComment = keyof typeof COMMENTS;

export function createComment(place: IssueAddress, body: string): Write {
  return created("issue_comment", place, { below: "", body });
}

/**
 * Writes a review comment. `below` is empty, or `/id/replies`. Upstream makes a review around a comment that stands
 * alone.
 */
export function createReviewComment(place: IssueAddress, below: string, body: string): Write {
  return {
    ...created("review_comment", { ...place, isPull: true }, { below, body }),
    reads: (answer) => {
      const review = objectOf(answer).pull_request_review_id;
      if (typeof review !== "number") return [];
      return [
        { kind: "review", key: review, path: `/repositories/${place.id}/pulls/${place.number}/reviews/${review}` },
      ];
    },
  };
}

function created(kind: WrittenComment, place: IssueAddress, { below, body }: { below: string; body: string }): Write {
  const { of, count } = COMMENTS[kind];
  return {
    method: "POST",
    path: `/repositories/${place.id}/${of}/${place.number}/comments${below}`,
    body,
    about: sides(place),
    says: async ({ answer, at, between }, find) => {
      const isNew = !(await find(kind, keyIn(kind, answer)));
      const movedAt = textOf(objectOf(answer).created_at);
      const implied = await counts(find, sides(place), count, { change: isNew ? 1 : 0, movedAt, between });
      return { shown: [observe(kind, answer, at)], implied };
    },
  };
}

export function editComment(kind: WrittenComment, { id }: RepositoryAddress, commentId: number, body: string): Write {
  return {
    method: "PATCH",
    path: `/repositories/${id}/${COMMENTS[kind].of}/comments/${commentId}`,
    body,
    about: [{ kind, repositoryId: id, key: commentId }],
    says: ({ answer, at }) => ({ shown: [observe(kind, answer, at)] }),
  };
}

/** Deletes a comment. What it stands under counts one less, if the mirror knows the comment. */
export async function deleteComment(
  ctx: Pick<ApiContext, "db">,
  kind: WrittenComment,
  { id }: RepositoryAddress,
  commentId: number,
): Promise<Write> {
  const { of, count } = COMMENTS[kind];
  const number = await findParentNumber(ctx.db, kind, id, commentId);
  const parents = number === null ? [] : sides(await issuePlace(ctx, { id }, number));
  const comment: ResourceKey = { kind, repositoryId: id, key: commentId };
  return {
    method: "DELETE",
    path: `/repositories/${id}/${of}/comments/${commentId}`,
    body: null,
    about: [comment],
    says: async ({ between }, find) => {
      const stored = await find(kind, commentId);
      const change = stored && stored.deletedAt === null ? -1 : 0;
      const implied = await counts(find, parents, count, { change, movedAt: null, between });
      return { gone: [comment], implied: implied.map((one) => ({ ...one, isGuess: true })) };
    },
  };
}
