import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, type Sql, sql } from "../../../db/sql.ts";
import { mirroredWhere, type RepositoryDocument, SHOWN_COLUMNS } from "./shown-repository.ts";
import { type Sight, visible } from "./sight.ts";

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
  const conditions = [
    visible(sql`r`, sight, "metadata"),
    relationCondition(userId, filter.relations),
    OWNED[filter.visibility],
  ];
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
  const found = await db.prepared<RepositoryDocument & { total: string }>(sql`
    select p.*, q.total from (select count(*) as total ${matching}) q left join lateral
      (select ${SHOWN_COLUMNS}, r.document::text as document, null as detail, ${SORT_KEYS[sort]} as key ${matching}
       order by ${SORT_KEYS[sort]} ${way}, r.id ${way} limit ${limit} offset ${offset}) p on true
      order by p.key ${way}, p.id ${way}`);
  return { rows: found.filter((row) => row.id !== null), total: Number(found[0]?.total ?? 0) };
}

/** A page of an account's repositories that the caller sees, and how many there are in all. */
export async function findOwnedRepositories(
  db: Database,
  ownerId: number,
  { only, sight }: { only: "all" | "public" | "private" | "forks" | "sources"; sight: Sight },
  page: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  return pageOfRepositories(db, [sql`r.owner_id = ${ownerId}`, visible(sql`r`, sight, "metadata"), OWNED[only]], page);
}

const OWNED = {
  all: sql`true`,
  public: sql`not r.private`,
  private: sql`r.private`,
  forks: sql`r.fork`,
  sources: sql`not r.fork`,
};

/**
 * The mirror does not know who is a member of what. The user sees a repository of another owner through the token that
 * mirrors it, so they count as its collaborator. If an organisation owns it, they also count as a member.
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
