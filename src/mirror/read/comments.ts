import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";

/** A comment on an issue, a comment on a diff, or a review. */
export interface CommentRow {
  id: number;
  document: string;
  body: string | null;
  /** Null for reviews, of which REST knows none. */
  updatedAt: Date | null;
}

/** Where comments of a kind lie, and which column says what they are about. */
const TABLES = {
  issue_comment: { table: "issue_comments", parent: "issue_number", updated: "c.updated_at" },
  review_comment: { table: "pull_request_review_comments", parent: "pull_number", updated: "c.updated_at" },
  review: { table: "pull_request_reviews", parent: "pull_number", updated: "null::timestamptz" },
} as const;
export type CommentKind = keyof typeof TABLES;

export interface CommentList {
  /** The number of the issue or pull request; absent: of the whole repository. */
  parent?: number;
  /** The id of the review that a comment on a diff came with. */
  review?: number;
  since?: Date | null;
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
  { parent, review, since, sort, direction, limit, offset }: CommentList,
): Promise<{ rows: CommentRow[]; total: number }> {
  const { table, parent: column, updated } = TABLES[kind];
  const matching = () => {
    const statement = new Statement();
    const repository = statement.value(repositoryId);
    statement.where(`c.repository_id = ${repository}`).where("c.deleted_at is null");
    if (parent !== undefined) statement.where(`c.${column} = ${statement.value(parent)}`);
    if (review !== undefined) statement.where(`c.review_id = ${statement.value(review)}`);
    if (since) statement.where(`c.updated_at >= ${statement.value(since)}`);
    // A review that is not submitted is its author's own; upstream shows it to nobody else.
    if (kind === "review") statement.where("c.state <> 'PENDING'");
    return statement;
  };
  const count = matching();
  const [counted] = await count.rows<{ total: string }>(
    db,
    `select count(*) as total from ${table} c where ${count.conditions}`,
  );
  const total = Number(counted?.total ?? 0);
  if (total <= offset) return { rows: [], total };

  const statement = matching();
  const order = sort === "updated" ? `c.updated_at ${direction}, c.id ${direction}` : `c.id ${direction}`;
  const rows = await statement.rows<RawComment>(
    db,
    // Documents are read of what is on the page alone, and not of all before it.
    `select c.id, c.document::text as document, c.body, c.updated_at from (
        select c.id, c.document, c.body, ${updated} as updated_at from ${table} c where ${statement.conditions}
          order by ${order} limit ${statement.value(limit)} offset ${statement.value(offset)}) c
      order by ${order}`,
  );
  return { rows: rows.map(toComment), total };
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
  const statement = new Statement();
  const repository = statement.value(repositoryId);
  statement
    .where(`c.repository_id = ${repository}`)
    .where(`c.id = ${statement.value(id)}`)
    .where("c.deleted_at is null");
  if (parent !== undefined) statement.where(`c.${column} = ${statement.value(parent)}`);
  if (kind === "review") statement.where("c.state <> 'PENDING'");
  const [row] = await statement.rows<RawComment>(
    db,
    `select c.id, c.document::text as document, c.body, ${updated} as updated_at from ${table} c where ${statement.conditions}`,
  );
  return row ? toComment(row) : null;
}

interface RawComment {
  id: string;
  document: string;
  body: string | null;
  updated_at: Date | null;
}

function toComment({ id, document, body, updated_at }: RawComment): CommentRow {
  return { id: Number(id), document, body, updatedAt: updated_at };
}
