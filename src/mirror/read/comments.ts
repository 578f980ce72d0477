import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, type SQL, sql } from "../../../db/sql.ts";
import { BIGINT, direction, type Order, type PageSource, TIMESTAMP } from "./pages.ts";

/** A comment on an issue, a comment on a diff, or a review. */
export interface CommentRow {
  id: number;
  document: string;
  body: string | null;
  /** Null for reviews: REST shows no such time for them. */
  updatedAt: Date | null;
}

/** The table of each kind of comment, and the column with the number that the comment belongs to. */
const COMMENT_TABLES = {
  issue_comment: { table: sql`issue_comments`, parent: sql`c.issue_number`, updated: sql`c.updated_at` },
  review_comment: { table: sql`pull_request_review_comments`, parent: sql`c.pull_number`, updated: sql`c.updated_at` },
  review: { table: sql`pull_request_reviews`, parent: sql`c.pull_number`, updated: sql`null::timestamptz` },
};
export type CommentKind = keyof typeof COMMENT_TABLES;

/** Upstream shows a review that is not submitted only to its author. */
const SHOWN_COMMENTS: Readonly<Record<CommentKind, SQL>> = {
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
  const { table, parent: column, updated } = COMMENT_TABLES[kind];
  const conditions = [sql`c.repository_id = ${repositoryId}`, SHOWN_COMMENTS[kind]];
  if (parent !== undefined) conditions.push(sql`${column} = ${parent}`);
  if (review !== undefined) conditions.push(sql`c.review_id = ${review}`);
  if (since) conditions.push(sql`c.updated_at >= ${since}`);
  if (under) {
    conditions.push(sql`exists (select from issues i where i.repository_id = c.repository_id
      and i.number = c.issue_number and i.is_pull_request = ${under === "pulls"})`);
  }
  const matching = sql`from ${table} c where ${sql.and(conditions)}`;
  const [counted] = await db.prepared<{ total: number }>(sql`select count(*) as total ${matching}`);
  const total = counted?.total ?? 0;
  if (total <= offset) return { rows: [], total };

  const way = DIRECTIONS[direction];
  const order = sort === "updated" ? sql`c.updated_at ${way}, c.id ${way}` : sql`c.id ${way}`;
  // Documents are read only for rows on the page, not for all rows before it.
  const rows = await db.prepared<CommentRow>(sql`
    select c.id, c.document::text as document, c.body, c.updated_at as "updatedAt" from (
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
  const { table, parent } = COMMENT_TABLES[kind];
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
  const { table, parent: column, updated } = COMMENT_TABLES[kind];
  const conditions = [sql`c.repository_id = ${repositoryId}`, sql`c.id = ${id}`, SHOWN_COMMENTS[kind]];
  if (parent !== undefined) conditions.push(sql`${column} = ${parent}`);
  const [comment] = await db.prepared<CommentRow>(sql`
    select c.id, c.document::text as document, c.body, 
        case when ${updated} is not null then greatest(${updated}, c.changed_at) end as "updatedAt" from ${table} c
      where ${sql.and(conditions)}`);
  return comment ?? null;
}

export function issueCommentSource(orderBy: Order | null | undefined): PageSource {
  return {
    from: sql`issue_comments c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    body: sql`c.body`,
    conditions: [sql`c.repository_id = x.r and c.issue_number = x.n and c.deleted_at is null`],
    ...(orderBy ? { key: sql`c.updated_at`, keyType: TIMESTAMP } : { key: sql`c.id`, keyType: BIGINT }),
    rowId: sql`c.id`,
    direction: direction(orderBy),
  };
}

export function reviewSource({ author, states }: { author?: string | null; states?: string[] | null }): PageSource {
  return {
    from: sql`pull_request_reviews c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    detail: sql`c.detail`,
    body: sql`c.body`,
    conditions: [
      sql`c.repository_id = x.r and c.pull_number = x.n and c.deleted_at is null and c.state <> 'PENDING'`,
      ...(states && states.length > 0 ? [sql`c.state = any(${states}::text[])`] : []),
      ...(author == null
        ? []
        : [sql`c.user_id = any(array(select u.id from users u where folded(u.login) = ${author.toLowerCase()}))`]),
    ],
    key: sql`c.id`,
    keyType: BIGINT,
    rowId: sql`c.id`,
    direction: "asc",
  };
}

/** Each person's last review, if none is requested anew (GitHub docs: "that are not also pending review"). */
export const latestReviewSource: PageSource = {
  ...reviewSource({}),
  conditions: [
    ...reviewSource({}).conditions,
    sql`not exists (select from pull_request_reviews v where v.repository_id = c.repository_id and v.pull_number = c.pull_number
      and v.user_id = c.user_id and v.id > c.id and v.deleted_at is null and v.state <> 'PENDING')`,
    // The document names the requested reviewers, as placeholders for users: see `strip`.
    sql`not exists (select from pull_requests p where p.repository_id = x.r and p.number = x.n and p.document::text ~
      (${`"requested_reviewers":\\[[^\\]]*\\\\u0005u`} || c.user_id || ':'))`,
  ],
};

/** The comments on the diff that a review holds. */
export const reviewCommentSource: PageSource = {
  from: sql`pull_request_review_comments c`,
  repositoryId: sql`c.repository_id`,
  document: sql`c.document`,
  body: sql`c.body`,
  // The pull request is named too, since the index begins with it.
  conditions: [
    sql`c.repository_id = x.r and c.review_id = x.n and c.deleted_at is null and c.pull_number =
      (select v.pull_number from pull_request_reviews v where v.repository_id = x.r and v.id = x.n)`,
  ],
  key: sql`c.id`,
  keyType: BIGINT,
  rowId: sql`c.id`,
  direction: "asc",
};
