import type { Database } from "../../../db/database.ts";
import { DIRECTIONS, sql } from "../../../db/sql.ts";
import { ISSUE_SORT_KEYS, type IssueFilter, type IssueOrder, issueConditions } from "./issues.ts";
import { type AccessScope, MIRRORED_REPOSITORIES, visibleIssue } from "./repositories.ts";

export interface IssueAcross {
  repositoryId: number;
  document: string;
  body: string | null;
  repository: { document: string };
}

/** Which repositories to list issues of; an undefined condition does not filter. */
export interface AcrossFilter extends IssueFilter {
  ownerId?: number | undefined;
  /** Only in repositories that this account owns (true) or does not own (false). */
  ownedBy?: { id: number; is: boolean } | undefined;
  /** Of repositories that an organisation owns (true) or a person (false). */
  isOrganizations?: boolean | undefined;
}

/**
 * A page of issues of all repositories that are seen, newest first unless ordered otherwise, and how many match in all.
 */
export async function findIssuesAcross(
  db: Database,
  access: AccessScope,
  filter: AcrossFilter,
  { sort, direction }: IssueOrder,
  page: { limit: number; offset: number },
): Promise<{ rows: IssueAcross[]; total: number }> {
  const conditions = [visibleIssue(sql`r`, sql`i`, access), ...issueConditions(filter)];
  if (filter.ownerId !== undefined) conditions.push(sql`r.owner_id = ${filter.ownerId}`);
  if (filter.ownedBy) {
    const { id, is } = filter.ownedBy;
    conditions.push(is ? sql`r.owner_id is not distinct from ${id}` : sql`r.owner_id is distinct from ${id}`);
  }
  if (filter.isOrganizations !== undefined) {
    const owned = sql`exists (select from users o where o.id = r.owner_id and o.type = 'Organization')`;
    conditions.push(filter.isOrganizations ? owned : sql`not ${owned}`);
  }
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const matching = sql`from ${tables} join issues i on i.repository_id = r.id
    where ${sql.and([isMirrored, ...conditions])}`;
  const [counted] = await db.prepared<{ total: number }>(sql`select count(*) as total ${matching}`);
  const total = counted?.total ?? 0;
  if (total <= page.offset) return { rows: [], total };

  const way = DIRECTIONS[direction];
  const rows = await db.prepared<{
    repository_id: number;
    document: string;
    body: string | null;
    repository_document: string;
  }>(sql`
    select i.repository_id, i.document::text as document, i.body, r.document::text as repository_document ${matching}
      order by ${ISSUE_SORT_KEYS[sort]} ${way}, i.id ${way} limit ${page.limit} offset ${page.offset}`);
  return {
    rows: rows.map((row) => ({
      repositoryId: row.repository_id,
      document: row.document,
      body: row.body,
      repository: { document: row.repository_document },
    })),
    total,
  };
}
