import { count, eq } from "drizzle-orm";
import { alone } from "../../../db/alone.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Shard } from "../../queues/jobs.ts";
import { enqueueCatchUps } from "../../queues/queues.ts";
import { repositorySyncs } from "../../schema.ts";
import { rests } from "../problems/problems.ts";
import { isInShard, REPOSITORIES_A_SHARD, WHOLE } from "../turns/shards.ts";
import { findListsDue, sweepLists } from "./sweep-lists.ts";
import { sweepRepositories } from "./sweep-repositories.ts";
import { sweepTold } from "./sweep-told.ts";

/**
 * Above this many, REST's pace (900 requests a minute, four or five lists each) does not suffice for all lists at every
 * interval. Then milestones cost points, seven for a thousand repositories.
 */
const LARGE_FLEET = 600;

export interface SweepOptions {
  signal?: AbortSignal | undefined;
  shard?: Shard;
  /** From this many repositories on, points are spent on questions that REST's pace has no room for. */
  largeFleet?: number;
}

/**
 * Asks cheap questions about all repositories of the shard that are due, and asks for a catch-up of those that changed.
 * GraphQL shows the repositories themselves, a thousand for a point. REST shows the ends of their lists, conditionally
 * and free while unchanged. If the pace of requests holds the sweep up, it continues where it stopped. A repository or
 * a group that fails delays no other.
 * @throws QuotaSpentError, CredentialRejectedError at the end, when some have to wait
 */
export async function sweep(ctx: Context, options: SweepOptions = {}): Promise<{ swept: number; changed: number }> {
  const { at, of } = options.shard ?? WHOLE;
  const name = `sweep ${at} of ${of}`;
  const swept = await alone(ctx, name, (signal) => sweepDue(ctx, { ...options, signal }), { signal: options.signal });
  return swept ?? { swept: 0, changed: 0 };
}

async function sweepDue(
  ctx: Context,
  { signal, shard = WHOLE, largeFleet = LARGE_FLEET }: SweepOptions,
): Promise<{ swept: number; changed: number }> {
  const changed = new Set<number>();
  try {
    const withMilestones = await asksMilestones(ctx, shard, largeFleet);
    const whole = await sweepRepositories(ctx, changed, { shard, withMilestones, signal });
    const told = await sweepTold(ctx, changed, { shard, signal });
    const { swept, waiting } = await sweepLists(ctx, await findListsDue(ctx, shard), { changed, signal });
    const anyWaits = waiting ?? told.waiting ?? whole;
    if (anyWaits) throw anyWaits;
    return { swept: swept.union(told.swept).size, changed: changed.size };
  } finally {
    // Runs even if the quota ended half-way: changes found by then need not wait.
    await enqueueChanged(ctx, shard);
  }
}

/** Whether GraphQL shows milestones with the repositories. With an App, webhooks and the free question suffice. */
async function asksMilestones({ db, config }: Context, shard: Shard, largeFleet: number): Promise<boolean> {
  if (config.appId !== null) return false;
  // The number of shards already tells the size of the fleet.
  if (shard.of > 1) return shard.of * REPOSITORIES_A_SHARD >= largeFleet;
  const rows = await db.select({ live: count() }).from(repositorySyncs).where(eq(repositorySyncs.state, "live"));
  return (rows[0]?.live ?? 0) >= largeFleet;
}

/** So far, as a part of their interval, catch-ups of a repository lie apart whose webhooks get lost all the time. */
const SPACED = 0.5;

/**
 * Asks for a catch-up of each repository whose last catch-up began before every replica knew of the change. So a
 * request that Redis forgot is repeated, and a lagging replica hides nothing for good.
 */
async function enqueueChanged(ctx: Context, shard: Shard): Promise<void> {
  const lag = `${REPLICA_LAG_MS} milliseconds`;
  // Where webhooks get lost all the time, each look finds another one.
  const spaced = new Date(ctx.clock.now().getTime() - ctx.config.catchUpIntervalMs * SPACED);
  const rows = await ctx.db.query<{ id: number }>(sql`
    select w.repository_id as id from sweeps w join repository_syncs s using (repository_id)
      where ${isInShard(sql`w.repository_id`, shard)} and ${isInShard(sql`s.repository_id`, shard)}
        and s.state = 'live' and w.changed_at is not null and not ${rests(ctx, "catch-up", sql`w.repository_id::text`)}
        and (s.caught_up_at is null or (s.caught_up_at <= w.changed_at + ${lag}::interval
          and (w.swept_at >= w.shown_at or s.caught_up_at <= ${spaced})))`);

  await enqueueCatchUps(
    ctx,
    rows.map(({ id }) => id),
  );
}
