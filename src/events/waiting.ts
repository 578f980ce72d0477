import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** How many events wait for a target. */
export interface Backlog {
  /** How many repositories have events that it was not sent yet. */
  repositories: number;
  /** When the oldest event that waits was received; null: none waits. */
  oldestAt: Date | null;
  /** When the next failed event is tried again; null: none has failed. */
  retryAt: Date | null;
}

/** By the targets' ids. A target without a backlog is left out. */
export async function waitingFor({ db }: Pick<Context, "db">): Promise<Map<number, Backlog>> {
  const rows = await db.query<Backlog & { id: number }>(sql`
    select c.target_id::float8 as id, count(*)::int as repositories, min(e.received_at) as "oldestAt",
        min(c.retry_at) as "retryAt"
      from target_cursors c left join lateral (select received_at from events
        where repository_id = c.repository_id and id > c.done_id and id <= c.wanted_id order by id limit 1) e on true
      where c.wanted_id > c.done_id group by c.target_id`);
  return new Map(rows.map(({ id, ...waiting }) => [id, waiting]));
}
