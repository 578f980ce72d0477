import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, type SQL, sql } from "../../../db/sql.ts";
import { direction, INTEGER, type Order, type PageSource, type SortKey, TEXT, time } from "./pages.ts";
import {
  type AccessScope,
  MIRRORED_REPOSITORIES,
  mirroredWhere,
  type RepositoryDocument,
  SHOWN_COLUMNS,
  visible,
} from "./repositories.ts";

export type RepositorySort = "created" | "updated" | "pushed" | "full_name";
export type Relation = "owner" | "collaborator" | "organization_member";

export interface RepositoryFilter {
  visibility: "all" | "public" | "private";
  /** How the user relates to the repositories. */
  relations: readonly Relation[];
  updatedAfter: Date | null;
  updatedBefore: Date | null;
}

const REPOSITORY_SORT_KEYS: Readonly<Record<RepositorySort, SQL>> = {
  created: sql`r.created_at`,
  updated: sql`r.updated_at`,
  pushed: sql`coalesce(r.pushed_at, '-infinity')`,
  full_name: sql`folded(r.full_name)`,
};

/** A page of a user's repositories, and how many there are in all. */
export async function findUserRepositories(
  db: Database,
  userId: number,
  access: AccessScope,
  filter: RepositoryFilter,
  page: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  const conditions = [
    visible(sql`r`, access, "metadata"),
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
  conditions: readonly SQL[],
  { sort, direction, limit, offset }: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  const matching = mirroredWhere(...conditions);
  const way = DIRECTIONS[direction];
  const found = await db.prepared<RepositoryDocument & { total: number }>(sql`
    select p.*, q.total from (select count(*) as total ${matching}) q left join lateral
      (select ${SHOWN_COLUMNS}, r.document::text as document, null as detail, ${REPOSITORY_SORT_KEYS[sort]} as key ${matching}
       order by ${REPOSITORY_SORT_KEYS[sort]} ${way}, r.id ${way} limit ${limit} offset ${offset}) p on true
      order by p.key ${way}, p.id ${way}`);
  return { rows: found.filter((row) => row.id !== null), total: found[0]?.total ?? 0 };
}

/** A page of an account's repositories that the caller sees, and how many there are in all. */
export async function findOwnedRepositories(
  db: Database,
  ownerId: number,
  { only, access }: { only: "all" | "public" | "private" | "forks" | "sources"; access: AccessScope },
  page: RepositoryPage,
): Promise<{ rows: RepositoryDocument[]; total: number }> {
  return pageOfRepositories(db, [sql`r.owner_id = ${ownerId}`, visible(sql`r`, access, "metadata"), OWNED[only]], page);
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
function relationCondition(userId: number, relations: readonly Relation[]): SQL {
  const any: SQL[] = [];
  if (relations.includes("owner")) any.push(sql`r.owner_id = ${userId}`);
  if (relations.includes("collaborator")) any.push(sql`r.owner_id is distinct from ${userId}`);
  else if (relations.includes("organization_member")) {
    any.push(sql`(r.owner_id <> ${userId}
      and exists (select from users o where o.id = r.owner_id and o.type = 'Organization'))`);
  }
  return sql.or(any);
}

export interface RepositoriesArguments {
  affiliations?: string[] | null;
  ownerAffiliations?: string[] | null;
  hasIssuesEnabled?: boolean | null;
  isArchived?: boolean | null;
  isFork?: boolean | null;
  orderBy?: Order | null;
  privacy?: "PUBLIC" | "PRIVATE" | null;
  visibility?: string | null;
}

const BY_CREATION = time(sql`r.created_at`);
const REPOSITORY_KEYS: Readonly<Record<string, SortKey>> = {
  CREATED_AT: BY_CREATION,
  UPDATED_AT: time(sql`r.updated_at`),
  PUSHED_AT: time(sql`r.pushed_at`),
  NAME: { key: sql`folded(r.name)`, keyType: TEXT },
  STARGAZERS: { key: sql`coalesce(r.stargazers_count, 0)`, keyType: INTEGER },
};

/** The repositories of accounts, the viewer among them. Only the viewer's own relations are known. */
export function repositories(viewerId: number, access: AccessScope, args: RepositoriesArguments): PageSource {
  const { affiliations, ownerAffiliations, hasIssuesEnabled, isArchived, isFork, orderBy, privacy, visibility } = args;
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const viewer = sql`${viewerId}::bigint`;
  const conditions = [
    isMirrored,
    visible(sql`r`, access, "metadata"),
    related(sql`x.r`, viewer, ownerAffiliations ?? ["OWNER", "COLLABORATOR"]),
  ];
  if (affiliations && affiliations.length > 0) conditions.push(related(viewer, viewer, affiliations));
  if (hasIssuesEnabled != null) conditions.push(sql`r.has_issues is not distinct from ${hasIssuesEnabled}`);
  if (isArchived != null) conditions.push(sql`r.archived is not distinct from ${isArchived}`);
  if (isFork != null) conditions.push(sql`r.fork is not distinct from ${isFork}`);
  if (privacy != null) conditions.push(privacy === "PRIVATE" ? sql`r.private` : sql`not r.private`);
  if (visibility != null) {
    const shown = sql`coalesce(r.visibility, case when r.private then 'private' else 'public' end)`;
    conditions.push(sql`${shown} = ${visibility.toLowerCase()}`);
  }
  return {
    from: tables,
    repositoryId: sql`r.id`,
    document: sql`r.document`,
    detail: sql`r.detail`,
    conditions,
    ...(REPOSITORY_KEYS[orderBy?.field ?? ""] ?? BY_CREATION),
    rowId: sql`r.id`,
    direction: direction(orderBy),
  };
}

/** How `account` relates to the repository, by the same rule as in REST: see `relationCondition`. */
function related(account: SQL, viewer: SQL, affiliations: string[]): SQL {
  const any: SQL[] = [];
  if (affiliations.includes("OWNER")) any.push(sql`r.owner_id = ${account}`);
  if (affiliations.includes("COLLABORATOR"))
    any.push(sql`(${account} = ${viewer} and r.owner_id is distinct from ${viewer})`);
  if (affiliations.includes("ORGANIZATION_MEMBER")) {
    any.push(sql`(${account} = ${viewer} and r.owner_id <> ${viewer}
      and exists (select from users o where o.id = r.owner_id and o.type = 'Organization'))`);
  }
  return sql.or(any);
}
