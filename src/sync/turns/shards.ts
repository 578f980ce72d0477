import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { Shard, ShardedTask } from "../../queues/jobs.ts";
import { enqueueShards } from "../../queues/queues.ts";

/** The whole fleet as one shard. */
export const WHOLE: Shard = { at: 0, of: 1, from: null, until: null };

/**
 * Somewhat fewer than GraphQL shows for a point, since shards grow until the next division. Smaller shards would cost
 * more points.
 */
export const REPOSITORIES_A_SHARD = 900;

/**
 * Whether a repository of this id is in the shard. Apply it to each table that a statement joins. Otherwise Postgres
 * reads the other tables whole for each shard.
 */
export function isInShard(id: SQL, { from, until }: Shard): SQL {
  const isBehind = from === null ? sql`true` : sql`${id} >= ${from}`;
  return until === null ? isBehind : sql`${isBehind} and ${id} < ${until}`;
}

/**
 * Divides the fleet into ranges of ids with about equally many live repositories. The primary key of each table finds
 * the rows of a range.
 * @param size how many repositories a shard has at least
 */
export async function shardsOf({ db }: Pick<Context, "db">, size = REPOSITORIES_A_SHARD): Promise<Shard[]> {
  // One scan, since this runs every minute. The row at place `at` belongs to shard at * of / live, rounded down. It is
  // the first of its shard if the row before it belongs to another.
  const firsts = await db.query<{ id: number }>(sql`
    select repository_id as id from (
        select repository_id, row_number() over (order by repository_id) - 1 as at, live, greatest(live / ${size}::int, 1) as of from (
            select repository_id, count(*) over () as live from repository_syncs where state = 'live') counted
      ) numbered where at * of % live < of order by at`);
  if (firsts.length < 2) return [WHOLE];
  return firsts.map(({ id }, at) => ({
    at,
    of: firsts.length,
    from: at === 0 ? null : id,
    until: firsts[at + 1]?.id ?? null,
  }));
}

/**
 * Does a task for all repositories: in this process if they are few, otherwise as jobs for any worker. A shard whose
 * job waits or runs gets no second job. Postgres knows what is due, so a process that leaves loses nothing.
 */
export async function inShards(
  ctx: Pick<Context, "db" | "redis" | "queues">,
  task: ShardedTask,
  work: (shard: Shard) => Promise<unknown>,
): Promise<void> {
  const shards = await shardsOf(ctx);
  const [only] = shards;
  if (only && shards.length === 1) await work(only);
  else await enqueueShards(ctx, task, shards);
}
