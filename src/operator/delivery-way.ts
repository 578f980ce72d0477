import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { findDeliveryShown, type ListedDelivery } from "../inbox/deliveries.ts";
import { type DeliveryJobState, jobOfDelivery } from "../queues/open-jobs.ts";
import { QueueUnavailableError } from "../queues/unavailable.ts";

/** A delivery's way through the mirror, as far as it is still known. */
export interface DeliveryWay {
  delivery: ListedDelivery;
  /** When its row was written, by the clock of Postgres. */
  storedAt: Date;
  /** The job that applies it. Null: it has none of its own. "unknown": Redis does not answer. */
  job: DeliveryJobState | "unknown" | null;
  /** What it told others: one event, unless the delivery was ignored or another hook's delivery told the same. */
  events: ToldEvent[];
  /** The newest requests to targets, the oldest first. */
  sent: SentOn[];
  /** The targets that are still to be asked whether they want the event. */
  waiting: { targetId: number; url: string; retryAt: Date | null }[];
}

/** An event in the ordered log. */
interface ToldEvent {
  /** Its place in the log. Null: it waits for an earlier delivery. */
  id: number | null;
  event: string;
  action: string | null;
  /** `owner/name`; null: no repository, or one that is not known. */
  repository: string | null;
  /** Upstream's page of what it changed; null: there is none. */
  page: string | null;
  number: number | null;
  isPullRequest: boolean | null;
  /** False: the delivery of another hook, which has the same GUID, was first. */
  isOwn: boolean;
}

interface SentOn {
  targetId: number;
  url: string;
  sentAt: Date;
  durationMs: number;
  status: string;
  statusCode: number;
  redelivery: boolean;
}

const MOST_SENT = 200;

/** Null: the inbox does not hold the delivery. */
export async function findDeliveryWay(
  ctx: Pick<Context, "db" | "queues" | "redis">,
  id: string,
): Promise<DeliveryWay | null> {
  const delivery = await findDeliveryShown(ctx, id);
  if (delivery === null) return null;
  const [job, events, sent, waiting] = await Promise.all([
    delivery.status === "pending" ? jobOfDelivery(ctx, id).catch(whileAway) : null,
    toldBy(ctx, delivery),
    sentFor(ctx, delivery),
    waitingFor(ctx, delivery),
  ]);
  return { delivery, storedAt: storedAt(delivery.id), job, events, sent, waiting };
}

function whileAway(error: unknown): "unknown" {
  if (error instanceof QueueUnavailableError) return "unknown";
  throw error;
}

/** A UUID of version 7 begins with its time, in milliseconds. Pure. */
function storedAt(id: string): Date {
  return new Date(Number.parseInt(id.replace("-", "").slice(0, 12), 16));
}

/** The event of a delivery `d`: all deliveries of one GUID have one event. */
const ITS_EVENT = sql`e.repository_id = coalesce(d.repository_id, 0) and e.guid = d.guid`;

async function toldBy({ db }: Pick<Context, "db">, { id }: ListedDelivery): Promise<ToldEvent[]> {
  return await db.query(sql`
    select e.id, e.event, e.action, r.full_name as repository, e.number, e.is_pull_request as "isPullRequest",
        e.delivery_id = d.id as "isOwn",
        r.html_url || case when e.number is null then '' when e.is_pull_request then '/pull/' || e.number
          else '/issues/' || e.number end as page
      from deliveries d join events e on ${ITS_EVENT} left join repositories r on r.id = e.repository_id
      where d.id = ${id}`);
}

async function sentFor({ db }: Pick<Context, "db">, { id }: ListedDelivery): Promise<SentOn[]> {
  return await db.query(sql`
    select * from (
      select s.target_id as "targetId", s.url, s.delivered_at as "sentAt", s.duration_ms as "durationMs", s.status,
          s.status_code as "statusCode", s.redelivery
        from deliveries d join events e on ${ITS_EVENT} join target_deliveries s on s.delivery_id = e.delivery_id
        where d.id = ${id} order by s.delivered_at desc, s.target_id, s.id desc limit ${MOST_SENT}) newest
      order by "sentAt", "targetId"`);
}

async function waitingFor({ db }: Pick<Context, "db">, { id }: ListedDelivery): Promise<DeliveryWay["waiting"]> {
  return await db.query(sql`
    select c.target_id as "targetId", t.url, c.retry_at as "retryAt"
      from deliveries d join events e on ${ITS_EVENT}
        join targets t on true join target_cursors c on c.target_id = t.id and c.repository_id = e.repository_id
          and c.done_id < e.id and c.wanted_id >= e.id
      where d.id = ${id} order by 1`);
}
