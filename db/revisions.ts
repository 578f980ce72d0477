import { sql } from "./sql.ts";

/** Stands for people, and for everything else that belongs to no repository. */
export const PEOPLE = 0;

/**
 * Names the history of the database that the server follows. Null on a primary whose history has not been named: it was
 * promoted just now. A replica knows the name once it has replayed it, and so follows that history.
 */
const PRESENT_ERA = sql`(select e.id from eras e where case when pg_is_in_recovery() then true
  else e.timeline = left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) end)`;

/**
 * The revision of a row `v` of `revisions`, or of no row, in a form to compare. It names the history, since another
 * history may have given the same number to something else. Null: the history has no name yet.
 */
export const COMPARED_REVISION = sql`(${PRESENT_ERA} || '/' || coalesce(v.revision, 0))`;

/** Whether two of these are of one history, as far as that is known. */
export function isOfOneEra(one: string | null | undefined, other: string | null | undefined): boolean {
  return one === other || one?.split("/", 1)[0] === other?.split("/", 1)[0];
}
