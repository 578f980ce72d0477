import type { Database } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { escapeLike, sql } from "../../../db/sql.ts";
import { forgetValidatorsLike } from "../../upstream/conditional/validators.ts";
import { forgetProblems } from "../problems/problems.ts";
import { remove } from "./state.ts";

/**
 * Deletes a selection and stops mirroring the repositories that it names. Their rows are kept but no longer served;
 * `purge` deletes them in batches. Returns the repositories' full names. Empty: nothing of that name is mirrored.
 */
export async function removeSelection(
  { db }: { db: Database },
  pattern: string,
  { purge }: { purge: boolean },
): Promise<string[]> {
  const name = pattern.toLowerCase();
  const like = name.endsWith("/*") ? `${escapeLike(name.slice(0, -1))}%` : escapeLike(name);
  const removed = await db.transaction(async (tx) => {
    // The selection is deleted first. So the query below also finds a repository that is just being begun for it: see
    // `holdSelection`.
    await tx.query(sql`delete from selections where pattern = ${name}`);
    await forgetProblems(tx, { task: "select", keys: [name] });
    const rows = await tx.query<{ id: string; full_name: string }>(sql`
      select r.id, r.full_name from repositories r join repository_syncs s on s.repository_id = r.id
        where folded(r.full_name) like ${like} and (${purge}::boolean or ${MIRRORED}) order by r.id`);
    const found = rows.map(({ id, full_name }) => ({ id: Number(id), fullName: full_name }));
    const ids = found.map(({ id }) => id);
    await remove(tx, ids);
    return found;
  });
  if (purge) for (const { id } of removed) await purgeRepository(db, id);
  return removed.map(({ fullName }) => fullName);
}

const BY_REPOSITORY = [
  "issue_labels",
  "issue_assignees",
  "issue_comments",
  "pull_request_review_comments",
  "pull_request_reviews",
  "pull_requests",
  "issues",
  "check_runs",
  "check_suites",
  "commit_statuses",
  "checked_commits",
  "mirrored_lists",
  "pull_request_commits",
  "pull_request_files",
  "pull_request_threads",
  "releases",
  "release_lists",
  "refs",
  "ref_lists",
  "labels",
  "milestones",
  "backfill_phases",
  "refresh_marks",
  "audits",
  "audit_pages",
  "sweeps",
  "hook_checks",
  "problems",
  "graphql_sizes",
  "repository_syncs",
] as const;
const PURGE_BATCH = 5_000;

async function purgeRepository(db: Database, repositoryId: number): Promise<void> {
  for (const name of BY_REPOSITORY) {
    const table = sql.identifier(name);
    // In batches, since one statement over millions of rows would hold its locks for minutes. A `ctid` is unique only
    // within its partition: without the repository's id, rows of other repositories would be deleted.
    for (let deleted = PURGE_BATCH; deleted === PURGE_BATCH; )
      deleted = await db.count(sql`delete from ${table}
        where repository_id = ${repositoryId} and ctid = any(array(select ctid from ${table} where repository_id = ${repositoryId} limit ${PURGE_BATCH}))`);
  }
  // A validator says that its page is stored, and these pages are deleted.
  const path = `/repositories/${repositoryId}`;
  await forgetValidatorsLike(db, [path, `${path}/%`]);
  // Forks may show this repository as their parent, so its revision is raised.
  await db.transaction(async (tx) => {
    await tx.query(sql`delete from repositories where id = ${repositoryId}`);
    tx.touch([repositoryId]);
  });
}
