import { type Sql, sql } from "../../../../db/sql.ts";
import { direction, INTEGER, type Order, type PageSource, type SortKey, TEXT, time } from "../pages.ts";
import { MIRRORED_REPOSITORIES } from "../shown-repository.ts";
import { type Sight, visible } from "../sight.ts";

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
const REPOSITORY_KEYS: Record<string, SortKey> = {
  CREATED_AT: BY_CREATION,
  UPDATED_AT: time(sql`r.updated_at`),
  PUSHED_AT: time(sql`r.pushed_at`),
  NAME: { key: sql`lower(r.name)`, keyType: TEXT },
  STARGAZERS: { key: sql`coalesce(r.stargazers_count, 0)`, keyType: INTEGER },
};

/** The repositories of accounts, the viewer among them. Only the viewer's own relations are known. */
export function repositories(viewerId: number, sight: Sight, args: RepositoriesArguments): PageSource {
  const { affiliations, ownerAffiliations, hasIssuesEnabled, isArchived, isFork, orderBy, privacy, visibility } = args;
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const viewer = sql`${viewerId}::bigint`;
  const conditions = [
    isMirrored,
    visible(sql`r`, sight, "metadata"),
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
    tie: sql`r.id`,
    direction: direction(orderBy),
  };
}

/** How `account` relates to the repository, by the same rule as in REST: see `relationCondition`. */
function related(account: Sql, viewer: Sql, affiliations: string[]): Sql {
  const any: Sql[] = [];
  if (affiliations.includes("OWNER")) any.push(sql`r.owner_id = ${account}`);
  if (affiliations.includes("COLLABORATOR"))
    any.push(sql`(${account} = ${viewer} and r.owner_id is distinct from ${viewer})`);
  if (affiliations.includes("ORGANIZATION_MEMBER")) {
    any.push(sql`(${account} = ${viewer} and r.owner_id <> ${viewer}
      and exists (select from users o where o.id = r.owner_id and o.type = 'Organization'))`);
  }
  return sql.or(any);
}
