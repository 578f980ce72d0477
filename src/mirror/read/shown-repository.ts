import type { Database } from "../../../db/database.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import { type Sight, visible } from "./sight.ts";

/** A repository that is mirrored and exists, as far as requests below it need it. */
export interface ShownRepository {
  id: number;
  nodeId: string | null;
  name: string;
  fullName: string;
  htmlUrl: string | null;
  ownerId: number | null;
  isPrivate: boolean;
  hasIssues: boolean;
  updatedAt: Date | null;
  /** When upstream last confirmed what the mirror holds of it, by our clock; null: not since it was first copied. */
  confirmedAt: Date | null;
}

export interface RepositoryDocument extends ShownRepository {
  document: string;
  detail: string | null;
}

/** A row of `SHOWN_COLUMNS`. */
export interface ShownRow {
  id: string;
  node_id: string | null;
  name: string;
  full_name: string;
  html_url: string | null;
  owner_id: string | null;
  private: boolean;
  has_issues: boolean | null;
  updated_at: Date | null;
  confirmed_at: Date | null;
}

/** Of a repository `r` and its row `s` of `repository_syncs`. */
export const SHOWN_COLUMNS = sql`r.id, r.node_id, r.name, r.full_name, r.html_url, r.owner_id, r.private, r.has_issues,
  r.updated_at, s.confirmed_at`;
/** Repositories `r` that are mirrored and exist. */
export const MIRRORED_REPOSITORIES = {
  tables: sql`repositories r join repository_syncs s on s.repository_id = r.id and s.state <> 'gone'`,
  isMirrored: sql`r.deleted_at is null`,
};

/** The mirrored repositories `r` for which the conditions hold. */
export function mirroredWhere(...conditions: readonly Sql[]): Sql {
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  return sql`from ${tables} where ${sql.and([isMirrored, ...conditions])}`;
}

export function shown(row: ShownRow): ShownRepository {
  return {
    id: Number(row.id),
    nodeId: row.node_id,
    name: row.name,
    fullName: row.full_name,
    htmlUrl: row.html_url,
    ownerId: row.owner_id === null ? null : Number(row.owner_id),
    isPrivate: row.private,
    hasIssues: row.has_issues !== false,
    updatedAt: row.updated_at,
    confirmedAt: row.confirmed_at,
  };
}

/** With the document and the detail of the row. */
export function documented(row: ShownRow & { document: string; detail: string | null }): RepositoryDocument {
  return { ...shown(row), document: row.document, detail: row.detail };
}

/** The repository that had this name before it was renamed or transferred. */
export async function findRenamedRepository(
  db: Database,
  fullName: string,
  sight: Sight,
): Promise<ShownRepository | null> {
  const wasNamed = sql`r.id in (select repository_id from former_names where full_name = ${fullName.toLowerCase()})`;
  const [row] = await db.prepared<ShownRow>(sql`
    select ${SHOWN_COLUMNS} ${mirroredWhere(visible(sql`r`, sight), wasNamed)} order by r.seen_at desc limit 1`);
  return row ? shown(row) : null;
}

export async function findRepositoryDocument(db: Database, id: number): Promise<RepositoryDocument | null> {
  const [row] = await db.prepared<ShownRow & { document: string; detail: string | null }>(sql`
    select ${SHOWN_COLUMNS}, r.document::text, r.detail::text from repositories r
      left join repository_syncs s on s.repository_id = r.id where r.id = ${id}`);
  return row ? documented(row) : null;
}
