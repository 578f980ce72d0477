import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { repositoriesWithoutJob } from "../../queues/open-jobs.ts";
import { enqueueBackfills, enqueueCatchUps } from "../../queues/queues.ts";
import { rests } from "./problems.ts";

const WOKEN_AT_ONCE = 100;

/**
 * Queues backfills and catch-ups that failed, as a whole or in part, once they have been left alone for long enough. So
 * they need not wait for the next interval. All other failed work is found by its own task.
 */
export async function wakeRested(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock">,
  signal?: AbortSignal,
): Promise<void> {
  const rows = await ctx.db.query<{ task: "backfill" | "catch-up" | "part"; id: number }>(sql`
    select p.task, p.repository_id as id from problems p join repository_syncs s using (repository_id)
      where p.next_at <= ${ctx.clock.now()} and (p.task = 'backfill' and s.state = 'backfilling'
        or p.task = 'catch-up' and s.state in ('live', 'paused')
        or p.task = 'part' and s.state = 'live' and not ${rests(ctx, "catch-up", sql`p.repository_id::text`)})
      order by p.next_at limit ${WOKEN_AT_ONCE}`);
  const idsOf = (isBackfill: boolean) => [
    ...new Set(rows.filter((row) => (row.task === "backfill") === isBackfill).map(({ id }) => id)),
  ];
  const backfills = await repositoriesWithoutJob(ctx, "backfill", idsOf(true));
  if (!signal?.aborted) await enqueueBackfills(ctx, backfills);
  const catchUps = await repositoriesWithoutJob(ctx, "catchUp", idsOf(false));
  if (!signal?.aborted) await enqueueCatchUps(ctx, catchUps);
}
