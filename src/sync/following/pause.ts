import type { Transaction } from "../../../db/database.ts";
import type { FollowedState } from "../../../db/schema/states.ts";
import type { Context } from "../../context.ts";
import { afterLag, type Mark, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import type { Seen } from "../../mirror/store/observation.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { confirmAbsence, moveAll } from "./state.ts";

/** `problem`: the reason, in words. */
interface Pause {
  from: readonly FollowedState[];
  problem: string;
}

/**
 * Pauses repositories that upstream does not show us at the moment, and returns those that it paused. It is then
 * unknown who may see them: what was hidden, what was deleted and what only we lost look the same. So they are taken
 * for private, unless PAUSED_REPOSITORIES says otherwise, until a read shows what they are.
 */
export async function pauseWithin(
  { config, clock }: Pick<Context, "config" | "clock">,
  tx: Transaction,
  repositoryIds: readonly number[],
  { from, problem }: Pause,
): Promise<number[]> {
  const paused = await moveAll(tx, repositoryIds, { from, to: "paused", problem });
  if (config.hidesPaused) {
    const seen = paused.map((id) => seenOf(id, clock.now(), "hidden"));
    await mergeObserved(tx, { seen, shapes: new Map() });
  }
  return paused;
}

/** The same, in a transaction of its own. */
export async function pause(
  ctx: Pick<Context, "config" | "clock" | "db">,
  repositoryIds: readonly number[],
  reason: Pause,
): Promise<void> {
  await ctx.db.transaction((tx) => pauseWithin(ctx, tx, repositoryIds, reason));
}

/**
 * Upstream was asked, and does not show the repository. It is gone if a webhook called it deleted, or another has its
 * name. Otherwise it pauses.
 */
export async function endOrPause(
  ctx: Pick<Context, "config" | "clock" | "db">,
  repositoryId: number,
  reason: Pause,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const absence = await confirmAbsence(tx, repositoryId);
    if (absence === "deleted")
      await mergeObserved(tx, { seen: [seenOf(repositoryId, ctx.clock.now(), "deleted")], shapes: new Map() });
    if (absence === null) await pauseWithin(ctx, tx, [repositoryId], reason);
    else tx.touch([repositoryId]);
  });
}

/**
 * A single 404 may be false: of a replica that lags, or of a server that fails. The repository is hidden all the same,
 * since it may be private now. A refresh asks again after the replicas' lag, and a shown repository is live again.
 */
export async function askSoon(ctx: Context, key: number): Promise<void> {
  const askedAt = ctx.clock.now();
  const mark: Mark = { kind: "repository", repositoryId: 0, key, askedAt, notBefore: afterLag(askedAt) };
  await ctx.db.transaction((tx) => storeMarks(tx, [mark]));
  await enqueueMarks(ctx, [mark]);
}

/** The repository as it is to be merged: taken for private, or deleted. */
function seenOf(id: number, at: Date, how: "hidden" | "deleted"): Seen {
  return {
    kind: "repository",
    repositoryId: 0,
    key: id,
    fields: how === "hidden" ? { private: true, visibility: "private" } : {},
    // Stamped like a delivery, so that the next read of the repository is unconditional and decides.
    stamp: { updatedAt: at.getTime(), seenAt: at.getTime(), read: false },
    deleted: how === "deleted",
    extent: "partial",
  };
}
