import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { BIGINT, contains, direction, type Order, type PageSource, TEXT } from "./pages.ts";

export interface LabelRow {
  id: number;
  /** When the label was first seen, or last seen to have changed. */
  changedAt: Date;
  document: string;
}

/**
 * A page of the repository's labels, and how many there are; `milestoneId`: of those that its issues carry. GitHub was
 * recorded to list them by name.
 */
export async function findLabels(
  db: Database,
  repositoryId: number,
  page: { limit: number; offset: number; milestoneId?: number },
): Promise<{ rows: Omit<LabelRow, "changedAt">[]; total: number }> {
  const { limit, offset, milestoneId } = page;
  const conditions = [sql`l.repository_id = ${repositoryId}`, sql`l.deleted_at is null`];
  if (milestoneId !== undefined) {
    conditions.push(sql`l.id in (select il.label_id from issue_labels il
      join issues i on i.repository_id = il.repository_id and i.number = il.number and i.deleted_at is null
      where il.repository_id = l.repository_id and i.milestone_id = ${milestoneId})`);
  }
  const matching = sql`from labels l where ${sql.and(conditions)}`;
  const rows = await db.prepared<Omit<LabelRow, "changedAt"> & { total: number }>(sql`
    select q.total, p.* from (select count(*) as total ${matching}) q left join lateral
      (select l.id, folded(l.name) as name, l.document::text as document ${matching}
       order by folded(l.name), l.id limit ${limit} offset ${offset}) p on true order by p.name, p.id`);
  return { rows: rows.filter((row) => row.id !== null), total: rows[0]?.total ?? 0 };
}

export async function findLabel(db: Database, repositoryId: number, name: string): Promise<LabelRow | null> {
  // A deleted label's name may be taken by a new one before we hear of the deletion: ids grow.
  const [label] = await db.prepared<LabelRow>(sql`
    select l.id, l.document::text as document, coalesce(l.changed_at, l.seen_at) as "changedAt" from labels l
      where l.repository_id = ${repositoryId} and l.deleted_at is null and folded(l.name) = folded(${name}::text)
      order by l.id desc limit 1`);
  return label ?? null;
}

export function labelSource({ orderBy, query }: { orderBy?: Order | null; query?: string | null }): PageSource {
  return {
    from: sql`labels l`,
    isFiltered: query != null,
    repositoryId: sql`l.repository_id`,
    document: sql`l.document`,
    conditions: [
      sql`l.repository_id = x.r and l.deleted_at is null`,
      ...contains([sql`l.name`, sql`l.description`], query),
    ],
    // Upstream does not send when a label was made, but later labels have larger ids.
    ...(orderBy?.field === "NAME" ? { key: sql`folded(l.name)`, keyType: TEXT } : { key: sql`l.id`, keyType: BIGINT }),
    rowId: sql`l.id`,
    direction: direction(orderBy),
  };
}
