import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** Since when no copy is under way, by our clock; the epoch: there was none. Null: one is. */
export async function copiesEndedAt({ db }: Pick<Context, "db">): Promise<Date | null> {
  const [row] = await db.query<{ ended_at: Date | null }>(sql`
    select case when not coalesce(bool_or(state = 'backfilling' and problem is null), false)
      then coalesce(max(backfilled_at), to_timestamp(0)) end as ended_at from repository_syncs`);
  return row?.ended_at ?? null;
}
