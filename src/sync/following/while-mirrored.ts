import type { Transaction } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { InterruptedError, RemovedError } from "../problems/errors.ts";
import { findMirrored } from "./state.ts";

/**
 * Ends a job between two pages, where it can go on later.
 * @throws InterruptedError once `signal` is aborted
 * @throws RemovedError once the repository is removed: nothing more is asked of upstream for it
 */
export async function mayGoOn(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  { job, signal }: { job: string; signal: AbortSignal },
): Promise<void> {
  if (signal.aborted)
    throw new InterruptedError(`The ${job} of ${repository.fullName} stops before the next page`, {
      cause: signal.reason,
    });
  await refuseRemoved(ctx, repository);
}

/** @throws RemovedError once the repository is removed */
export async function refuseRemoved({ db }: Pick<Context, "db">, { id, fullName }: MirroredRepository): Promise<void> {
  if (!(await findMirrored(db, [id])).has(id)) throw new RemovedError(`${fullName} was removed`);
}

/**
 * One transaction that stores what a job has read of a repository. It locks the repository's row first. So a removal
 * waits for the end, and a purge then finds every stored row.
 * @throws RemovedError when a removal came first; nothing is stored
 */
export async function whileMirrored<T>(
  { db }: Pick<Context, "db">,
  { id, fullName }: MirroredRepository,
  store: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return await db.transaction(async (tx) => {
    // Not `for share`: two transactions that share the row and then both move a watermark would deadlock.
    const mirrored = await tx.prepared(
      sql`select from repository_syncs s where s.repository_id = ${id} and ${MIRRORED} for no key update`,
    );
    if (mirrored.length === 0) throw new RemovedError(`${fullName} was removed`);
    return await store(tx);
  });
}
