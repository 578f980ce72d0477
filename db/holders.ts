import { lookUntil, type Waiting } from "../src/waits/repeated.ts";
import { type SQL, sql } from "./sql.ts";

/**
 * The transactions, as `holder`, that hold a lock of this mode on a relation, and may have done there what the mode is
 * for. Postgres gives weak locks on any relation to every login, and keeps them until the transaction's end: `prepare`
 * and `nextval` lock before they ask for rights. So a lock counts only where the login is a member of a role that has
 * the right. Reading all locks takes milliseconds.
 */
export function lockHolders(relation: "event_place" | "listeners", mode: "AccessShareLock" | "RowExclusiveLock"): SQL {
  const named = sql`${relation}::text::regclass`;
  const may =
    relation === "event_place"
      ? sql`has_sequence_privilege(r.oid, ${named}, 'usage')`
      : sql`has_table_privilege(r.oid, ${named}, 'select')`;
  return sql`
    select l.virtualtransaction || ' ' || coalesce(l.pid, 0) as holder
      from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'relation' and l.relation = ${named} and l.mode = ${mode} and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and l.pid is distinct from pg_backend_pid()
        and (a.usesysid is null or exists (select from pg_roles r where pg_has_role(a.usesysid, r.oid, 'member') and ${may}))`;
}

/** Looks until those who hold the lock at the first look have ended. False: one of them did not in time. */
export async function holdersEnd(
  look: () => Promise<readonly { holder: string }[]>,
  waiting: Waiting,
): Promise<boolean> {
  let awaited: readonly string[] | null = null;
  return await lookUntil(async () => {
    const holders = (await look()).map(({ holder }) => holder);
    awaited = awaited?.filter((one) => holders.includes(one)) ?? holders;
    return awaited.length === 0;
  }, waiting);
}
