import type { DeliveryStatus } from "../../db/schema/states.ts";
import { escapeLike, type SQL, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { enqueueDeliveries } from "../queues/queues.ts";

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

const DELIVERY_COLUMNS = sql`d.id, d.guid, d.hook_id::float8 as "hookId", d.event, d.action,
    d.repository_id::float8 as "repositoryId", r.full_name as repository, d.status, d.attempts, d.reason,
    d.received_at as "receivedAt", d.settled_at as "settledAt"`;
const FROM = sql`from deliveries d left join repositories r on r.id = d.repository_id`;
const SELECT = sql`select ${DELIVERY_COLUMNS}, length(d.payload) as "payloadBytes" ${FROM}`;

/** The newest first. */
export async function listDeliveries({ db }: Pick<Context, "db">, filter: DeliveryFilter): Promise<StoredDelivery[]> {
  return await db.query(sql`${SELECT} ${filteredPage(filter)}`);
}

/** The same, for a process that may not read payloads. */
export async function listDeliveriesShown(
  { db }: Pick<Context, "db">,
  filter: DeliveryFilter,
): Promise<ListedDelivery[]> {
  return await db.query(sql`select ${DELIVERY_COLUMNS} ${FROM} ${filteredPage(filter)}`);
}

function filteredPage({ status, event, search, since, limit }: DeliveryFilter): SQL {
  const conditions = [
    ...(status === undefined ? [] : [sql`d.status = ${status}`]),
    ...(event === undefined ? [] : [sql`d.event = ${event}`]),
    ...(since === undefined ? [] : [sql`d.received_at >= ${since}`]),
  ];
  if (search === undefined)
    return sql`where ${sql.and(conditions)} order by d.received_at desc, d.id desc limit ${limit}`;
  const like = `%${escapeLike(search)}%`;
  return sql`where d.id in (select d.id from deliveries d where ${sql.and(conditions)}
        order by d.received_at desc, d.id desc limit ${MOST_SEARCHED})
      and (d.guid ilike ${like} or d.event || '.' || coalesce(d.action, '') ilike ${like} or r.full_name ilike ${like}
        or d.reason ilike ${like})
    order by d.received_at desc, d.id desc limit ${limit}`;
}

/** Those with these ids or GUIDs, the oldest first. One event has one GUID at all hooks, so a GUID may find several. */
export async function findDeliveries({ db }: Pick<Context, "db">, names: readonly string[]): Promise<StoredDelivery[]> {
  const ids = names.filter((name) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(name));
  return await db.query(
    sql`${SELECT} where d.id = any(${ids}::uuid[]) or d.guid = any(${names}::text[]) order by d.received_at, d.id`,
  );
}

/** The JSON document as upstream sent it; null when the delivery is no longer there. */
export async function loadPayload({ db }: Pick<Context, "db">, id: string): Promise<string | null> {
  const [row] = await db.query<{ payload: Buffer }>(sql`select payload from deliveries where id = ${id}`);
  return row?.payload.toString("utf8") ?? null;
}

/** The ids of all that have failed, the oldest first. */
export async function failedDeliveryIds({ db }: Pick<Context, "db">): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    sql`select id from deliveries where status = 'failed' order by received_at, id`,
  );
  return rows.map(({ id }) => id);
}

/** The number of these deliveries by status. */
export async function countByStatus(
  { db }: Pick<Context, "db">,
  ids: readonly string[],
): Promise<Record<DeliveryStatus, number>> {
  const rows = await db.query<{ status: DeliveryStatus; count: number }>(
    sql`select status, count(*)::integer as count from deliveries where id = any(${ids}::uuid[]) group by status`,
  );
  const counts = { pending: 0, applied: 0, ignored: 0, failed: 0 };
  for (const { status, count } of rows) counts[status] = count;
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
  await ctx.db.query(
    sql`update deliveries set status = 'pending', reason = null, settled_at = null where id = any(${ids}::uuid[])`,
  );
  await enqueueDeliveries(ctx, ids);
}

/** How many deliveries have waited since before that moment; `most`, if there are more. */
export async function countWaiting({ db }: Pick<Context, "db">, before: Date, most: number): Promise<number> {
  const [row] = await db.prepared<{ late: number }>(sql`select count(*)::int as late from (
    select from deliveries where status = 'pending' and received_at < ${before} limit ${most}) late`);
  return row?.late ?? 0;
}

/** The deliveries that need an operator: those that failed, and those that have waited since before that moment. */
export async function countTroubled(
  { db }: Pick<Context, "db">,
  before: Date,
): Promise<{ failed: number; overdue: number }> {
  const [row] = await db.query<{ failed: number; overdue: number }>(sql`
    select (select count(*)::integer from deliveries where status = 'failed') as failed,
      (select count(*)::integer from deliveries where status = 'pending' and received_at < ${before}) as overdue`);
  return row ?? { failed: 0, overdue: 0 };
}
