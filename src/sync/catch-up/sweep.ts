import { alone } from "../../../db/alone.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { enqueueCatchUp } from "../../queues/enqueue.ts";
import { findListsDue, sweepLists } from "./sweep-lists.ts";
import { sweepRepositories } from "./sweep-repositories.ts";

/** Up to so many repositories each is simply caught up with at every interval; above, sweeps say where it is needed. */
export const SMALL_FLEET = 20;
/**
 * Above so many, REST's pace (900 requests a minute, four or five lists each) does not suffice for all lists at every
 * interval. Then points are spent on milestones, seven for a thousand repositories.
 */
const LARGE_FLEET = 600;

/** How many repositories' lists are asked for at once. */
const PROBES_AT_ONCE = 8;
export interface SweepOptions {
  signal?: AbortSignal | undefined;
  /** From how many repositories on points are spent on what REST's pace leaves no room for. */
  largeFleet?: number;
}

/**
 * Asks about all repositories that are due what moves when they do, and for a catch-up of those that moved. The
 * repositories themselves are asked for by GraphQL, a point for a thousand; then the ends of their lists, conditionally,
 * which costs nothing while they stay the same. What the pace of requests holds up goes on where it stopped.
 */
export async function sweep(ctx: Context, options: SweepOptions = {}): Promise<{ swept: number; changed: number }> {
  return (await alone(ctx, "sweep", () => sweepDue(ctx, options))) ?? { swept: 0, changed: 0 };
}

async function sweepDue(
  ctx: Context,
  { signal, largeFleet = LARGE_FLEET }: SweepOptions,
): Promise<{ swept: number; changed: number }> {
  const changed = new Set<number>();
  let swept = 0;
  try {
    await sweepRepositories(ctx, changed, await asksMilestones(ctx, largeFleet));
    const due = await findListsDue(ctx);
    while (swept < due.length && !signal?.aborted) {
      const some = due.slice(swept, swept + PROBES_AT_ONCE);
      for (const repositoryId of await sweepLists(ctx, some)) changed.add(repositoryId);
      swept += some.length;
    }
  } finally {
    // Also when the quota ends half-way: what was found by then need not wait.
    await enqueueChanged(ctx);
  }
  return { swept, changed: changed.size };
}

/** Whether milestones are asked for with the repositories. An App is told of changes, so there the free question will do. */
async function asksMilestones({ db, config }: Context, largeFleet: number): Promise<boolean> {
  if (config.appId !== null) return false;
  const rows = await db.query<{ live: number }>(sql`
    select count(*)::int as live from repository_syncs where state = 'live'`);
  return (rows[0]?.live ?? 0) >= largeFleet;
}

/**
 * Asks for a catch-up wherever the last one began before each of upstream's replicas knew of the change: what Redis forgot is
 * asked for again, and so is what a replica that lags may have hidden.
 */
async function enqueueChanged(ctx: Context): Promise<void> {
  const lag = `${REPLICA_LAG_MS} milliseconds`;
  const rows = await ctx.db.query<{ repository_id: string }>(sql`
    select w.repository_id from sweeps w join repository_syncs s using (repository_id)
      where s.state = 'live' and w.changed_at is not null
        and (s.confirmed_at is null or s.confirmed_at <= w.changed_at + ${lag}::interval)`);
  for (const { repository_id } of rows) await enqueueCatchUp(ctx, { repositoryId: Number(repository_id) });
}
