import { getTableColumns, getTableName, gt } from "drizzle-orm";
import type { Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { resources } from "../../kinds/registry.ts";
import { askAgainSince } from "../../mirror/store/marks.ts";
import { OUR_CLOCKS_APART_MS } from "../../mirror/store/merge-rule.ts";
import { NAME_AGE_MS } from "../../mirror/store/names.ts";
import { auditPages } from "../../schema.ts";
import { forgetValidatorsSince } from "../../upstream/conditional/validators.ts";
import { tryAgainSince } from "../problems/problems.ts";

/** What becomes of a time that lies ahead: it is unknown, or it counts as of now. */
type Mending = "unknown" | "now";

type Times = Readonly<Record<string, Readonly<Record<string, Mending>>>>;

/**
 * The times by our clock that say what is due, in tables with a row for each repository. Every sweep writes such times.
 * Only what may be repeated becomes unknown. The times of resources stand in large tables: the merge rule takes those
 * that lie ahead for unknown (`knownTime`).
 */
const TIMES: Times = {
  repository_syncs: {
    ...{ added_at: "now", backfilled_at: "now", parts_changed_at: "now", base_pushed_at: "now" },
    ...{ confirmed_at: "unknown", caught_up_at: "unknown", checks_confirmed_at: "now", lists_confirmed_at: "now" },
  },
  sweeps: {
    ...{ shown_at: "now", swept_at: "unknown", held_at: "unknown" },
    ...{ changed_at: "now", untold_at: "now", others_untold_at: "now" },
  },
  hook_checks: { asked_at: "unknown" },
  selections: { resolved_at: "unknown" },
};

/** The same, in tables that are looked through only where the others had such times: they have a row for each list. */
const TIMES_OF_LISTS: Times = {
  mirrored_lists: { heard_at: "now", read_at: "unknown" },
  checked_commits: { heard_at: "now", read_at: "unknown", suites_read_at: "unknown" },
  release_lists: { latest_read_at: "unknown" },
  ref_lists: { read_at: "unknown" },
  commit_lists: { read_at: "unknown" },
  people_lists: { heard_at: "now", read_at: "unknown", refused_at: "unknown" },
  found_changes: { found_at: "now", heard_at: "now", made_at: "now" },
};

/**
 * Mends the times that were stored while a clock of ours ran ahead. Work that is due then would wait until they have
 * come, and rows would be ordered wrongly by them. Answers how many rows had one.
 */
export async function putTimesRight({ db, clock, log }: Pick<Context, "db" | "clock" | "log">): Promise<number> {
  const now = clock.now();
  const ahead = new Date(now.getTime() + OUR_CLOCKS_APART_MS);
  const mended = await db.transaction(async (tx) => {
    let rows = 0;
    for (const [table, columns] of Object.entries(TIMES)) rows += await mend(tx, { table, columns, now, ahead });
    // An audit that began ahead would count all that was walked since as old.
    rows += await tx.count(sql`delete from audits where started_at > ${ahead} and finished_at is null`);
    rows += await mend(tx, { table: "audits", columns: { started_at: "now", finished_at: "now" }, now, ahead });
    rows += await tryAgainSince(tx, ahead, now);
    rows += await askAgainSince(tx, ahead, now);
    if (rows === 0) return 0;
    for (const [table, columns] of Object.entries(TIMES_OF_LISTS))
      rows += await mend(tx, { table, columns, now, ahead });
    for (const { list } of resources) {
      if (!list) continue;
      const has = getTableColumns(list.table);
      const columns: TimesOfTable["columns"] = {
        read_at: "unknown",
        ...("heardAt" in has && { heard_at: "now" }),
        ...("walkedAt" in has && { walked_at: "unknown" }),
      };
      rows += await mend(tx, { table: getTableName(list.table), columns, now, ahead });
    }
    const namesAhead = new Date(ahead.getTime() + NAME_AGE_MS);
    rows += await mend(tx, { table: "account_names", columns: { due_at: "now" }, now, ahead: namesAhead });
    await tx.delete(auditPages).where(gt(auditPages.walkedAt, ahead));
    await forgetValidatorsSince(tx, ahead);
    return rows;
  });
  if (mended > 0)
    log.warn({ rows: mended }, "Times ahead of this clock were stored, and are put right: a clock ran ahead");
  return mended;
}

interface TimesOfTable {
  table: string;
  columns: Readonly<Record<string, Mending>>;
  now: Date;
  ahead: Date;
}

async function mend(tx: Queries, { table, columns, now, ahead }: TimesOfTable): Promise<number> {
  const isAhead = (column: string) => sql`${sql.identifier(column)} > ${ahead}`;
  const values = Object.entries(columns).map(([column, to]): SQL => {
    const name = sql.identifier(column);
    return sql`${name} = case when ${isAhead(column)} then ${to === "now" ? now : null}::timestamptz else ${name} end`;
  });
  return await tx.count(sql`
    update ${sql.identifier(table)} set ${sql.join(values)}
      where ${sql.join(Object.keys(columns).map(isAhead), " or ")}`);
}
