import type { Database, Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import type { RefKind, RefName } from "../store/refs.ts";
import { findEach, findWhether } from "./each.ts";
import type { PageSource } from "./pages.ts";

/** Whether upstream's list of refs may differ from the row `f` of `refs`. */
export const IS_UNSURE = sql`(f.doubt is not null or (f.deleted_at is null and (f.sha is null or f.document is null
  or case f.kind when 'heads' then f.protected is null else f.listed is null end)))`;

/** Whether the list of this kind is complete here and `areSure` holds. An empty repository counts as incomplete. */
function isListHeld(repositoryId: SQL, kind: SQL, areSure: SQL): SQL {
  return sql`exists (select from ref_lists l where l.repository_id = ${repositoryId} and l.kind = ${kind}
    and l.read_at is not null and ${areSure}
    and exists (select from refs f where f.repository_id = l.repository_id and f.kind = 'heads' and f.deleted_at is null))`;
}

/** Whether a list of a repository's refs is complete here, and each matching ref is certain. */
export async function areRefsHeld(
  db: Queries,
  repositoryId: number,
  kind: RefKind,
  { prefix = "", isUnsure = IS_UNSURE }: { prefix?: string; isUnsure?: SQL } = {},
): Promise<boolean> {
  const areSure = sql`not exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind
    and starts_with(f.name, ${prefix}) and ${isUnsure})`;
  return (await db.count(sql`select where ${isListHeld(sql`${repositoryId}`, sql`${kind}`, areSure)}`)) > 0;
}

/** Of these lists, those that are complete here, with each ref's place certain. */
export async function findHeldRefLists(
  db: Queries,
  lists: readonly { repositoryId: number; kind: RefKind }[],
): Promise<boolean[]> {
  const areSure = sql`not exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind
    and ${IS_PLACE_UNSURE})`;
  return await findWhether(
    db,
    lists,
    ["repositoryId", "kind"],
    (x) => sql`
    select x.at from ${x} where ${isListHeld(sql`x.repository_id`, sql`x.kind`, areSure)}`,
  );
}

/** Whether upstream's ref may point elsewhere than the row `f` of `refs`. */
export const IS_PLACE_UNSURE = sql`(f.doubt is not null or (f.deleted_at is null and f.document is null))`;

/** All refs with this prefix, each as upstream shows it by itself; null: not all of them are certain here. */
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

export interface FoundRef extends StoredDocument {
  /** The commit that the ref leads to; null: not known yet. */
  commitSha: string | null;
  /** Of a branch. Null: not known yet. */
  isProtected: boolean | null;
}

/** Each of these refs as upstream shows it; null: there is none. Undefined: upstream has to say. */
export async function findRefs(
  db: Database,
  keys: readonly (RefName & { repositoryId: number })[],
): Promise<(FoundRef | null | undefined)[]> {
  type Row = { document: string | null; commitSha: string | null; isProtected: boolean | null; isGone: boolean };
  const found = await findEach<Row>(
    db,
    keys,
    ["repositoryId", "kind", "name"],
    (x) => sql`
    select x.at, case when f.deleted_at is null then f.document::text end as document,
        f.commit_sha as "commitSha", f.protected as "isProtected", f.name is null or f.deleted_at is not null as "isGone"
      from ${x} left join refs f on f.repository_id = x.repository_id and f.kind = x.kind and f.name = x.name
      where case when f.name is null or f.deleted_at is not null
          then f.doubt is null and ${isListHeld(sql`x.repository_id`, sql`x.kind`, sql`true`)} else not ${IS_PLACE_UNSURE} end`,
  );
  return keys.map(({ repositoryId }, at) => {
    const row = found[at];
    if (!row || row.isGone || row.document === null) return row?.isGone ? null : undefined;
    return { repositoryId, document: row.document, commitSha: row.commitSha, isProtected: row.isProtected };
  });
}

/** The name of a repository's default branch; null: not known. */
export async function findDefaultBranch(db: Database, repositoryId: number): Promise<string | null> {
  const [row] = await db.prepared<{ name: string | null }>(sql`
    select r.default_branch as name from repositories r where r.id = ${repositoryId}`);
  return row?.name || null;
}

/** Branches or tags for GraphQL's lists, named without `refs/heads/` or `refs/tags/`. */
export function refSource(kind: RefKind, direction: "asc" | "desc"): PageSource {
  return {
    // The kind stands in the text, so that branches and tags are different lists.
    from:
      kind === "heads"
        ? sql`(select * from refs where kind = 'heads') f`
        : sql`(select * from refs where kind = 'tags') f`,
    repositoryId: sql`f.repository_id`,
    document: sql`f.document`,
    conditions: [sql`f.repository_id = x.r and f.deleted_at is null`],
    key: sql`f.name`,
    keyType: sql`text`,
    // A ref has no number, so a hash takes its place. It fits into a number of JavaScript.
    rowId: sql`(hashtextextended(f.name, 0) & ${String(Number.MAX_SAFE_INTEGER)}::bigint)`,
    direction,
  };
}

interface PageRange {
  offset: number;
  limit: number;
}

/** Branches in the order of their names, and how many there are. `isProtected` null: whether or not. */
export async function findBranches(
  db: Database,
  repositoryId: number,
  { isProtected, offset, limit }: PageRange & { isProtected: boolean | null },
): Promise<{ rows: StoredDocument[]; total: number }> {
  const matching = sql`from refs f where f.repository_id = ${repositoryId} and f.kind = 'heads' and f.deleted_at is null
    and (${isProtected}::boolean is null or f.protected = ${isProtected}::boolean)`;
  const [[counted], rows] = await Promise.all([
    db.prepared<{ total: number }>(sql`select count(*) as total ${matching}`),
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
  { offset, limit }: PageRange,
): Promise<{ rows: StoredDocument[]; total: number }> {
  const matching = sql`from refs f where f.repository_id = ${repositoryId} and f.kind = 'tags' and f.deleted_at is null`;
  const [[counted], rows] = await Promise.all([
    db.prepared<{ total: number }>(sql`select count(*) as total ${matching}`),
    db.prepared<{ document: string }>(sql`
      select f.listed::text as document ${matching} order by f.position, f.name limit ${limit} offset ${offset}`),
  ]);
  return { rows: rows.map(({ document }) => ({ repositoryId, document })), total: counted?.total ?? 0 };
}
