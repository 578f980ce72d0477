import { and, desc, eq, isNotNull } from "drizzle-orm";
import type { Context } from "../context.ts";
import { events } from "../schema.ts";

/** The id of the newest delivery of an event of a repository that is still kept; null: none is. */
export async function latestDelivery(
  { db }: Pick<Context, "db">,
  repositoryId: number,
  event: string,
): Promise<string | null> {
  const [row] = await db
    .select({ id: events.deliveryId })
    .from(events)
    .where(and(eq(events.repositoryId, repositoryId), eq(events.event, event), isNotNull(events.id)))
    .orderBy(desc(events.id))
    .limit(1);
  return row?.id ?? null;
}
