import { and, eq } from "drizzle-orm";
import { among, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import type { Context } from "../../context.ts";
import { resources } from "../../kinds/registry.ts";
import { HAS_HISTORY } from "../../mirror/store/history.ts";
import { partOf } from "../../mirror/store/lists.ts";
import { repositorySyncs, selections } from "../../schema.ts";

/** Sets the parts that a selection adds to those of `MIRROR`. */
export async function selectParts(
  { db }: Pick<Context, "db">,
  pattern: string,
  parts: readonly MirrorPart[],
): Promise<void> {
  await db
    .update(selections)
    .set({ mirrors: parts.length > 0 ? [...parts] : null })
    .where(eq(selections.pattern, pattern.toLowerCase()));
}

/**
 * Brings each repository's parts in line with `MIRROR` and the selections. A part that is no longer mirrored is
 * forgotten, since its webhooks are no longer applied.
 */
export async function settleParts({ db, config, clock }: Pick<Context, "db" | "config" | "clock">): Promise<void> {
  await db.transaction(async (tx) => {
    const changed = await tx.query<{ id: number }>(sql`
      update repository_syncs s set mirrors = w.mirrors, parts_changed_at = ${clock.now()}
        from (select r.id, array(select distinct part from (
              select unnest(${config.mirror}::text[]) as part
              union all select unnest(l.mirrors) from selections l
                where l.pattern in (folded(r.full_name), split_part(folded(r.full_name), '/', 1) || '/*')) p order by part) as mirrors
            from repositories r) w
        where s.repository_id = w.id and s.mirrors <> w.mirrors returning s.repository_id as id`);
    if (changed.length === 0) return;
    const ids = changed.map(({ id }) => id);
    await tx.query(sql`
      delete from checked_commits c using repository_syncs s where s.repository_id = c.repository_id
        and s.repository_id = any(${ids}::bigint[]) and not 'checks' = any(s.mirrors)`);
    await tx
      .update(repositorySyncs)
      .set({ checksConfirmedAt: null })
      .where(and(among(repositorySyncs.repositoryId, ids), sql`not 'checks' = any(${repositorySyncs.mirrors})`));
    await tx.query(sql`
      delete from mirrored_lists l using repository_syncs s where s.repository_id = l.repository_id
        and s.repository_id = any(${ids}::bigint[])
        and not ${partOf(sql`l.list`)} = any(s.mirrors)`);
    // A new part has to be read whole, and a part that was dropped is no longer confirmed.
    await tx.update(repositorySyncs).set({ listsConfirmedAt: null }).where(among(repositorySyncs.repositoryId, ids));
    const lists = resources.flatMap(({ part, list, listBelow }) =>
      [list, listBelow].map((one) => ({ part, list: one })),
    );
    for (const { part, list } of lists)
      if (list)
        await tx.query(sql`
        update ${list.table} l set read_at = null from repository_syncs s
          where s.repository_id = l.repository_id and s.repository_id = any(${ids}::bigint[]) and not ${part} = any(s.mirrors)`);
    await tx.query(sql`
      update ref_lists l set read_at = null from repository_syncs s
        where s.repository_id = l.repository_id and s.repository_id = any(${ids}::bigint[])
          and not 'refs' = any(s.mirrors)`);
    // Without branches nothing says where a history begins.
    await tx.query(sql`
      update commit_lists l set head_sha = null, reading_sha = null from repository_syncs s
        where s.repository_id = l.repository_id and s.repository_id = any(${ids}::bigint[])
          and not ${HAS_HISTORY}`);
    await tx.query(sql`
      update people_lists l set read_at = null from repository_syncs s
        where s.repository_id = l.repository_id and s.repository_id = any(${ids}::bigint[])
          and not 'people' = any(s.mirrors)`);
    tx.touch(ids);
  });
}
