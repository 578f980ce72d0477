import { type Sql, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { enqueueShards } from "../queues/enqueue.ts";
import type { Shard, ShardedTask } from "../queues/jobs.ts";

/** A fleet that one worker looks after at once. */
export const WHOLE: Shard = { at: 0, of: 1 };

/** Somewhat fewer than GraphQL shows for one point, since shards are not quite equal; smaller ones would cost more points. */
const REPOSITORIES_A_SHARD = 900;

/** Repositories fall into so many slots by their ids, and a shard is a range of them: an index of slots finds its rows. */
const SLOTS = 1024;

/**
 * Whether a repository of this id is in the shard. Nothing is stored of it, so any number of shards cover all repositories. Asked of
 * each table that a statement joins: otherwise Postgres reads the others whole for each shard.
 */
export function isIn(id: Sql, { at, of }: Shard): Sql {
  if (of === 1) return sql`true`;
  const [first, end] = [Math.ceil((at * SLOTS) / of), Math.ceil(((at + 1) * SLOTS) / of)];
  // Written as the indexes have it.
  return sql`(${id} % ${sql.script(String(SLOTS))}) between ${first} and ${end - 1}`;
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
  const [row] = await ctx.db.query<{ live: number }>(sql`
    select count(*)::int as live from repository_syncs where state = 'live'`);
  const of = Math.min(SLOTS, Math.floor((row?.live ?? 0) / REPOSITORIES_A_SHARD));
  if (of < 2) await work(WHOLE);
  else await enqueueShards(ctx, task, of);
}
