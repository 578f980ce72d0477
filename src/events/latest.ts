import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** The id of the newest delivery of an event of a repository that is still kept; null: none is. */
export async function latestDelivery(
  { db }: Pick<Context, "db">,
  repositoryId: number,
  event: string,
): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(sql`select delivery_id as id from events
    where repository_id = ${repositoryId} and event = ${event} and id is not null order by id desc limit 1`);
  return row?.id ?? null;
}
