import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";

/** Whether the number names a pull request that is mirrored. */
export async function isMirroredPull(db: Database, repositoryId: number, number: number): Promise<boolean> {
  const rows = await db.prepared(sql`
    select from pull_requests p where p.repository_id = ${repositoryId} and p.number = ${number}`);
  return rows.length > 0;
}

const PARENTS = {
  issue_comment: { table: sql`issue_comments`, column: sql`issue_number` },
  review_comment: { table: sql`pull_request_review_comments`, column: sql`pull_number` },
};

/** The number of the issue or pull request that a comment stands under; null: the comment is not mirrored. */
export async function findParentNumber(
  db: Database,
  kind: keyof typeof PARENTS,
  repositoryId: number,
  id: number,
): Promise<number | null> {
  const { table, column } = PARENTS[kind];
  const [row] = await db.prepared<{ number: number | null }>(sql`
    select c.${column} as number from ${table} c where c.repository_id = ${repositoryId} and c.id = ${id}`);
  return row?.number ?? null;
}
