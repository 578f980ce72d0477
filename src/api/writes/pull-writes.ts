/** Writes about pull requests, reviews and review comments: what each sends, and what its success changes. */
import { type Json, objectOf, rowsOf, textOf } from "../../json.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { referenceId } from "../../kinds/contract/placeholders.ts";
import { keyIn, observe } from "../../mirror/store/observation.ts";
import { counts, type IssueAddress, openCount, type RepositoryAddress, readOf, sides } from "./issue-writes.ts";
import type { FollowUpRead } from "./read-back.ts";
import { bodyWithSeenHead } from "./seen-head.ts";
import type { Find, FindAll, Implied, Sayings, Write, Written } from "./write.ts";

/** Opens a pull request. It is listed among the issues too, under an id that only its issue's side tells. */
export function createPull({ id }: RepositoryAddress, body: string): Write {
  return {
    method: "POST",
    path: `/repositories/${id}/pulls`,
    body,
    checked: bodyWithSeenHead,
    about: [],
    reads: (answer) => [
      {
        ...readOf("issue", { id, number: keyIn("pull_request", answer) }),
        awaits: (issue) => objectOf(issue).pull_request !== undefined,
      },
    ],
    says: ({ answer, at }, find) => saysPull(answer, at, find),
  };
}

export function editPull(place: IssueAddress, body: string): Write {
  return {
    method: "PATCH",
    path: `/repositories/${place.id}/pulls/${place.number}`,
    body,
    about: sides({ ...place, isPull: true }),
    // Only the issue's side tells who closed it.
    reads: () => [readOf("issue", place)],
    says: ({ answer, at }, find) => saysPull(answer, at, find),
  };
}

async function saysPull(answer: Json, at: Written["at"], find: Find): Promise<Sayings> {
  const observed = observe("pull_request", answer, at);
  const shown = observed.seen.find(({ kind, extent }) => kind === "pull_request" && extent !== "partial");
  const issueSide = observed.seen.find(({ kind }) => kind === "issue");
  if (!shown || !issueSide) throw new Error("An observed pull request has lost itself");
  const before = (await find("issue", shown.key)) ?? (await find("pull_request", shown.key));
  const { pull_request: _address, ...common } = issueSide.fields;
  const implied: Implied[] = [
    { kind: "issue", key: shown.key, fields: common, movedAt: String(shown.fields.updated_at) },
    ...(await openCount(find, at, before?.fields, shown.fields)),
  ];
  return { shown: [observed], implied };
}

export function createReview(place: IssueAddress, body: string): Write {
  return writesReview(place, { method: "POST", below: "", body, sent: commentsOf(body) });
}

/** Ends a pending review; its comments are shown from then on. */
export function submitReview(place: IssueAddress, reviewId: number, body: string): Write {
  return writesReview(place, { method: "POST", below: `/${reviewId}/events`, body, sent: null });
}

export function dismissReview(place: IssueAddress, reviewId: number, body: string): Write {
  return writesReview(place, { method: "PUT", below: `/${reviewId}/dismissals`, body, sent: 0 });
}

/** Edits a review's text. Nothing else changes. */
export function editReview(place: IssueAddress, reviewId: number, body: string): Write {
  return {
    method: "PUT",
    path: `/repositories/${place.id}/pulls/${place.number}/reviews/${reviewId}`,
    body,
    about: [{ kind: "review", repositoryId: place.id, key: reviewId }],
    says: ({ answer, at }) => ({ shown: [observe("review", answer, at)] }),
  };
}

/** Deletes a review. Upstream allows that only for pending ones. */
export function deleteReview(place: IssueAddress, reviewId: number): Write {
  const review: ResourceKey = { kind: "review", repositoryId: place.id, key: reviewId };
  const path = `/repositories/${place.id}/pulls/${place.number}/reviews/${reviewId}`;
  return { method: "DELETE", path, body: null, about: [review], says: () => ({ gone: [review] }) };
}

/** Writes a review. `sent` counts the comments that come with it; null: as many as it had before. */
function writesReview(
  place: IssueAddress,
  { method, below, body, sent }: { method: "POST" | "PUT"; below: string; body: string; sent: number | null },
): Write {
  const pull = sides({ ...place, isPull: true });
  return {
    method,
    path: `/repositories/${place.id}/pulls/${place.number}/reviews${below}`,
    body,
    about: pull,
    // Only its author sees a pending review, so it changes nothing that others see.
    reads: (answer) =>
      isPendingReview(answer)
        ? []
        : [...pull.map(({ kind }) => readOf(kind, place)), ...reviewComments(place, answer, sent)],
    says: async ({ answer, at, between, doneBy, readBacks }, find, findAll) => {
      const shown = [observe("review", answer, at)];
      if (isPendingReview(answer)) return { shown };
      const { submitted_at, user } = objectOf(answer);
      const movedAt = method === "POST" ? textOf(submitted_at) : doneBy;
      const come = await unknownComments(findAll, readBacks);
      const implied = await counts(find, pull, "review_comments", { change: come, movedAt, between });
      return { shown, implied: await answered(find, place.number, implied, user) };
    },
  };
}

/** How many comments came with a review that the mirror has not heard of by a webhook already. */
async function unknownComments(findAll: FindAll, readBacks: Written["readBacks"]): Promise<number> {
  const comments = rowsOf(readBacks.find(({ kind }) => kind === "review_comment")?.body);
  const known = await findAll(
    "review_comment",
    comments.map(({ id }) => Number(id)),
  );
  return known.filter((stored) => stored === undefined).length;
}

/** Notes that a reviewer who was asked has answered. */
async function answered(find: Find, number: number, implied: Implied[], user: Json | undefined): Promise<Implied[]> {
  const asked = (await find("pull_request", number))?.fields.requested_reviewers;
  const { id } = objectOf(user);
  if (!Array.isArray(asked) || id === undefined) return implied;
  const requested_reviewers = asked.filter((one) => referenceId(one) !== id);
  if (requested_reviewers.length === asked.length) return implied;
  return implied.map((one) =>
    one.kind === "pull_request" ? { ...one, fields: { ...one.fields, requested_reviewers } } : one,
  );
}

function isPendingReview(answer: Json): boolean {
  return objectOf(answer).state === "PENDING";
}

/** Reads a review's comments. They belong to the write, but its answer does not show them. */
function reviewComments({ id, number }: IssueAddress, answer: Json, sent: number | null): FollowUpRead[] {
  if (sent === 0) return [];
  const path = `/repositories/${id}/pulls/${number}/reviews/${objectOf(answer).id}/comments?per_page=100`;
  return [
    { kind: "review_comment", key: 0, path, awaits: (list) => Array.isArray(list) && list.length >= (sent ?? 0) },
  ];
}

function commentsOf(body: string): number {
  const { comments } = objectOf(JSON.parse(body));
  return Array.isArray(comments) ? comments.length : 0;
}
