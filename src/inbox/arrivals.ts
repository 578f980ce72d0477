import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/**
 * The GUIDs among these that arrived from the hook, for a comparison with upstream's list of what it sent. `hookId`
 * null: from any hook, since an event has the same GUID at all hooks. `isSound`: without failed deliveries.
 */
export async function arrivedFrom(
  { db }: Pick<Context, "db">,
  hookId: number | null,
  guids: readonly string[],
  { isSound = false } = {},
): Promise<string[]> {
  const rows = await db.query<{ guid: string }>(sql`select guid from deliveries
    where (${hookId}::bigint is null or hook_id = ${hookId}) and guid = any(${guids}::text[])
      and (not ${isSound}::boolean or status <> 'failed')`);
  return rows.map(({ guid }) => guid);
}

/** The GUIDs of the pings that arrived from the hook. */
export async function pingsFrom({ db }: Pick<Context, "db">, hookId: number): Promise<string[]> {
  const rows = await db.query<{ guid: string }>(
    sql`select guid from deliveries where hook_id = ${hookId} and event = 'ping'`,
  );
  return rows.map(({ guid }) => guid);
}
