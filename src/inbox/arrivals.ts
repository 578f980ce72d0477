import { and, eq, ne } from "drizzle-orm";
import { among } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { deliveries } from "../schema.ts";

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
  const isFromHook = hookId === null ? undefined : eq(deliveries.hookId, hookId);
  const rows = await db
    .select({ guid: deliveries.guid })
    .from(deliveries)
    .where(and(isFromHook, among(deliveries.guid, guids), isSound ? ne(deliveries.status, "failed") : undefined));
  return rows.map(({ guid }) => guid);
}

/** The GUIDs of the pings that arrived from the hook. */
export async function pingsFrom({ db }: Pick<Context, "db">, hookId: number): Promise<string[]> {
  const rows = await db
    .select({ guid: deliveries.guid })
    .from(deliveries)
    .where(and(eq(deliveries.hookId, hookId), eq(deliveries.event, "ping")));
  return rows.map(({ guid }) => guid);
}
