import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Mark, marksForConflicts, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { classifyFailure } from "../problems/causes.ts";
import { fetchAndStoreReviewLists } from "./pages.ts";
import { readAnew } from "./read-anew.ts";

/**
 * Reads and stores what GraphQL cannot show of these pull requests: details and reviews, two requests each. One that
 * REST cannot show either delays no other: a mark asks for it later, and says in words why it fails.
 */
export async function fetchAndStorePullsByRest(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  priority: Priority,
): Promise<void> {
  for (const number of numbers) {
    try {
      const outcome = await fetchAndStorePull(ctx, repository, number, priority);
      if (outcome === "merged") await fetchAndStoreReviewLists(ctx, repository, [number], priority);
    } catch (error) {
      const failure = classifyFailure(error);
      if (failure.kind !== "failed" || failure.cause !== "unavailable") throw error;
      ctx.log.warn({ repository: repository.fullName, number, err: error }, "A pull request is read later");
      const now = ctx.clock.now();
      const mark: Mark = {
        kind: "pull_request",
        repositoryId: repository.id,
        key: number,
        askedAt: now,
        notBefore: now,
      };
      await whileMirrored(ctx, repository, (tx) => storeMarks(tx, [mark]));
      await enqueueMarks(ctx, [mark]);
    }
  }
}

/**
 * Reads and stores one pull request as REST shows it alone: with its sizes, its merger and its mergeability. "kept":
 * upstream does not show it, which proves nothing.
 */
export async function fetchAndStorePull(
  ctx: Context,
  repository: MirroredRepository,
  number: number,
  priority: Priority,
): Promise<"merged" | "deleted" | "kept"> {
  const wanted = { kind: "pull_request", repositoryId: repository.id, key: number } as const;
  const path = `/repositories/${repository.id}/pulls/${number}`;
  const { observed, outcome } = await readAnew(ctx, wanted, repository, path, { priority });
  let marks: Mark[] = [];
  await whileMirrored(ctx, repository, async (tx) => {
    marks = marksForConflicts(await mergeObserved(tx, observed), ctx.clock.now());
    await storeMarks(tx, marks);
  });
  await enqueueMarks(ctx, marks);
  return outcome;
}
