import type { Database } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";

/** Part of a list by page number. */
export interface PageBounds {
  offset: number;
  limit: number;
}

/**
 * A page of a repository's resources, found by its place, and how many there are in all.
 * @param matching `from` a table `t` and `where`
 * @param order of the rows `t`
 */
export async function findNumberedPage(
  db: Database,
  repositoryId: number,
  { matching, order, offset, limit }: PageBounds & { matching: SQL; order: SQL },
): Promise<{ rows: StoredDocument[]; total: number }> {
  const [[counted], rows] = await Promise.all([
    db.prepared<{ total: number }>(sql`select count(*)::integer as total ${matching}`),
    db.prepared<{ document: string }>(sql`
      select t.document::text as document ${matching} order by ${order} limit ${limit} offset ${offset}`),
  ]);
  return { rows: rows.map(({ document }) => ({ repositoryId, document })), total: counted?.total ?? 0 };
}
