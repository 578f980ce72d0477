import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";
import { type IssueFilter, type IssueOrder, issueConditions, SORT_KEYS } from "./issues.ts";
import { MIRRORED_REPOSITORIES } from "./repositories.ts";
import { type Sight, visible } from "./sight.ts";

export interface IssueAcross {
  repositoryId: number;
  document: string;
  body: string | null;
  repository: { document: string };
}

/** Which repositories' issues; each condition is left out when it is undefined. */
export interface AcrossFilter extends IssueFilter {
  ownerId?: number | undefined;
  /** Of repositories that this account owns (true) or does not (false). */
  ownedBy?: { id: number; is: boolean } | undefined;
  /** Of repositories that an organisation owns (true) or a person (false). */
  isOrganizations?: boolean | undefined;
  /** Pull requests too. */
  hasPulls: boolean;
}

/** A page of issues of all repositories that are seen, newest first unless ordered otherwise, and how many match in all. */
export async function findIssuesAcross(
  db: Database,
  sight: Sight,
  filter: AcrossFilter,
  { sort, direction }: IssueOrder,
  page: { limit: number; offset: number },
): Promise<{ rows: IssueAcross[]; total: number }> {
  const matching = () => {
    const statement = new Statement();
    statement.where(visible(statement, "r", sight));
    for (const condition of issueConditions(statement, filter)) statement.where(condition);
    if (!filter.hasPulls) statement.where("not i.is_pull_request");
    if (filter.ownerId !== undefined) statement.where(`r.owner_id = ${statement.value(filter.ownerId)}`);
    if (filter.ownedBy) {
      const { id, is } = filter.ownedBy;
      statement.where(`r.owner_id is ${is ? "not " : ""}distinct from ${statement.value(id)}`);
    }
    if (filter.isOrganizations !== undefined) {
      const owned = "exists (select from users o where o.id = r.owner_id and o.type = 'Organization')";
      statement.where(filter.isOrganizations ? owned : `not ${owned}`);
    }
    return statement;
  };
  const from = `${MIRRORED_REPOSITORIES.replace(" where ", " join issues i on i.repository_id = r.id where ")}`;
  const count = matching();
  const [counted] = await count.rows<{ total: string }>(db, `select count(*) as total ${from} and ${count.conditions}`);
  const total = Number(counted?.total ?? 0);
  if (total <= page.offset) return { rows: [], total };

  const statement = matching();
  const rows = await statement.rows<{
    repository_id: string;
    document: string;
    body: string | null;
    repository_document: string;
  }>(
    db,
    `select i.repository_id, i.document::text as document, i.body, r.document::text as repository_document
      ${from} and ${statement.conditions} order by ${SORT_KEYS[sort]} ${direction}, i.id ${direction}
      limit ${statement.value(page.limit)} offset ${statement.value(page.offset)}`,
  );
  return {
    rows: rows.map((row) => ({
      repositoryId: Number(row.repository_id),
      document: row.document,
      body: row.body,
      repository: { document: row.repository_document },
    })),
    total,
  };
}
