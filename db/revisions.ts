import { sql } from "./sql.ts";

/** The id under which people, and everything else outside repositories, have their revision. */
export const PEOPLE = 0;

/** Whether the primary writes the era `e`. A server that takes no writes refuses the question. */
const IS_WRITTEN = "e.timeline = left(pg_walfile_name(pg_current_wal_flush_lsn()), 8)";

/** The `era` that the primary writes; null: it has no name yet. A replica refuses the query, so it is not believed. */
export const ERA_OF_PRIMARY = `select e.id::text as era from eras e where ${IS_WRITTEN}`;

/**
 * The `era` of a replica, for a process that reads only from it. It changes when the replica starts again, so that
 * older kept values are not believed: the replica may have been made anew from a server that lost changes.
 */
export const ERA_OF_REPLICA =
  "select e.id || '@' || extract(epoch from pg_postmaster_start_time()) as era from eras e where pg_is_in_recovery()";

/**
 * The era of the server, whether it is a primary or a replica. Null on a primary that was promoted just now, until its
 * era has a name. A replica knows the name as soon as it has replayed the row, and then it follows that era.
 */
const PRESENT_ERA = sql`(select e.id from eras e where case when pg_is_in_recovery() then true
  else ${sql.script(IS_WRITTEN)} end)`;

/**
 * The revision of a row `v` of `revisions` (0 without a row), as text to compare. It includes the era, because another
 * era may have given the same number to other contents. Null: the era has no name yet.
 */
export const COMPARED_REVISION = sql`(${PRESENT_ERA} || '/' || coalesce(v.revision, 0))`;

/** Whether two such texts are of the same era. Unknown ones count as the same. */
export function isOfOneEra(one: string | null | undefined, other: string | null | undefined): boolean {
  return one === other || one?.split("/", 1)[0] === other?.split("/", 1)[0];
}
