import { and, count, eq, like } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { escapeLike, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Json } from "../../json.ts";
import { afterLag, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { observe, overruling, requireRepository } from "../../mirror/store/observation.ts";
import { enqueueBackfill, orLater } from "../../queues/queues.ts";
import { issueTransfers, repositories, repositorySyncs } from "../../schema.ts";
import { forgetProgress } from "./backfill-progress.ts";
import { moveToBackfill, yieldNames } from "./state.ts";

/** Why a repository is to be mirrored: a selection, or an installation of the App on it. */
export type Reason = { pattern: string } | "installed";

/**
 * Begins to mirror a repository that upstream shows, unless it is mirrored already or the selection was removed
 * meanwhile.
 */
export async function beginMirroring(ctx: Context, representation: Json, seenAt: Date, reason: Reason): Promise<void> {
  const { id: repositoryId, fullName } = requireRepository(representation);
  const isNew = await ctx.db.transaction(async (tx) => {
    if (reason !== "installed" && !(await holdSelection(tx, reason.pattern))) return false;
    const isNamed = reason !== "installed" && !reason.pattern.endsWith("/*");
    if (!isNamed && (await isExcepted(tx, repositoryId, fullName))) return false;
    const at = { api: ctx.config.upstreamUrl, seenAt, read: true };
    // Until now others' webhooks may have shown anything of it.
    await mergeObserved(
      tx,
      overruling(observe("repository", representation, at), ({ key }) => key === repositoryId),
    );
    const isNew = await moveToBackfill(tx, repositoryId, { isNamed, selectedAt: ctx.clock.now() });
    // The name may have led here by way of another that the repository has by now.
    const names = isNamed ? [fullName, reason.pattern] : [fullName];
    const former = await yieldNames(tx, { id: repositoryId, names });
    const askedAt = ctx.clock.now();
    await storeMarks(
      tx,
      former.map(({ id, isPaused }) => {
        // One that is paused may be gone: what a replica shows that lags is not believed.
        const notBefore = isPaused ? afterLag(askedAt) : askedAt;
        return { kind: "repository", repositoryId: 0, key: id, askedAt, notBefore };
      }),
    );
    tx.touch([repositoryId, ...former.map(({ id }) => id)]);
    if (isNew) {
      await forgetProgress(tx, repositoryId);
      // Until now others' webhooks may have told where its issues went.
      await tx.delete(issueTransfers).where(eq(issueTransfers.repositoryId, repositoryId));
    }
    return isNew;
  });
  if (!isNew) return;
  const rank = await countBackfills(ctx, fullName);
  await orLater(ctx, { backfill: repositoryId }, () => enqueueBackfill(ctx, { repositoryId }, { rank }));
}

/** Whether the selection still exists. The lock on its row makes a removal wait for the end of the transaction. */
async function holdSelection(tx: Transaction, pattern: string): Promise<boolean> {
  return (await tx.count(sql`select from selections where pattern = ${pattern} for key share`)) > 0;
}

/**
 * Whether an exception names the repository, or named it when it was first seen: whoever renames it at upstream ends no
 * exception. What is seen under the name from then on is excepted, too.
 */
async function isExcepted(tx: Transaction, repositoryId: number, fullName: string): Promise<boolean> {
  await tx.query(sql`
    update selections set excepted_id = ${repositoryId}
      where pattern = '!' || folded(${fullName}) and excepted_id is null`);
  return (
    (await tx.count(sql`
      select from selections where pattern = '!' || folded(${fullName})
        or excepted_id = ${repositoryId} for key share`)) > 0
  );
}

/** How many backfills of the account's repositories are under way or wait, this one included. */
async function countBackfills({ db }: Pick<Context, "db">, fullName: string): Promise<number> {
  const ofAccount = `${escapeLike(fullName.split("/")[0]?.toLowerCase() ?? "")}/%`;
  const [row] = await db
    .select({ count: count() })
    .from(repositorySyncs)
    .innerJoin(repositories, eq(repositories.id, repositorySyncs.repositoryId))
    .where(and(eq(repositorySyncs.state, "backfilling"), like(sql`folded(${repositories.fullName})`, ofAccount)));
  return Math.max(1, row?.count ?? 1);
}
