import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type RepositoryMarkKind, repositoryMark, storeMarks } from "../../mirror/store/marks.ts";
import { rests } from "../problems/problems.ts";
import { enqueueMarks } from "./marks.ts";

const DUE_AT_ONCE = 1_000;

/**
 * Marks repositories that have a part due. Those that were confirmed longest ago come first.
 * `isDue` and `confirmedAt` are of a repository `r` with its row `s` of `repository_syncs`.
 */
export async function markRepositoriesDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
  kind: RepositoryMarkKind,
  { isDue, confirmedAt }: { isDue: SQL; confirmedAt: SQL },
): Promise<void> {
  const now = ctx.clock.now();
  const rows = await ctx.db.query<{ id: number }>(sql`
    select r.id from repositories r join repository_syncs s on s.repository_id = r.id
      where s.state = 'live' and not ${rests(ctx, "refresh", sql`r.id::text`)}
        and not exists (select from refresh_marks m where m.kind = ${kind} and m.repository_id = r.id)
        and ${isDue}
      order by ${confirmedAt} nulls first, r.id limit ${DUE_AT_ONCE}`);
  const marks = rows.map(({ id }) => repositoryMark(kind, id, now));
  await storeMarks(ctx.db, marks);
  await enqueueMarks(ctx, marks);
}
