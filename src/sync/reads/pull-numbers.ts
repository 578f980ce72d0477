import { and, eq, isNotNull, isNull, type SQL } from "drizzle-orm";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { pullRequests } from "../../schema.ts";

/** Whether a pull request is of the repository, and the mirror shows it. */
export function isShownOf({ id }: Pick<MirroredRepository, "id">): SQL | undefined {
  return and(eq(pullRequests.repositoryId, id), isNotNull(pullRequests.id), isNull(pullRequests.deletedAt));
}

/** The lowest numbers of the pull requests that meet these conditions. */
export async function findPullNumbers(
  { db }: Pick<Context, "db">,
  conditions: readonly (SQL | undefined)[],
  limit: number,
): Promise<number[]> {
  const rows = await db
    .select({ number: pullRequests.number })
    .from(pullRequests)
    .where(and(...conditions))
    .orderBy(pullRequests.number)
    .limit(limit);
  return rows.map(({ number }) => number);
}
