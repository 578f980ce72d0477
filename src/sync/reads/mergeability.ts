import { eq, gt } from "drizzle-orm";
import type { Queries, Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { IS_MERGEABILITY_UNKNOWN } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { pullRequests } from "../../schema.ts";
import { inBearableSize, mostOf } from "../../upstream/client/bearable-sizes.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { PullsNotShownError } from "../problems/errors.ts";
import { graphqlOrRest } from "./beyond-graphql.ts";
import { readMergeability, readSinglePulls } from "./graphql-pulls.ts";
import { findPullNumbers } from "./pull-numbers.ts";
import { MERGEABILITY_FIELDS, observeMergeability } from "./pull-observations.ts";
import { fetchAndStorePull } from "./pulls-by-rest.ts";

/** Which open pull requests to ask about, and how. */
interface MergeabilityScope {
  /** Only pull requests seen since then; null: all. */
  heardSince: Date | null;
  priority: Priority;
  signal?: AbortSignal;
}

/** Asks again about the open pull requests whose mergeability is unknown. */
export async function fetchAndStoreMergeability(
  ctx: Context,
  repository: MirroredRepository,
  asking: MergeabilityScope,
): Promise<void> {
  for (let after: number | null = 0; after !== null; )
    after = await fetchAndStoreMergeabilityAfter(ctx, repository, { ...asking, after }, async () => {});
}

/** Whether nothing is left to ask of a repository's open pull requests. */
export async function isMergeabilityKnown(db: Queries, repositoryId: number): Promise<boolean> {
  const unknown = await db.count(sql`
    select from pull_requests where repository_id = ${repositoryId} and ${IS_MERGEABILITY_UNKNOWN} limit 1`);
  return unknown === 0;
}

/**
 * Upstream works out mergeability only when it is asked, and then it takes a while. Asks again about the open pull
 * requests that it did not know of.
 *
 * One query, about pull requests numbered above `after`. Answers the last number that was asked about; null when none
 * was left. `remember` gets that number in the transaction that stores the answer.
 */
export async function fetchAndStoreMergeabilityAfter(
  ctx: Context,
  repository: MirroredRepository,
  { after, heardSince, ...read }: MergeabilityScope & { after: number },
  remember: (tx: Transaction, last: number) => Promise<void>,
): Promise<number | null> {
  const wanted = [
    eq(pullRequests.repositoryId, repository.id),
    gt(pullRequests.number, after),
    IS_MERGEABILITY_UNKNOWN,
    heardSince === null ? undefined : gt(pullRequests.seenAt, heardSince),
  ];
  const unknown = await findPullNumbers(ctx, wanted, mostOf("mergeability"));
  const [next] = unknown;
  if (next === undefined) return null;
  const one = async () => {
    if ((await fetchAndStorePull(ctx, repository, next, read.priority)) === "kept")
      throw new PullsNotShownError(`Upstream shows no pull requests of ${repository.fullName}`);
    await whileMirrored(ctx, repository, (tx) => remember(tx, next));
    return next;
  };
  const sizes = { repositoryId: repository.id, query: "mergeability", atMost: unknown.length } as const;
  const some = () =>
    inBearableSize(ctx, sizes, async (size) => {
      const numbers = unknown.slice(0, size);
      const last = numbers.at(-1) ?? next;
      const page = await readSinglePulls(
        ctx,
        repository,
        numbers,
        { fields: MERGEABILITY_FIELDS, readPull: readMergeability },
        read,
      );
      for (const number of page.inPart) await fetchAndStorePull(ctx, repository, number, read.priority);
      await whileMirrored(ctx, repository, async (tx) => {
        await mergeObserved(tx, observeMergeability(ctx, repository, page.pulls, page.seenAt));
        await remember(tx, last);
      });
      return last;
    });
  return await graphqlOrRest(ctx, some, one);
}
