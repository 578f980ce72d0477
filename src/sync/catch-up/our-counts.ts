import { eq } from "drizzle-orm";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { sweeps } from "../../schema.ts";
import type { OurCounts } from "./list-ends.ts";

/**
 * The counts that the row `w` of `sweeps` keeps, as JSON; null: something of the repository has changed since they were
 * taken.
 */
export const keptCounts = sql`(select w.ours from revisions v where v.repository_id = w.repository_id and v.revision = w.ours_revision)`;

/**
 * Counts our rows of each list, without those that some replica of upstream may not know yet. It reads all of the
 * repository's rows. So the counts are kept at once: a sweep that has to wait before it can ask upstream does not count
 * again.
 */
export async function countAndStoreOurs(
  { db, clock }: Pick<Context, "db" | "clock">,
  repositoryId: number,
): Promise<OurCounts> {
  const now = clock.now();
  const isSettled = seenBefore(sql`seen_at`, { readAt: now, now });
  const count = (table: string, more: SQL = sql``) => sql`(
    select array[count(*) filter (where ${isSettled}), count(*)] from ${sql.identifier(table)}
      where repository_id = ${repositoryId} and deleted_at is null ${more})`;
  type Pair = [settled: number, all: number];
  const [row] = await db.query<Record<keyof OurCounts, Pair> & { revision: number | null }>(sql`
    select ${count("labels")} as labels, ${count("milestones")} as milestones,
      ${count("issues", sql`and id is not null`)} as issues, ${count("issue_comments")} as comments,
      ${count("pull_request_review_comments")} as "reviewComments",
      (select revision from revisions where repository_id = ${repositoryId}) as revision`);
  if (!row) throw new Error("Postgres answered no row to a question for one");
  const { revision, ...pairs } = row;
  const { labels, milestones, issues, comments, reviewComments } = pairs;
  const ours = {
    labels: labels[0],
    milestones: milestones[0],
    issues: issues[0],
    comments: comments[0],
    reviewComments: reviewComments[0],
  };
  // While some rows are not settled, the counts will soon grow without a change. Such counts belong to no revision.
  const keptAt = Object.values(pairs).every(([settled, all]) => settled === all) ? revision : null;
  await db
    .update(sweeps)
    .set({ ours: JSON.stringify(ours), oursRevision: keptAt })
    .where(eq(sweeps.repositoryId, repositoryId));
  return ours;
}
