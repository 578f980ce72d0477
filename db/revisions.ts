import { sql } from "./sql.ts";

/** The id under which people, and everything else outside repositories, have their revision. */
export const PEOPLE = 0;

/**
 * The name of the database history that the server follows. Null on a primary that was promoted just now, until its
 * history is named. A replica knows the name as soon as it has replayed the row, and then it follows that history.
 */
const PRESENT_ERA = sql`(select e.id from eras e where case when pg_is_in_recovery() then true
  else e.timeline = left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) end)`;

/**
 * The revision of a row `v` of `revisions` (0 without a row), as text to compare. It includes the history's name,
 * because another history may have given the same number to other contents. Null: the history has no name yet.
 */
export const COMPARED_REVISION = sql`(${PRESENT_ERA} || '/' || coalesce(v.revision, 0))`;

/** Whether two such texts are of the same history. Unknown ones count as the same. */
export function isOfOneEra(one: string | null | undefined, other: string | null | undefined): boolean {
  return one === other || one?.split("/", 1)[0] === other?.split("/", 1)[0];
}
