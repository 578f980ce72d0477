import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, type Sql, sql } from "../../../db/sql.ts";

/** A comment on an issue, a comment on a diff, or a review. */
export interface CommentRow {
  id: number;
  document: string;
  body: string | null;
  /** Null for reviews: REST shows no such time for them. */
  updatedAt: Date | null;
}

/** The table of each kind of comment, and the column with the number that the comment belongs to. */
const TABLES = {
  issue_comment: { table: sql`issue_comments`, parent: sql`c.issue_number`, updated: sql`c.updated_at` },
  review_comment: { table: sql`pull_request_review_comments`, parent: sql`c.pull_number`, updated: sql`c.updated_at` },
  review: { table: sql`pull_request_reviews`, parent: sql`c.pull_number`, updated: sql`null::timestamptz` },
};
export type CommentKind = keyof typeof TABLES;

/** Upstream shows a review that is not submitted only to its author. */
const SHOWN: Record<CommentKind, Sql> = {
  issue_comment: sql`c.deleted_at is null`,
  review_comment: sql`c.deleted_at is null`,
  review: sql`c.deleted_at is null and c.state <> 'PENDING'`,
};

export interface CommentList {
  /** The number of the issue or pull request; absent: of the whole repository. */
  parent?: number;
  /** The id of the review that a comment on a diff came with. */
  review?: number;
  since?: Date | null;
  /** Of comments on issues: only those under issues, or only those under pull requests. Absent: both. */
  under?: "issues" | "pulls";
  sort: "created" | "updated";
  direction: "asc" | "desc";
  limit: number;
  offset: number;
}

/** A page of comments, and how many match in all. Ids grow with creation, so they give that order. */
export async function findComments(
  db: Database,
  kind: CommentKind,
  repositoryId: number,
  { parent, review, since, under, sort, direction, limit, offset }: CommentList,
): Promise<{ rows: CommentRow[]; total: number }> {
  const { table, parent: column, updated } = TABLES[kind];
  const conditions = [sql`c.repository_id = ${repositoryId}`, SHOWN[kind]];
  if (parent !== undefined) conditions.push(sql`${column} = ${parent}`);
  if (review !== undefined) conditions.push(sql`c.review_id = ${review}`);
  if (since) conditions.push(sql`c.updated_at >= ${since}`);
  if (under) {
    conditions.push(sql`exists (select from issues i where i.repository_id = c.repository_id
      and i.number = c.issue_number and i.is_pull_request = ${under === "pulls"})`);
  }
  const matching = sql`from ${table} c where ${sql.and(conditions)}`;
  const [counted] = await db.prepared<{ total: string }>(sql`select count(*) as total ${matching}`);
  const total = Number(counted?.total ?? 0);
  if (total <= offset) return { rows: [], total };

  const way = DIRECTIONS[direction];
  const order = sort === "updated" ? sql`c.updated_at ${way}, c.id ${way}` : sql`c.id ${way}`;
  // Documents are read only for rows on the page, not for all rows before it.
  const rows = await db.prepared<CommentRow>(sql`
    select c.id::float8 as id, c.document::text as document, c.body, c.updated_at as "updatedAt" from (
        select c.id, c.document, c.body, ${updated} as updated_at ${matching}
          order by ${order} limit ${limit} offset ${offset}) c
      order by ${order}`);
  return { rows, total };
}

/** The number of the issue or pull request that a comment stands under; null: the comment is not mirrored. */
export async function findParentNumber(
  db: Database,
  kind: CommentKind,
  repositoryId: number,
  id: number,
): Promise<number | null> {
  const { table, parent } = TABLES[kind];
  const [row] = await db.prepared<{ number: number | null }>(sql`
    select ${parent} as number from ${table} c where c.repository_id = ${repositoryId} and c.id = ${id}`);
  return row?.number ?? null;
}

/** `parent`: the issue or pull request that it must belong to. */
export async function findComment(
  db: Database,
  kind: CommentKind,
  repositoryId: number,
  id: number,
  parent?: number,
): Promise<CommentRow | null> {
  const { table, parent: column, updated } = TABLES[kind];
  const conditions = [sql`c.repository_id = ${repositoryId}`, sql`c.id = ${id}`, SHOWN[kind]];
  if (parent !== undefined) conditions.push(sql`${column} = ${parent}`);
  const [comment] = await db.prepared<CommentRow>(sql`
    select c.id::float8 as id, c.document::text as document, c.body, ${updated} as "updatedAt" from ${table} c
      where ${sql.and(conditions)}`);
  return comment ?? null;
}
