import { and, asc, count, desc, eq, gte, ilike, or } from "drizzle-orm";
import type { PgSelect } from "drizzle-orm/pg-core";
import type { DeliveryStatus } from "../../db/schema/states.ts";
import { among, escapeLike, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { enqueueDeliveries } from "../queues/queues.ts";
import { deliveries, repositories } from "../schema.ts";

/** A delivery as the inbox holds it, without its payload. */
export interface ListedDelivery {
  id: string;
  guid: string;
  /** Upstream's hook; 0 when the request named none. */
  hookId: number;
  event: string;
  action: string | null;
  repositoryId: number | null;
  /** `owner/name`; null for a repository that we do not know. */
  repository: string | null;
  status: DeliveryStatus;
  attempts: number;
  /** Why it was ignored, or how it failed last. */
  reason: string | null;
  receivedAt: Date;
  settledAt: Date | null;
}

/** The same, for those who may read payloads. */
export interface StoredDelivery extends ListedDelivery {
  payloadBytes: number;
}

export interface DeliveryFilter {
  status?: DeliveryStatus;
  event?: string;
  /**
   * A part of the GUID, the event, the repository's name or the reason; only the newest `MOST_SEARCHED` are searched.
   */
  search?: string;
  /** Received at that moment or later, by our clock. */
  since?: Date;
  limit: number;
}

/** A search that finds nothing reads them all. */
const MOST_SEARCHED = 20_000;

const IS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const SHOWN = {
  id: deliveries.id,
  guid: deliveries.guid,
  hookId: deliveries.hookId,
  event: deliveries.event,
  action: deliveries.action,
  repositoryId: deliveries.repositoryId,
  repository: repositories.fullName,
  status: deliveries.status,
  attempts: deliveries.attempts,
  reason: deliveries.reason,
  receivedAt: deliveries.receivedAt,
  settledAt: deliveries.settledAt,
};
const STORED = { ...SHOWN, payloadBytes: sql<number>`length(${deliveries.payload})` };
const IN_REPOSITORY = eq(repositories.id, deliveries.repositoryId);

/** The newest first. */
export async function listDeliveries({ db }: Pick<Context, "db">, filter: DeliveryFilter): Promise<StoredDelivery[]> {
  return await newest(db.select(STORED).from(deliveries).leftJoin(repositories, IN_REPOSITORY).$dynamic(), filter);
}

/** The same, for a process that may not read payloads. */
export async function listDeliveriesShown(
  { db }: Pick<Context, "db">,
  filter: DeliveryFilter,
): Promise<ListedDelivery[]> {
  return await newest(db.select(SHOWN).from(deliveries).leftJoin(repositories, IN_REPOSITORY).$dynamic(), filter);
}

/** Null: the inbox does not hold it. @param id no UUID finds nothing */
export async function findDeliveryShown({ db }: Pick<Context, "db">, id: string): Promise<ListedDelivery | null> {
  if (!IS_ID.test(id)) return null;
  const [found] = await db
    .select(SHOWN)
    .from(deliveries)
    .leftJoin(repositories, IN_REPOSITORY)
    .where(eq(deliveries.id, id));
  return found ?? null;
}

const NEWEST_FIRST = [desc(deliveries.receivedAt), desc(deliveries.id)] as const;

function newest<Query extends PgSelect>(query: Query, { status, event, search, since, limit }: DeliveryFilter): Query {
  const isAsked = and(
    status === undefined ? undefined : eq(deliveries.status, status),
    event === undefined ? undefined : eq(deliveries.event, event),
    since === undefined ? undefined : gte(deliveries.receivedAt, since),
  );
  if (search === undefined)
    return query
      .where(isAsked)
      .orderBy(...NEWEST_FIRST)
      .limit(limit);
  const like = `%${escapeLike(search)}%`;
  const searched = sql`(select ${deliveries.id} from ${deliveries} where ${isAsked ?? sql`true`}
    order by ${sql.join(NEWEST_FIRST)} limit ${MOST_SEARCHED})`;
  const isFound = or(
    ilike(deliveries.guid, like),
    ilike(sql`${deliveries.event} || '.' || coalesce(${deliveries.action}, '')`, like),
    ilike(repositories.fullName, like),
    ilike(deliveries.reason, like),
  );
  return query
    .where(and(sql`${deliveries.id} in ${searched}`, isFound))
    .orderBy(...NEWEST_FIRST)
    .limit(limit);
}

/** Those with these ids or GUIDs, the oldest first. One event has one GUID at all hooks, so a GUID may find several. */
export async function findDeliveries({ db }: Pick<Context, "db">, names: readonly string[]): Promise<StoredDelivery[]> {
  const ids = names.filter((name) => IS_ID.test(name));
  return await db
    .select(STORED)
    .from(deliveries)
    .leftJoin(repositories, IN_REPOSITORY)
    .where(or(among(deliveries.id, ids), among(deliveries.guid, names)))
    .orderBy(asc(deliveries.receivedAt), asc(deliveries.id));
}

/** The JSON document as upstream sent it; null when the delivery is no longer there. */
export async function loadPayload({ db }: Pick<Context, "db">, id: string): Promise<string | null> {
  const [row] = await db.select({ payload: deliveries.payload }).from(deliveries).where(eq(deliveries.id, id));
  return row?.payload.toString("utf8") ?? null;
}

/** The ids of all that have failed, the oldest first. */
export async function failedDeliveryIds({ db }: Pick<Context, "db">): Promise<string[]> {
  const rows = await db
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(eq(deliveries.status, "failed"))
    .orderBy(deliveries.receivedAt, deliveries.id);
  return rows.map(({ id }) => id);
}

/** The number of these deliveries by status. */
export async function countByStatus(
  { db }: Pick<Context, "db">,
  ids: readonly string[],
): Promise<Record<DeliveryStatus, number>> {
  const rows = await db
    .select({ status: deliveries.status, count: count() })
    .from(deliveries)
    .where(among(deliveries.id, ids))
    .groupBy(deliveries.status);
  const counts = { pending: 0, applied: 0, ignored: 0, failed: 0 };
  for (const one of rows) counts[one.status] = one.count;
  return counts;
}

/**
 * Makes deliveries pending again, in any status, and asks for them to be applied. Applying a delivery twice changes
 * nothing, since the merge never goes backwards.
 * @throws QueueUnavailableError when Redis takes no job; the deliveries are pending, and the dispatcher asks once Redis
 *   is back
 */
export async function replayDeliveries(
  ctx: Pick<Context, "db" | "redis" | "queues">,
  ids: readonly string[],
): Promise<void> {
  // A worker that holds one of the deliveries finishes first. Then that delivery is applied once more.
  await ctx.db
    .update(deliveries)
    .set({ status: "pending", reason: null, settledAt: null })
    .where(among(deliveries.id, ids));
  await enqueueDeliveries(ctx, ids);
}

/** How many deliveries have waited since before that moment; `most`, if there are more. */
export async function countWaiting({ db }: Pick<Context, "db">, before: Date, most: number): Promise<number> {
  const [row] = await db.prepared<{ late: number }>(sql`select count(*) as late from (
    select from deliveries where status = 'pending' and received_at < ${before} limit ${most}) late`);
  return row?.late ?? 0;
}

/** The deliveries that need an operator: those that failed, and those that have waited since before that moment. */
export async function countTroubled(
  { db }: Pick<Context, "db">,
  before: Date,
): Promise<{ failed: number; overdue: number }> {
  const [row] = await db.query<{ failed: number; overdue: number }>(sql`
    select (select count(*) from deliveries where status = 'failed') as failed,
      (select count(*) from deliveries where status = 'pending' and received_at < ${before}) as overdue`);
  return row ?? { failed: 0, overdue: 0 };
}
