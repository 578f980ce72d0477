import { getTableName } from "drizzle-orm";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { resources } from "../../kinds/registry.ts";

/** What a copy fills beside the tables of resources. */
const LISTS: readonly string[] = ["issue_labels", "issue_assignees"];
const COPIED: readonly string[] = [...new Set([...resources.map(({ table }) => getTableName(table)), ...LISTS])];

/**
 * Has Postgres look at the tables that copies have filled. Before that it takes them for nearly empty, and plans
 * searches that take seconds, until its own upkeep comes by a minute later. Only tables that changed as much as that
 * upkeep waits for are looked at, so many copies cost little more than one. It runs outside transactions, passes over
 * a table that another process looks at, and reads a bounded sample of each. On Postgres 15 and 16 only the owner of a
 * table may do it.
 */
export async function analyzeCopied({ db, log }: Pick<Context, "db" | "log">): Promise<void> {
  // Connections report what they changed up to a second later, so the last page may not be counted yet.
  const grown = await db.query<{ name: string; isAllowed: boolean }>(sql`
    select c.relname as name,
        case when current_setting('server_version_num')::integer >= 170000
          then has_table_privilege(c.oid, 'MAINTAIN') else pg_has_role(c.relowner, 'USAGE') end as "isAllowed"
      from pg_class c join pg_stat_user_tables s on s.relid = c.oid
      where c.relnamespace = 'public'::regnamespace and c.relname = any(${COPIED})
        and s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
      order by name`);
  const refused = grown.filter(({ isAllowed }) => !isAllowed).map(({ name }) => name);
  if (refused.length > 0) log.debug({ tables: refused }, "This role may not analyze tables; Postgres will by itself");
  for (const { name, isAllowed } of grown)
    if (isAllowed) await db.query(sql`analyze (skip_locked) ${sql.identifier(name)}`);
}
