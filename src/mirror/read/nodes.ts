import type { Database } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { type AccessScope, MIRRORED_REPOSITORIES, visible } from "./repositories.ts";

/** A stored document that was asked for by a key. */
export type FoundNode = StoredDocument & { key: string };

const BODY = sql`t.body, null as detail`;
const WITH_DETAIL = sql`t.body, t.detail::text as detail`;
const NO_BODY = sql`null as body, null as detail`;

const NODE_TABLES = {
  Issue: { table: sql`issues`, columns: BODY, shown: sql`t.id is not null` },
  PullRequest: { table: sql`pull_requests`, columns: WITH_DETAIL, shown: sql`t.id is not null` },
  Milestone: { table: sql`milestones`, columns: NO_BODY, shown: sql`true` },
  Label: { table: sql`labels`, columns: NO_BODY, shown: sql`true` },
  IssueComment: { table: sql`issue_comments`, columns: BODY, shown: sql`true` },
  PullRequestReview: { table: sql`pull_request_reviews`, columns: WITH_DETAIL, shown: sql`t.state <> 'PENDING'` },
  PullRequestReviewComment: { table: sql`pull_request_review_comments`, columns: BODY, shown: sql`true` },
};
export type RepositoryNodeKind = keyof typeof NODE_TABLES;

/** Those of `numbers` that exist; keys are `repositoryId/number`. */
export async function findByNumber(
  db: Database,
  kind: "Issue" | "PullRequest" | "Milestone",
  wanted: { repositoryId: number; number: number }[],
): Promise<FoundNode[]> {
  const { table, columns, shown } = NODE_TABLES[kind];
  const repositoryIds = wanted.map(({ repositoryId }) => repositoryId);
  const numbers = wanted.map(({ number }) => number);
  return db.prepared<FoundNode>(sql`
    select x.r || '/' || x.n as key, t.repository_id as "repositoryId", t.document::text as document, ${columns}
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(numbers, "integer")}) x(r, n)
      join ${table} t on t.repository_id = x.r and t.number = x.n where t.deleted_at is null and ${shown}`);
}

/** Labels by name in any case of its letters; keys are `repositoryId/name as asked for`. */
export async function findLabelsByName(
  db: Database,
  wanted: { repositoryId: number; name: string }[],
): Promise<FoundNode[]> {
  const repositoryIds = wanted.map(({ repositoryId }) => repositoryId);
  const names = wanted.map(({ name }) => name);
  return db.prepared<FoundNode>(sql`
    select x.r || '/' || x.name as key, t.repository_id as "repositoryId", t.document::text as document,
        ${NO_BODY} from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(names, "text")}) x(r, name)
      join labels t on t.repository_id = x.r and folded(t.name) = folded(x.name) where t.deleted_at is null order by t.id`);
}

/** A page of the repository's labels in whose name or description all words stand, and how many there are. */
export async function findLabelsByWords(
  db: Database,
  repositoryId: number,
  text: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ found: FoundNode[]; total: number }> {
  const words = text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const query = sql.join(
    words.map((word) => sql`search_query(${word})`),
    " && ",
  );
  const isFound =
    words.length === 0 ? sql`true` : sql`search_words(t.name || ' ' || coalesce(t.description, '')) @@ (${query})`;
  const found = await db.prepared<FoundNode & { total: number }>(sql`
    with q as materialized (select t.id from labels t
      where t.repository_id = ${repositoryId} and t.deleted_at is null and ${isFound})
    select t.id::text as key, t.repository_id as "repositoryId", t.document::text as document, ${NO_BODY},
      (select count(*) from q) as total from labels t
      where t.repository_id = ${repositoryId} and t.id in (select q.id from q) order by t.id limit ${limit} offset ${offset}`);
  return { found, total: found[0]?.total ?? 0 };
}

/** By upstream's ids, in all mirrored repositories; keys are the ids. */
export async function findById(
  db: Database,
  kind: RepositoryNodeKind,
  ids: number[],
  access: AccessScope,
): Promise<FoundNode[]> {
  const { table, columns, shown } = NODE_TABLES[kind];
  return db.prepared<FoundNode>(sql`
    select t.id::text as key, t.repository_id as "repositoryId", t.document::text as document, ${columns}
      from repository_syncs s join repositories r on r.id = s.repository_id and r.deleted_at is null
      join ${table} t on t.repository_id = s.repository_id and t.id = any(${sql.array(ids, "bigint")}::bigint[])
      where ${MIRRORED} and t.deleted_at is null and ${shown} and ${visible(sql`r`, access, "metadata")}`);
}

/**
 * The place of a node: the number of the issue or pull request that it is or stands under; null if it belongs to the
 * repository alone.
 */
export interface NodePlace {
  id: number;
  repositoryId: number;
  number: number | null;
}

const NODE_NUMBERS: Readonly<Record<RepositoryNodeKind, SQL>> = {
  Issue: sql`t.number`,
  PullRequest: sql`t.number`,
  Milestone: sql`null`,
  Label: sql`null`,
  IssueComment: sql`t.issue_number`,
  PullRequestReview: sql`t.pull_number`,
  PullRequestReviewComment: sql`t.pull_number`,
};

/** Where these nodes are, by upstream's ids. */
export async function findNodePlaces(
  db: Database,
  kind: RepositoryNodeKind,
  ids: readonly number[],
  access: AccessScope,
): Promise<NodePlace[]> {
  return db.prepared<NodePlace>(sql`
    select t.id, t.repository_id as "repositoryId", ${NODE_NUMBERS[kind]}::integer as number
      from repository_syncs s join repositories r on r.id = s.repository_id and r.deleted_at is null
      join ${NODE_TABLES[kind].table} t on t.repository_id = s.repository_id and t.id = any(${sql.array(ids, "bigint")}::bigint[])
      where ${MIRRORED} and ${visible(sql`r`, access, "metadata")}`);
}

/** Mirrored repositories; keys are the ids. */
export async function findRepositoriesById(
  db: Database,
  ids: number[],
  access: AccessScope,
): Promise<(FoundNode & { nodeId: string | null; isPrivate: boolean })[]> {
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  return db.prepared<FoundNode & { nodeId: string | null; isPrivate: boolean }>(sql`
    select r.id::text as key, r.id as "repositoryId", r.node_id as "nodeId", r.private as "isPrivate",
        r.document::text as document, ${NO_BODY} from ${tables}
      where ${isMirrored} and ${visible(sql`r`, access, "metadata")} and r.id = any(${sql.array(ids, "bigint")}::bigint[])`);
}

/** Accounts by id; keys are the ids. */
export async function findUsersById(db: Database, ids: number[]): Promise<FoundNode[]> {
  return db.prepared<FoundNode>(sql`
    select u.id::text as key, 0 as "repositoryId", u.document::text as document, ${NO_BODY} from users u
      where u.id = any(${sql.array(ids, "bigint")}::bigint[]) and u.deleted_at is null`);
}

/** Accounts by login in lower case, which is also the key. */
export async function findUsersByLogin(db: Database, logins: string[]): Promise<FoundNode[]> {
  return db.prepared<FoundNode>(sql`
    select folded(u.login) as key, 0 as "repositoryId", u.document::text as document, ${NO_BODY} from users u
      where folded(u.login) = any(${sql.array(logins, "text")}::text[]) and u.deleted_at is null order by u.seen_by_read, u.seen_at`);
}
