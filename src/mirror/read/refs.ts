import type { Database, Queries } from "../../../db/database.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import type { RefKind, RefName } from "../store/refs.ts";

/** Of a row `f` of `refs`: what a list of its kind says of it is not known for certain. */
export const IS_UNSURE = sql`(f.doubt is not null or (f.deleted_at is null and (f.sha is null or f.document is null
  or case f.kind when 'heads' then f.protected is null else f.listed is null end)))`;

/** Whether a list of a repository's refs is all here, and each of those that match is known for certain. */
export async function areRefsHeld(
  db: Queries,
  repositoryId: number,
  kind: RefKind,
  { prefix = "", isUnsure = IS_UNSURE }: { prefix?: string; isUnsure?: Sql } = {},
): Promise<boolean> {
  return (
    (await db.count(sql`
      select from ref_lists l where l.repository_id = ${repositoryId} and l.kind = ${kind} and l.read_at is not null
        and not exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind
          and starts_with(f.name, ${prefix}) and ${isUnsure})
        and exists (select from refs f where f.repository_id = l.repository_id and f.kind = 'heads' and f.deleted_at is null)`)) >
    0
  );
}

/** Of a row `f` of `refs`: where it points to is not known for certain. */
const IS_PLACE_UNSURE = sql`(f.doubt is not null or (f.deleted_at is null and f.document is null))`;

/** All refs whose names begin so, each as upstream shows it by itself; null: not all of them are here for certain. */
export async function findMatchingRefs(
  db: Database,
  repositoryId: number,
  { kind, name: prefix }: RefName,
): Promise<StoredDocument[] | null> {
  if (!(await areRefsHeld(db, repositoryId, kind, { prefix, isUnsure: IS_PLACE_UNSURE }))) return null;
  const rows = await db.prepared<{ document: string }>(sql`
    select f.document::text as document from refs f where f.repository_id = ${repositoryId} and f.kind = ${kind}
      and starts_with(f.name, ${prefix}) and f.deleted_at is null order by f.name`);
  return rows.map(({ document }) => ({ repositoryId, document }));
}

/** One ref as upstream shows it; null: there is none. Undefined: upstream has to say. */
export async function findRef(
  db: Database,
  repositoryId: number,
  { kind, name }: RefName,
): Promise<StoredDocument | null | undefined> {
  const [row] = await db.prepared<{ document: string | null; isGone: boolean; isUnsure: boolean }>(sql`
    select f.document::text as document, f.deleted_at is not null as "isGone", ${IS_PLACE_UNSURE} as "isUnsure" from refs f
      where f.repository_id = ${repositoryId} and f.kind = ${kind} and f.name = ${name}`);
  if (row && !row.isUnsure && !row.isGone && row.document !== null) return { repositoryId, document: row.document };
  if (row?.isUnsure || !(await areRefsHeld(db, repositoryId, kind, { isUnsure: sql`false` }))) return undefined;
  return null;
}

interface Page {
  offset: number;
  limit: number;
}

/** Branches in the order of their names, and how many there are. `isProtected` null: whether or not. */
export async function findBranches(
  db: Database,
  repositoryId: number,
  { isProtected, offset, limit }: Page & { isProtected: boolean | null },
): Promise<{ rows: StoredDocument[]; total: number }> {
  const matching = sql`from refs f where f.repository_id = ${repositoryId} and f.kind = 'heads' and f.deleted_at is null
    and (${isProtected}::boolean is null or f.protected = ${isProtected}::boolean)`;
  const [[counted], rows] = await Promise.all([
    db.prepared<{ total: number }>(sql`select count(*)::integer as total ${matching}`),
    db.prepared<{ name: string; sha: string; protected: boolean }>(sql`
      select f.name, f.sha, f.protected ${matching} order by f.name limit ${limit} offset ${offset}`),
  ]);
  const documents = rows.map(({ name, sha, protected: is }) =>
    JSON.stringify({ name, commit: { sha, url: `\u0001/commits/${sha}` }, protected: is }),
  );
  return { rows: documents.map((document) => ({ repositoryId, document })), total: counted?.total ?? 0 };
}

/** Tags in upstream's order, and how many there are. */
export async function findTags(
  db: Database,
  repositoryId: number,
  { offset, limit }: Page,
): Promise<{ rows: StoredDocument[]; total: number }> {
  const matching = sql`from refs f where f.repository_id = ${repositoryId} and f.kind = 'tags' and f.deleted_at is null`;
  const [[counted], rows] = await Promise.all([
    db.prepared<{ total: number }>(sql`select count(*)::integer as total ${matching}`),
    db.prepared<{ document: string }>(sql`
      select f.listed::text as document ${matching} order by f.position, f.name limit ${limit} offset ${offset}`),
  ]);
  return { rows: rows.map(({ document }) => ({ repositoryId, document })), total: counted?.total ?? 0 };
}
