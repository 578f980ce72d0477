import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** How many deliveries have waited since before that moment; `most`, if there are more. */
export async function countWaiting({ db }: Pick<Context, "db">, before: Date, most: number): Promise<number> {
  const [row] = await db.prepared<{ late: number }>(sql`select count(*)::int as late from (
    select from deliveries where status = 'pending' and received_at < ${before} limit ${most}) late`);
  return row?.late ?? 0;
}

/** The deliveries that need an operator: those that failed, and those that have waited since before that moment. */
export async function countTroubled(
  { db }: Pick<Context, "db">,
  before: Date,
): Promise<{ failed: number; overdue: number }> {
  const [row] = await db.query<{ failed: number; overdue: number }>(sql`
    select count(*) filter (where status = 'failed')::integer as failed,
      count(*) filter (where status = 'pending' and received_at < ${before})::integer as overdue from deliveries`);
  return row ?? { failed: 0, overdue: 0 };
}
