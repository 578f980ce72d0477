import type { Transaction } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** A delivery that a worker is about to apply. */
export interface Taken {
  id: string;
  event: string;
  /** The JSON document; null: too large for the same batch as the deliveries before it. */
  payload: string | null;
  /** The repository that the receiver read. */
  repositoryId: number | null;
  receivedAt: Date;
  /** The trace in which the delivery arrived; null: unknown. */
  traceparent: string | null;
}

/**
 * The most bytes of payloads in one transaction; parsed they take several times as much. A single payload may be
 * larger.
 */
const MAX_TAKEN_BYTES = 8_000_000;

/**
 * Locks the deliveries that are to be applied, in the order of their receipt. Another worker with the same deliveries
 * waits, and then finds them settled. The first delivery always has its payload.
 */
export async function takeDeliveries(tx: Transaction, ids: readonly string[]): Promise<Taken[]> {
  // The receiver takes only UTF-8. As text a payload is half as long on its way from Postgres.
  const rows = await tx.prepared<Omit<Taken, "receivedAt"> & { receivedMs: number }>(sql`with held as materialized
      (select id, event, payload, status, received_at, repository_id, traceparent from deliveries
        where id = any(${sql.array(ids, "uuid")}::uuid[]) order by id for update),
    sized as (select *, row_number() over going as place, sum(octet_length(payload)) over going as bytes
      from held where status in ('pending', 'failed') window going as (order by received_at, id))
    select id, event, repository_id::float8 as "repositoryId", traceparent,
      extract(epoch from received_at)::float8 * 1000 as "receivedMs",
      case when place = 1 or bytes <= ${MAX_TAKEN_BYTES} then convert_from(payload, 'UTF8') end as payload
    from sized order by place`);
  return rows.map(({ receivedMs, ...taken }) => ({ ...taken, receivedAt: new Date(receivedMs) }));
}

export interface Settled {
  id: string;
  /** Why the delivery was ignored; null: it was applied. */
  ignored: string | null;
}

/** Settles deliveries that were taken in the same transaction. */
export async function settleDeliveries(tx: Transaction, settled: readonly Settled[], at: Date): Promise<void> {
  if (settled.length === 0) return;
  const ids = settled.map(({ id }) => id);
  const reasons = settled.map(({ ignored }) => ignored);
  await tx.prepared(sql`update deliveries d set reason = x.reason, settled_at = ${at}, attempts = attempts + 1,
      status = case when x.reason is null then 'applied' else 'ignored' end
    from unnest(${sql.array(ids, "uuid")}, ${sql.array(reasons, "text")}) as x(id, reason) where d.id = x.id`);
}

/** Settles a delivery whose job has failed for good. If it was settled meanwhile, it stays as it is. */
export async function failDelivery(
  { db, clock }: Pick<Context, "db" | "clock">,
  { deliveryId, reason, attempts }: { deliveryId: string; reason: string; attempts: number },
): Promise<void> {
  await db.query(sql`update deliveries set status = 'failed', reason = ${reason.slice(0, 1_000)}, settled_at = ${clock.now()},
      attempts = greatest(attempts, ${attempts})
    where id = ${deliveryId} and status = 'pending'`);
}
