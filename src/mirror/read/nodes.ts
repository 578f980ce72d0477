import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";
import type { StoredDocument } from "../render/rendering.ts";
import type { Home } from "../render/unfolding.ts";
import { MIRRORED_REPOSITORIES } from "./repositories.ts";
import { type Sight, visible } from "./sight.ts";

/** A stored document that was asked for by a key. */
export type FoundNode = StoredDocument & { key: string };

/** A repository that was asked for by a key. */
export interface FoundRepository extends FoundNode {
  home: Home;
  isPrivate: boolean;
  /** When upstream last confirmed what the mirror holds of it; null: not since it was first copied. */
  confirmedAt: Date | null;
}

const TABLES = {
  Issue: { table: "issues", byNumber: "t.number", columns: "t.body, null as detail", shown: "t.id is not null" },
  PullRequest: {
    table: "pull_requests",
    byNumber: "t.number",
    columns: "t.body, t.detail::text as detail",
    shown: "t.id is not null",
  },
  Milestone: { table: "milestones", byNumber: "t.number", columns: "null as body, null as detail", shown: "true" },
  Label: { table: "labels", byNumber: null, columns: "null as body, null as detail", shown: "true" },
  IssueComment: { table: "issue_comments", byNumber: null, columns: "t.body, null as detail", shown: "true" },
  PullRequestReview: {
    table: "pull_request_reviews",
    byNumber: null,
    columns: "t.body, null as detail",
    shown: "t.state <> 'PENDING'",
  },
  PullRequestReviewComment: {
    table: "pull_request_review_comments",
    byNumber: null,
    columns: "t.body, null as detail",
    shown: "true",
  },
} as const;
export type RepositoryNodeKind = keyof typeof TABLES;

interface Row {
  key: string;
  repository_id: string;
  document: string;
  body: string | null;
  detail: string | null;
}

/** Those of `numbers` that exist; keys are `repositoryId/number`. */
export async function findByNumber(
  db: Database,
  kind: "Issue" | "PullRequest" | "Milestone",
  wanted: { repositoryId: number; number: number }[],
): Promise<FoundNode[]> {
  const { table, byNumber, columns, shown } = TABLES[kind];
  const statement = new Statement();
  const rows = await statement.rows<Row>(
    db,
    `select x.r || '/' || x.n as key, t.repository_id, t.document::text as document, ${columns}
      from unnest(${statement.arrayIn(wanted, "repositoryId", "bigint")}, ${statement.arrayIn(wanted, "number", "integer")}) x(r, n)
      join ${table} t on t.repository_id = x.r and ${byNumber} = x.n where t.deleted_at is null and ${shown}`,
  );
  return rows.map(toFound);
}

/** Labels by name in any case; keys are `repositoryId/name in lower case`. */
export async function findLabelsByName(
  db: Database,
  wanted: { repositoryId: number; name: string }[],
): Promise<FoundNode[]> {
  const statement = new Statement();
  const lowerCase = wanted.map(({ name }) => name.toLowerCase());
  const names = statement.array(lowerCase, "text");
  const rows = await statement.rows<Row>(
    db,
    `select x.r || '/' || x.name as key, t.repository_id, t.document::text as document, null as body, null as detail
      from unnest(${statement.arrayIn(wanted, "repositoryId", "bigint")}, ${names}) x(r, name)
      join labels t on t.repository_id = x.r and lower(t.name) = x.name where t.deleted_at is null order by t.id`,
  );
  return rows.map(toFound);
}

/** A page of the repository's labels in whose name or description all words stand, and how many there are. */
export async function findLabelsByWords(
  db: Database,
  repositoryId: number,
  text: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ found: FoundNode[]; total: number }> {
  const statement = new Statement();
  const words = text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const matching = [
    `t.repository_id = ${statement.value(repositoryId)} and t.deleted_at is null`,
    ...words.map(
      (word) => `search_words(t.name || ' ' || coalesce(t.description, '')) @@ search_query(${statement.value(word)})`,
    ),
  ].join(" and ");
  const rows = await statement.rows<Row & { total: string }>(
    db,
    `select t.id::text as key, t.repository_id, t.document::text as document, null as body, null as detail,
      (select count(*) from labels t where ${matching}) as total from labels t where ${matching}
      order by t.id limit ${statement.value(limit)} offset ${statement.value(offset)}`,
  );
  return { found: rows.map(toFound), total: Number(rows[0]?.total ?? 0) };
}

/** By upstream's ids, in whichever mirrored repository they are; keys are the ids. */
export async function findById(
  db: Database,
  kind: RepositoryNodeKind,
  ids: number[],
  sight: Sight,
): Promise<FoundNode[]> {
  const { table, columns, shown } = TABLES[kind];
  const statement = new Statement();
  const rows = await statement.rows<Row>(
    db,
    `select t.id::text as key, t.repository_id, t.document::text as document, ${columns} from repository_syncs s
      join repositories r on r.id = s.repository_id and r.deleted_at is null
      join ${table} t on t.repository_id = s.repository_id and t.id = any(${statement.array(ids, "bigint")}::bigint[])
      where s.state <> 'gone' and t.deleted_at is null and ${shown} and ${visible(statement, "r", sight)}`,
  );
  return rows.map(toFound);
}

const REPOSITORY_COLUMNS =
  "r.id as repository_id, r.document::text as document, null as body, r.detail::text as detail, r.full_name, r.html_url, r.private, s.confirmed_at";

interface RepositoryRow extends Row {
  full_name: string;
  html_url: string | null;
  private: boolean;
  confirmed_at: Date | null;
}

function toRepository(row: RepositoryRow): FoundRepository {
  return {
    ...toFound(row),
    home: { fullName: row.full_name, htmlUrl: row.html_url ?? "" },
    isPrivate: row.private,
    confirmedAt: row.confirmed_at,
  };
}

/** Mirrored repositories; keys are the ids. */
export async function findRepositoriesById(db: Database, ids: number[], sight: Sight): Promise<FoundRepository[]> {
  const statement = new Statement();
  const rows = await statement.rows<RepositoryRow>(
    db,
    `select r.id::text as key, ${REPOSITORY_COLUMNS}
      ${MIRRORED_REPOSITORIES} and ${visible(statement, "r", sight)} and r.id = any(${statement.array(ids, "bigint")}::bigint[])`,
  );
  return rows.map(toRepository);
}

/** By full name in lower case, which is also the key; with `followRenames` by a name that a repository had before, too. */
export async function findRepositoriesByName(
  db: Database,
  names: string[],
  { followRenames, sight }: { followRenames: boolean; sight: Sight },
): Promise<FoundRepository[]> {
  const statement = new Statement();
  const wanted = statement.array(names, "text");
  const seen = visible(statement, "r", sight);
  const rows = await statement.rows<RepositoryRow>(
    db,
    `${
      followRenames
        ? `select f.full_name as key, ${REPOSITORY_COLUMNS}, 0 as rank, r.seen_at ${MIRRORED_REPOSITORIES.replace(" where ", " join former_names f on f.repository_id = r.id where ")} and ${seen} and f.full_name = any(${wanted}::text[]) union all `
        : ""
    }select lower(r.full_name) as key, ${REPOSITORY_COLUMNS}, 1 as rank, r.seen_at ${MIRRORED_REPOSITORIES} and ${seen} and lower(r.full_name) = any(${wanted}::text[]) order by rank, seen_at`,
  );
  return rows.map(toRepository);
}

/** Accounts by id; keys are the ids. */
export async function findUsersById(db: Database, ids: number[]): Promise<FoundNode[]> {
  const statement = new Statement();
  const rows = await statement.rows<Row>(
    db,
    `select u.id::text as key, 0 as repository_id, u.document::text as document, null as body, null as detail from users u
      where u.id = any(${statement.array(ids, "bigint")}::bigint[]) and u.deleted_at is null`,
  );
  return rows.map(toFound);
}

/** Accounts by login in lower case, which is also the key. */
export async function findUsersByLogin(db: Database, logins: string[]): Promise<FoundNode[]> {
  const statement = new Statement();
  const rows = await statement.rows<Row>(
    db,
    `select lower(u.login) as key, 0 as repository_id, u.document::text as document, null as body, null as detail from users u
      where lower(u.login) = any(${statement.array(logins, "text")}::text[]) and u.deleted_at is null order by u.seen_at`,
  );
  return rows.map(toFound);
}

function toFound({ key, repository_id, document, body, detail }: Row): FoundNode {
  return { key, repositoryId: Number(repository_id), document, body, detail };
}
