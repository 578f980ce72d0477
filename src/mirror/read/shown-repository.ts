import type { Database } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import { type Sight, visible } from "./sight.ts";

/** A repository that is mirrored and exists, with the values that requests below it need. */
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
  /** When upstream last confirmed the mirror's copy, by our clock; null: not since the first copy. */
  confirmedAt: Date | null;
  /** The parts that upstream did not show then, as answers name them; null: none. */
  missing: string | null;
  /** The parts that are mirrored beside issues and pull requests. */
  mirrors: readonly MirrorPart[];
}

export interface RepositoryDocument extends ShownRepository {
  document: string;
  detail: string | null;
}

/** A `ShownRepository`, of a repository `r` and its row `s` of `repository_syncs`. */
export const SHOWN_COLUMNS = sql`r.id::float8 as id, r.node_id as "nodeId", r.name, r.full_name as "fullName",
  r.html_url as "htmlUrl", r.owner_id::float8 as "ownerId", r.private as "isPrivate",
  r.has_issues is not false as "hasIssues", r.updated_at as "updatedAt", s.confirmed_at as "confirmedAt",
  s.parts_missing as missing,
  coalesce(s.mirrors, '{}') as mirrors`;
/** Repositories `r` that are mirrored and exist. */
export const MIRRORED_REPOSITORIES = {
  tables: sql`repositories r join repository_syncs s on s.repository_id = r.id and ${MIRRORED}`,
  isMirrored: sql`r.deleted_at is null`,
};

/** The mirrored repositories `r` that meet the conditions. */
export function mirroredWhere(...conditions: readonly Sql[]): Sql {
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  return sql`from ${tables} where ${sql.and([isMirrored, ...conditions])}`;
}

/** The repository that had this name before it was renamed or transferred. */
export async function findRenamedRepository(
  db: Database,
  fullName: string,
  sight: Sight,
): Promise<ShownRepository | null> {
  const wasNamed = sql`r.id in (select repository_id from former_names where full_name = ${fullName.toLowerCase()})`;
  const [repository] = await db.prepared<ShownRepository>(sql`
    select ${SHOWN_COLUMNS} ${mirroredWhere(visible(sql`r`, sight, "metadata"), wasNamed)} order by r.seen_at desc limit 1`);
  return repository ?? null;
}

export async function findRepositoryDocument(db: Database, id: number): Promise<RepositoryDocument | null> {
  const [repository] = await db.prepared<RepositoryDocument>(sql`
    select ${SHOWN_COLUMNS}, r.document::text, r.detail::text from repositories r
      left join repository_syncs s on s.repository_id = r.id where r.id = ${id}`);
  return repository ?? null;
}
