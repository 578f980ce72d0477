import type { Database } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";

/** Part of a list by page number. */
interface PageBounds {
  offset: number;
  limit: number;
}

/** The same of a list whose length may be known, or be told only so far. */
export interface CountedBounds extends PageBounds {
  /** Knows the length, or has it counted. Absent: it is counted. */
  counted?: (count: () => Promise<number>) => Promise<number>;
  /** A longer list is said to have so many rows. */
  most?: number;
}

/**
 * A page of a repository's resources, found by its place, and how many there are in all. Behind the last row nothing is
 * looked for.
 * @param matching `from` a table `t` and `where`
 * @param order of the rows `t`
 * @param more further columns of a row
 */
export async function findNumberedPage<More extends object = object>(
  db: Database,
  repositoryId: number,
  {
    matching,
    order,
    more = sql``,
    offset,
    limit,
    most,
    counted = (count) => count(),
  }: CountedBounds & { matching: SQL; order: SQL; more?: SQL },
): Promise<{ rows: (StoredDocument & More)[]; total: number }> {
  const counting = most === undefined ? matching : sql`from (select ${matching} limit ${most}) t`;
  const total = await counted(async () => {
    const [row] = await db.prepared<{ total: number }>(sql`select count(*) as total ${counting}`);
    return row?.total ?? 0;
  });
  if (total <= offset) return { rows: [], total };
  const rows = await db.prepared<{ document: string } & More>(sql`
    select t.document::text as document ${more} ${matching} order by ${order} limit ${limit} offset ${offset}`);
  return { rows: rows.map((row) => ({ repositoryId, ...row })), total };
}
