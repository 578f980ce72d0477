import { LRUCache } from "lru-cache";
import type { Database } from "../../../db/database.ts";
import { GatheredRead } from "../../../db/gathered.ts";
import { DIRECTIONS, type Sql, sql } from "../../../db/sql.ts";
import type { Standing } from "../unchanged/standings.ts";
import { type Sight, sees, visible } from "./sight.ts";

/** A repository that is mirrored and exists, as far as its routes need it. */
export interface MirroredRepository {
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

export interface RepositoryDocument extends MirroredRepository {
  document: string;
  detail: string | null;
}

interface Row {
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
  document: string;
  detail: string | null;
  total: string;
}

const COLUMNS = sql`r.id, r.node_id, r.name, r.full_name, r.html_url, r.owner_id, r.private, r.has_issues, r.updated_at,
  s.confirmed_at`;
/** Repositories `r` that are mirrored and exist. */
export const MIRRORED_REPOSITORIES = {
  tables: sql`repositories r join repository_syncs s on s.repository_id = r.id and s.state <> 'gone'`,
  isMirrored: sql`r.deleted_at is null`,
};

/** Of the mirrored repositories `r` those for which the conditions hold. */
function mirroredWhere(...conditions: readonly Sql[]): Sql {
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  return sql`from ${tables} where ${sql.and([isMirrored, ...conditions])}`;
}

/** The repository that has this name now, in any case of its letters. */
export async function findRepositoryByName(
  db: Database,
  fullName: string,
  sight: Sight,
): Promise<MirroredRepository | null> {
  const named = await BY_NAME.find(db, fullName.toLowerCase());
  return seenBy(sight, named)?.repository ?? null;
}

/** A row that bears a name. */
interface Named {
  repository: MirroredRepository;
  isMirrored: boolean;
  revision: string | null;
}

/** For a moment two rows can bear one name: the newer observation, which comes first, knows who has it now. */
function seenBy(sight: Sight, named: readonly Named[]): Named | undefined {
  return named.find(
    ({ isMirrored, repository }) => isMirrored && (!repository.isPrivate || sees(sight, repository.id)),
  );
}

const remembered = new WeakMap<Database, LRUCache<string, readonly Named[]>>();

/** What was found by a name before, and may have changed since. */
export interface RecalledRepository {
  repository: MirroredRepository;
  /** Of everything that bore the name. */
  named: readonly Named[];
}

/** Undefined where the name was not asked for lately, or the caller did not see what bore it. Asks nobody. */
export function recallRepository(db: Database, fullName: string, sight: Sight): RecalledRepository | undefined {
  const named = remembered.get(db)?.get(fullName.toLowerCase());
  const seen = named && seenBy(sight, named);
  return seen && { repository: seen.repository, named };
}

/** The repository, if it is as it was recalled by how things stand now. Whatever comes to bear its name changes its revision. */
export function confirmRecalled(
  { repository, named }: RecalledRepository,
  standings: ReadonlyMap<number, Standing>,
): MirroredRepository | null {
  for (const one of named) {
    const standing = standings.get(one.repository.id);
    if (standing?.revision !== one.revision || standing.isMirrored !== one.isMirrored) return null;
  }
  return { ...repository, confirmedAt: standings.get(repository.id)?.confirmedAt ?? null };
}

export async function findRepositoryById(db: Database, id: number, sight: Sight): Promise<MirroredRepository | null> {
  const found = await BY_ID.find(db, id);
  return found && (!found.isPrivate || sees(sight, found.id)) ? found : null;
}

/** All that bear a name, the newest observation first, whoever may see them. */
const BY_NAME = new GatheredRead(async (db, names: string[]): Promise<(readonly Named[])[]> => {
  const asked = [...new Set(names)];
  const rows = await db.prepared<Row & { at: number; is_mirrored: boolean; revision: string | null }>(sql`
    select x.at::integer as at, ${COLUMNS}, s.state is not null and s.state <> 'gone' as is_mirrored,
        v.revision::text as revision
      from unnest(${sql.array(asked, "text")}) with ordinality as x(name, at)
      join repositories r on lower(r.full_name) = x.name and r.deleted_at is null
      left join repository_syncs s on s.repository_id = r.id left join revisions v on v.repository_id = r.id
      order by r.seen_at desc`);
  const found = new Map(asked.map((name): [string, Named[]] => [name, []]));
  for (const row of rows) {
    const { at, is_mirrored: isMirrored, revision } = row;
    found.get(asked[at - 1] as string)?.push({ repository: mirrored(row), isMirrored, revision });
  }
  let memory = remembered.get(db);
  if (!memory) {
    memory = new LRUCache({ max: REMEMBERED_NAMES });
    remembered.set(db, memory);
  }
  for (const [name, named] of found) if (named.length > 0) memory.set(name, named);
  return names.map((name) => found.get(name) ?? []);
});
const REMEMBERED_NAMES = 10_000;

const BY_ID = new GatheredRead(async (db, ids: number[]): Promise<(MirroredRepository | null)[]> => {
  const rows = await db.prepared<Row>(sql`
    select ${COLUMNS} ${mirroredWhere(sql`r.id = any(${sql.array([...new Set(ids)], "bigint")}::bigint[])`)}`);
  const found = new Map(rows.map((row) => [Number(row.id), mirrored(row)]));
  return ids.map((id) => found.get(id) ?? null);
});

/** The repository that had this name before it was renamed or transferred. */
export async function findRenamedRepository(
  db: Database,
  fullName: string,
  sight: Sight,
): Promise<MirroredRepository | null> {
  const wasNamed = sql`r.id in (select repository_id from former_names where full_name = ${fullName.toLowerCase()})`;
  const [row] = await db.prepared<Row>(sql`
    select ${COLUMNS} ${mirroredWhere(visible(sql`r`, sight), wasNamed)} order by r.seen_at desc limit 1`);
  return row ? mirrored(row) : null;
}

export async function findRepositoryDocument(db: Database, id: number): Promise<RepositoryDocument | null> {
  const [row] = await db.prepared<Row>(sql`
    select ${COLUMNS}, r.document::text, r.detail::text from repositories r
      left join repository_syncs s on s.repository_id = r.id where r.id = ${id}`);
  return row ? documented(row) : null;
}

export type RepositorySort = "created" | "updated" | "pushed" | "full_name";
export type Relation = "owner" | "collaborator" | "organization_member";

export interface RepositoryFilter {
  visibility: "all" | "public" | "private";
  /** How the user relates to the repositories. */
  relations: readonly Relation[];
  updatedAfter: Date | null;
  updatedBefore: Date | null;
}

const SORT_KEYS: Record<RepositorySort, Sql> = {
  created: sql`r.created_at`,
  updated: sql`r.updated_at`,
  pushed: sql`coalesce(r.pushed_at, '-infinity')`,
  full_name: sql`lower(r.full_name)`,
};

/** A page of a user's repositories, and how many there are in all. */
export async function findUserRepositories(
  db: Database,
  userId: number,
  sight: Sight,
  filter: RepositoryFilter,
  page: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  const conditions = [visible(sql`r`, sight), relationCondition(userId, filter.relations), OWNED[filter.visibility]];
  if (filter.updatedAfter) conditions.push(sql`r.updated_at > ${filter.updatedAfter}`);
  if (filter.updatedBefore) conditions.push(sql`r.updated_at < ${filter.updatedBefore}`);
  return pageOfRepositories(db, conditions, page);
}

export interface RepositoryPage {
  sort: RepositorySort;
  direction: "asc" | "desc";
  limit: number;
  offset: number;
}

async function pageOfRepositories(
  db: Database,
  conditions: readonly Sql[],
  { sort, direction, limit, offset }: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  const matching = mirroredWhere(...conditions);
  const way = DIRECTIONS[direction];
  const found = await db.prepared<Row>(sql`
    select p.*, q.total from (select count(*) as total ${matching}) q left join lateral
      (select ${COLUMNS}, r.document::text as document, null as detail, ${SORT_KEYS[sort]} as key ${matching}
       order by ${SORT_KEYS[sort]} ${way}, r.id ${way} limit ${limit} offset ${offset}) p on true
      order by p.key ${way}, p.id ${way}`);
  return { rows: found.filter((row) => row.id !== null).map(documented), total: Number(found[0]?.total ?? 0) };
}

/** A page of what an account owns, as far as it is seen, and how many there are in all. */
export async function findOwnedRepositories(
  db: Database,
  ownerId: number,
  { only, sight }: { only: "all" | "public" | "private" | "forks" | "sources"; sight: Sight },
  page: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  return pageOfRepositories(db, [sql`r.owner_id = ${ownerId}`, visible(sql`r`, sight), OWNED[only]], page);
}

const OWNED = {
  all: sql`true`,
  public: sql`not r.private`,
  private: sql`r.private`,
  forks: sql`r.fork`,
  sources: sql`not r.fork`,
};

/**
 * The mirror is not told who is a member of what. What a user does not own has been opened to them by the token that
 * mirrors it, as to a collaborator; where an organisation owns it, they also count as its member.
 */
function relationCondition(userId: number, relations: readonly Relation[]): Sql {
  const any: Sql[] = [];
  if (relations.includes("owner")) any.push(sql`r.owner_id = ${userId}`);
  if (relations.includes("collaborator")) any.push(sql`r.owner_id is distinct from ${userId}`);
  else if (relations.includes("organization_member")) {
    any.push(sql`(r.owner_id <> ${userId}
      and exists (select from users o where o.id = r.owner_id and o.type = 'Organization'))`);
  }
  return sql.or(any);
}

function mirrored(row: Row): MirroredRepository {
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

/** When upstream last confirmed the repository of which that is longest ago; null: of one never, or there is none. */
export async function findOldestConfirmation(db: Database, sight: Sight): Promise<Date | null> {
  const [row] = await db.prepared<{ oldest: Date | null; is_complete: boolean | null }>(sql`
    select min(s.confirmed_at) as oldest, bool_and(s.confirmed_at is not null) as is_complete
      ${mirroredWhere(visible(sql`r`, sight))}`);
  return row?.is_complete ? row.oldest : null;
}

/** The same of these repositories alone. Undefined: none of them is mirrored. */
export async function findConfirmation(db: Database, ids: readonly number[]): Promise<Date | null | undefined> {
  const [row] = await db.prepared<{ confirmed_at: Date | null }>(sql`
    select s.confirmed_at from repository_syncs s where s.repository_id = any(${ids}::bigint[])
      order by s.confirmed_at nulls first limit 1`);
  return row?.confirmed_at;
}

function documented(row: Row): RepositoryDocument {
  return { ...mirrored(row), document: row.document, detail: row.detail };
}
