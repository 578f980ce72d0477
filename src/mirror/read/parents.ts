import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";

/** Whether the number names a pull request that is mirrored. */
export async function isMirroredPull(db: Database, repositoryId: number, number: number): Promise<boolean> {
  const statement = new Statement();
  const rows = await statement.rows(
    db,
    `select from pull_requests p where p.repository_id = ${statement.value(repositoryId)} and p.number = ${statement.value(number)}`,
  );
  return rows.length > 0;
}

const PARENTS = {
  issue_comment: { table: "issue_comments", column: "issue_number" },
  review_comment: { table: "pull_request_review_comments", column: "pull_number" },
} as const;

/** The number of the issue or pull request that a comment stands under; null: the comment is not mirrored. */
export async function findParentNumber(
  db: Database,
  kind: keyof typeof PARENTS,
  repositoryId: number,
  id: number,
): Promise<number | null> {
  const { table, column } = PARENTS[kind];
  const statement = new Statement();
  const [row] = await statement.rows<{ number: number | null }>(
    db,
    `select c.${column} as number from ${table} c where c.repository_id = ${statement.value(repositoryId)} and c.id = ${statement.value(id)}`,
  );
  return row?.number ?? null;
}
