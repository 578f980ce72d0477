import { and, desc, eq, gt, lt, not } from "drizzle-orm";
import { type SQL, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { targetDeliveries } from "../schema.ts";
import { deleteInBatches } from "../work/deletion.ts";
import type { SendOutcome } from "./post.ts";
import type { TargetRequest } from "./request.ts";
import type { Target } from "./target.ts";

/** One request that was made of a target. */
export interface Sent {
  id: number;
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  deliveredAt: Date;
  redelivery: boolean;
  durationMs: number;
  status: string;
  statusCode: number;
  /** By our own rule, `isAccepted` in `post.ts`: a request that is not accepted is tried again. */
  isAccepted: boolean;
}

/**
 * Requests by their answers. "refused" is our own rule: every request that was not accepted. "success" and "failure"
 * are the words of the service's API, for which a redirect is a success.
 */
export type Answered = "refused" | "success" | "failure";

export interface SentInFull extends Sent {
  url: string;
  requestHeaders: Record<string, string>;
  responseHeaders: Record<string, string>;
  responseBody: string | null;
  /** Null: it is no longer kept. */
  payload: Buffer | null;
}

/** A request to be noted, without its outcome. */
export interface Sending {
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  deliveryId: string | null;
  /** The payload; null: a delivery has it. */
  payload: Buffer | null;
  redelivery: boolean;
  sentAt: Date;
  durationMs: number;
}

/**
 * A `with` part that notes a request. Another part, `known`, must come first and hold the target's id, or no row if the
 * target was removed meanwhile.
 */
export function noteSent(
  { url }: Pick<Target, "url">,
  sending: Sending,
  { headers }: Pick<TargetRequest, "headers">,
  { status, statusCode, reason, headers: answered, body }: SendOutcome,
): SQL {
  const { guid, event, action, repositoryId, deliveryId, payload, redelivery, sentAt, durationMs } = sending;
  return sql`insert into target_deliveries (target_id, guid, event, action, repository_id, delivery_id, payload,
      delivered_at, redelivery, duration_ms, status, status_code, url, request_headers, response_headers, response_body)
    select id, ${guid}, ${event}, ${action}, ${repositoryId}::bigint, ${deliveryId}::uuid, ${payload}::bytea, ${sentAt}::timestamptz,
        ${redelivery}::boolean, ${Math.round(durationMs)}::integer, ${status}, ${statusCode}::integer, ${url},
        ${JSON.stringify(headers)}::json, ${JSON.stringify(answered)}::json, ${body ?? reason}
      from known`;
}

/** `isAccepted` in SQL: only an answer has a status of 2xx. */
const IS_ACCEPTED = sql<boolean>`(${targetDeliveries.statusCode} between 200 and 299)`;
/** GitHub's hooks API: 200 to 399. */
const IS_SUCCESS = sql`(${targetDeliveries.statusCode} between 200 and 399)`;

function isAnsweredSo(answered: Answered | null): SQL | undefined {
  switch (answered) {
    case null:
      return undefined;
    case "refused":
      return not(IS_ACCEPTED);
    case "success":
      return IS_SUCCESS;
    case "failure":
      return not(IS_SUCCESS);
    default:
      throw new Error(`There is no answer ${answered satisfies never}`);
  }
}

const SENT = {
  id: targetDeliveries.id,
  guid: targetDeliveries.guid,
  event: targetDeliveries.event,
  action: targetDeliveries.action,
  repositoryId: targetDeliveries.repositoryId,
  deliveredAt: targetDeliveries.deliveredAt,
  redelivery: targetDeliveries.redelivery,
  durationMs: targetDeliveries.durationMs,
  status: targetDeliveries.status,
  statusCode: targetDeliveries.statusCode,
  isAccepted: IS_ACCEPTED,
};

/**
 * One target's requests, the newest first. `before`: only requests older than this one; `answered`: only requests with
 * this kind of answer.
 */
export async function listSent(
  { db }: Pick<Context, "db">,
  targetId: number,
  { limit, before = null, answered = null }: { limit: number; before?: number | null; answered?: Answered | null },
): Promise<Sent[]> {
  const isOlder = before === null ? undefined : lt(targetDeliveries.id, before);
  return await db
    .select(SENT)
    .from(targetDeliveries)
    .where(and(eq(targetDeliveries.targetId, targetId), isOlder, isAnsweredSo(answered)))
    .orderBy(desc(targetDeliveries.id))
    .limit(limit);
}

/**
 * The id to pass as `before` for the page just newer than `than`; null: that is the first page. `exists`: whether any
 * request is newer than `than`.
 */
export async function pageBefore(
  { db }: Pick<Context, "db">,
  targetId: number,
  { than, limit, answered = null }: { than: number; limit: number; answered?: Answered | null },
): Promise<{ exists: boolean; before: number | null }> {
  const newer = await db
    .select({ id: targetDeliveries.id })
    .from(targetDeliveries)
    .where(and(eq(targetDeliveries.targetId, targetId), gt(targetDeliveries.id, than), isAnsweredSo(answered)))
    .orderBy(targetDeliveries.id)
    .limit(limit + 1);
  return { exists: newer.length > 0, before: newer[limit]?.id ?? null };
}

/** The last request of each of these targets, by the target's id. */
export async function lastSent(
  { db }: Pick<Context, "db">,
  targetIds: readonly number[],
): Promise<Map<number, Pick<Sent, "status" | "statusCode">>> {
  const rows = await db.query<{ targetId: number } & Pick<Sent, "status" | "statusCode">>(sql`
    select t.id as "targetId", s.status, s.status_code as "statusCode"
      from unnest(${targetIds}::bigint[]) as t(id) cross join lateral
        (select status, status_code from target_deliveries where target_id = t.id order by id desc limit 1) s`);
  return new Map(rows.map(({ targetId, ...last }) => [targetId, last]));
}

export async function findSent({ db }: Pick<Context, "db">, targetId: number, id: number): Promise<SentInFull | null> {
  const [row] = await db
    .select({
      ...SENT,
      url: targetDeliveries.url,
      requestHeaders: targetDeliveries.requestHeaders,
      responseHeaders: targetDeliveries.responseHeaders,
      responseBody: targetDeliveries.responseBody,
      payload: sql<Buffer | null>`sent_payload(${targetDeliveries.targetId}, ${targetDeliveries.id})`,
    })
    .from(targetDeliveries)
    .where(and(eq(targetDeliveries.targetId, targetId), eq(targetDeliveries.id, id)));
  return row ?? null;
}

/** Forgets requests that were made before `DELIVERY_RETENTION`. Answers how many went. */
export async function pruneSent(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - config.deliveryRetentionMs);
  return await deleteInBatches(signal, (most) =>
    db.count(sql`with doomed as (
        select target_id, id from target_deliveries where delivered_at < ${before}
          order by delivered_at limit ${most} for update skip locked
      ) delete from target_deliveries s using doomed where s.target_id = doomed.target_id and s.id = doomed.id`),
  );
}
