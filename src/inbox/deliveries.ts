import type { Context } from "../context.ts";
import { enqueueDeliveries } from "../queues/enqueue.ts";

export const deliveryStatuses = ["pending", "applied", "ignored", "failed"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** A delivery as the inbox holds it, without its payload. */
export interface StoredDelivery {
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
  payloadBytes: number;
}

export interface DeliveryFilter {
  status?: DeliveryStatus;
  event?: string;
  /** Received at that moment or later, by our clock. */
  since?: Date;
  limit: number;
}

const SELECT = `select d.id, d.guid, d.hook_id, d.event, d.action, d.repository_id, r.full_name as repository, d.status,
    d.attempts, d.reason, d.received_at, d.settled_at, length(d.payload) as payload_bytes
  from deliveries d left join repositories r on r.id = d.repository_id`;

/** The newest first. */
export async function listDeliveries(
  { db }: Pick<Context, "db">,
  { status, event, since, limit }: DeliveryFilter,
): Promise<StoredDelivery[]> {
  const { rows } = await db.$client.query<DeliveryRow>(
    `${SELECT} where ($1::text is null or d.status = $1) and ($2::text is null or d.event = $2)
      and ($3::timestamptz is null or d.received_at >= $3) order by d.received_at desc, d.id desc limit $4`,
    [status ?? null, event ?? null, since ?? null, limit],
  );
  return rows.map(storedDelivery);
}

/** Those with these ids or GUIDs, the oldest first. One event has one GUID at all hooks, so a GUID may find several. */
export async function findDeliveries({ db }: Pick<Context, "db">, names: readonly string[]): Promise<StoredDelivery[]> {
  const ids = names.filter((name) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(name));
  const { rows } = await db.$client.query<DeliveryRow>(
    `${SELECT} where d.id = any($1::uuid[]) or d.guid = any($2) order by d.received_at, d.id`,
    [ids, names],
  );
  return rows.map(storedDelivery);
}

/** The JSON document as upstream sent it; null when the delivery is no longer there. */
export async function readPayload({ db }: Pick<Context, "db">, id: string): Promise<string | null> {
  const { rows } = await db.$client.query<{ payload: Buffer }>("select payload from deliveries where id = $1", [id]);
  return rows[0]?.payload.toString("utf8") ?? null;
}

/** The ids of all that have failed, the oldest first. */
export async function failedDeliveryIds({ db }: Pick<Context, "db">): Promise<string[]> {
  const { rows } = await db.$client.query<{ id: string }>(
    "select id from deliveries where status = 'failed' order by received_at, id",
  );
  return rows.map(({ id }) => id);
}

/**
 * Makes deliveries pending again, whatever became of them, and asks for them to be applied. To apply one twice changes
 * nothing, since the merge never goes backwards.
 * @throws QueueUnavailableError when Redis takes no job: they are pending, and the dispatcher asks once Redis is back
 */
export async function replayDeliveries(
  ctx: Pick<Context, "db" | "redis" | "queues">,
  ids: readonly string[],
): Promise<void> {
  // A worker that holds one of them finishes first, and it is then applied once more.
  await ctx.db.$client.query(
    "update deliveries set status = 'pending', reason = null, settled_at = null where id = any($1::uuid[])",
    [ids],
  );
  await enqueueDeliveries(ctx, [...ids]);
}

/** How deliveries stand, by status, of those named. */
export async function countByStatus(
  { db }: Pick<Context, "db">,
  ids: readonly string[],
): Promise<Record<DeliveryStatus, number>> {
  const { rows } = await db.$client.query<{ status: DeliveryStatus; count: number }>(
    "select status, count(*)::integer as count from deliveries where id = any($1::uuid[]) group by status",
    [ids],
  );
  const counts = { pending: 0, applied: 0, ignored: 0, failed: 0 };
  for (const { status, count } of rows) counts[status] = count;
  return counts;
}

/** The GUIDs, of those given, that arrived from the hook; null: from any, since one event has one GUID at all hooks. */
export async function arrivedFrom(
  { db }: Pick<Context, "db">,
  hookId: number | null,
  guids: readonly string[],
): Promise<string[]> {
  const { rows } = await db.$client.query<{ guid: string }>(
    "select guid from deliveries where ($1::bigint is null or hook_id = $1) and guid = any($2)",
    [hookId, guids],
  );
  return rows.map(({ guid }) => guid);
}

/** The GUIDs of the pings that arrived from the hook. */
export async function pingsFrom({ db }: Pick<Context, "db">, hookId: number): Promise<string[]> {
  const { rows } = await db.$client.query<{ guid: string }>(
    "select guid from deliveries where hook_id = $1 and event = 'ping'",
    [hookId],
  );
  return rows.map(({ guid }) => guid);
}

interface DeliveryRow {
  id: string;
  guid: string;
  hook_id: string;
  event: string;
  action: string | null;
  repository_id: string | null;
  repository: string | null;
  status: DeliveryStatus;
  attempts: number;
  reason: string | null;
  received_at: Date;
  settled_at: Date | null;
  payload_bytes: number;
}

function storedDelivery(row: DeliveryRow): StoredDelivery {
  const { id, guid, event, action, repository, status, attempts, reason } = row;
  return {
    id,
    guid,
    hookId: Number(row.hook_id),
    event,
    action,
    repositoryId: row.repository_id === null ? null : Number(row.repository_id),
    repository,
    status,
    attempts,
    reason,
    receivedAt: row.received_at,
    settledAt: row.settled_at,
    payloadBytes: row.payload_bytes,
  };
}
