import { eq } from "drizzle-orm";
import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { backfillPhases } from "../../schema.ts";

/** Forgets how far the repository's backfill came, so that the next one reads every page again (conditionally). */
export async function forgetProgress(tx: Transaction, repositoryId: number): Promise<void> {
  await tx.delete(backfillPhases).where(eq(backfillPhases.repositoryId, repositoryId));
}

/** Lets a backfill read the details of all pull requests, unless it has read them to the end. */
export async function restartReviews(tx: Transaction, repositoryId: number): Promise<void> {
  await tx.query(sql`
    update backfill_phases set cursor = null
      where repository_id = ${repositoryId} and phase = 'reviews' and finished_at is null`);
}
