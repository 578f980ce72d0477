import { randomUUID } from "node:crypto";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { holdFrom } from "./cursors.ts";

/**
 * A request that a person or client asked for: a ping, a test or a redelivery. It is tried once, and again only if the
 * process was killed before it noted the outcome.
 */
export interface Ask {
  id: number;
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  deliveryId: string | null;
  /** Null: the delivery has the payload. */
  payload: Buffer | null;
  redelivery: boolean;
  /** When the delivery was received, or the request asked for. */
  receivedAt: Date;
  /** Whether the mirror made the delivery itself, of a change that no webhook reported. */
  isMade: boolean;
  /** Other turns may take the ask from then on. */
  heldUntil: Date;
}

/**
 * Asks for a payload to be sent to a target: a document of our own, or that of a delivery. False: there is no such
 * target. The target's row is locked first, since it may be removed at this moment.
 */
export async function askForSending(
  { db, clock }: Pick<Context, "db" | "clock">,
  targetId: number,
  { event, payload, deliveryId, repositoryId }: Pick<Ask, "event" | "payload" | "deliveryId" | "repositoryId">,
): Promise<boolean> {
  const asked = await db.count(sql`insert into target_asks (target_id, guid, event, repository_id, delivery_id, payload,
      redelivery, asked_at)
    select id, ${randomUUID()}, ${event}, ${repositoryId}::bigint, ${deliveryId}::uuid, ${payload}::bytea, false,
        ${clock.now()}::timestamptz
      from targets where id = ${targetId} for key share`);
  return asked > 0;
}

/**
 * Asks for a request to be made once more, with the same GUID. False: there was none, or its payload is no longer kept.
 */
export async function askForRedelivery(
  { db, clock }: Pick<Context, "db" | "clock">,
  targetId: number,
  sentId: number,
): Promise<boolean> {
  const asked = await db.count(sql`insert into target_asks (target_id, guid, event, action, repository_id, delivery_id,
      payload, redelivery, asked_at)
    select s.target_id, s.guid, s.event, s.action, s.repository_id, s.delivery_id,
        case when s.delivery_id is null then sent_payload(s.target_id, s.id) end, true, ${clock.now()}
      from targets t join target_deliveries s on s.target_id = t.id
      where t.id = ${targetId} and s.id = ${sentId} and sent_payload(s.target_id, s.id) is not null for key share of t`);
  return asked > 0;
}

/** Takes the next ask of a target, for this process alone, until it is settled or its `heldUntil` is over. */
export async function takeAsk({ db, clock }: Pick<Context, "db" | "clock">, targetId: number): Promise<Ask | null> {
  const now = clock.now();
  const heldUntil = holdFrom(now);
  const [ask] = await db.prepared<Omit<Ask, "heldUntil">>(sql`
    update target_asks set held_until = ${heldUntil}
      where id = (select id from target_asks where target_id = ${targetId}
          and (held_until is null or held_until <= ${now}) order by id limit 1 for update skip locked)
      returning id, guid, event, action, repository_id as "repositoryId", delivery_id as "deliveryId", payload,
        redelivery, exists (select from events e where e.delivery_id = target_asks.delivery_id and e.is_made) as "isMade",
        coalesce((select min(e.received_at) from events e where e.delivery_id = target_asks.delivery_id), asked_at)
          as "receivedAt"`);
  return ask ? { ...ask, heldUntil } : null;
}

/** Gives an ask back, unless another turn has taken it over: the next turn may try it at once. */
export async function releaseAsk({ db }: Pick<Context, "db">, { id, heldUntil }: Ask): Promise<void> {
  await db.query(sql`update target_asks set held_until = null where id = ${id} and held_until = ${heldUntil}`);
}
