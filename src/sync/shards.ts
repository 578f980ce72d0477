import { type Sql, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { enqueueShards } from "../queues/enqueue.ts";
import type { Shard, ShardedTask } from "../queues/jobs.ts";

/** A fleet that one worker looks after at once. */
export const WHOLE: Shard = { at: 0, of: 1, from: null, until: null };

/** Somewhat fewer than GraphQL shows for one point, since shards grow before they are divided anew; smaller ones would cost more points. */
export const REPOSITORIES_A_SHARD = 900;

/**
 * Whether a repository of this id is in the shard. Asked of each table that a statement joins: otherwise Postgres reads the others
 * whole for each shard.
 */
export function isIn(id: Sql, { from, until }: Shard): Sql {
  const isBehind = from === null ? sql`true` : sql`${id} >= ${from}`;
  return until === null ? isBehind : sql`${isBehind} and ${id} < ${until}`;
}

/**
 * The fleet in ranges of ids, which hold about as many live repositories each. The primary key of each table finds the rows of a range, and
 * rows that were added together lie together.
 * @param size how many repositories a shard has at least
 */
export async function shardsOf({ db }: Pick<Context, "db">, size = REPOSITORIES_A_SHARD): Promise<Shard[]> {
  // One scan: this is asked every minute. A row is the first of its shard where the whole part of at * of / live is a new one.
  const firsts = await db.query<{ id: number }>(sql`
    select repository_id::float8 as id from (
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
 * Does a task for all repositories: itself if they are few, otherwise as jobs that any worker takes. A shard whose job waits or
 * runs gets no second one. What is due stands in Postgres, so a process that joins or leaves takes nothing along.
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
