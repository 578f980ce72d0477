import type { Transaction } from "../../db/database.ts";
import { isOfPostgres, isPostgresRefusal } from "../../db/outage.ts";
import { schemaFit } from "../../db/schema-fit.ts";
import { Pieces, sql } from "../../db/sql.ts";
import { UnfitStoreError } from "../../db/unfit.ts";
import type { HookHolder } from "../config/hook-secrets.ts";
import type { Context } from "../context.ts";
import { levelOf, reasonOf } from "../failure.ts";
import { type Fields, objectOf, wholeOf } from "../json.ts";
import type { InboxJob } from "../queues/jobs.ts";
import { enqueueBursts, enqueueInbox } from "../queues/queues.ts";
import { within } from "../waits/within.ts";
import { Batches } from "../work/batches.ts";
import { Rounds } from "../work/gather.ts";
import type { RedisDisk } from "./redis-disk.ts";

/** The value of `deliveries.hook_id` for deliveries that we made ourselves, of changes that no webhook reported. */
export const MADE_HOOK = -1;

/** A delivery as the receiver knows it, without its payload's meaning. */
export interface Delivery {
  /** Upstream's hook; 0 when the request names none. */
  hookId: number;
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  /** Whose own secret signed it; null: WEBHOOK_SECRET itself, which signs for all. */
  signer: HookHolder | null;
  /** The JSON document as received, without its form encoding. */
  payload: Buffer;
  receivedAt: Date;
  /** The trace in which the delivery arrived; null: unknown. */
  traceparent: string | null;
  /** Whether upstream is a mirror that made the delivery itself, of a change that no webhook reported. */
  isMade: boolean;
}

/** The keys by which the inbox is searched. A value of another type is left out, not refused. */
export function keysOf({ action, repository }: Fields): { action: string | null; repositoryId: number | null } {
  return {
    action: typeof action === "string" && /^[\w.-]{1,100}$/.test(action) ? action : null,
    repositoryId: wholeOf(objectOf(repository).id),
  };
}

/** No store can keep the delivery at the moment. It must not be acknowledged, or has to stay in Redis. */
export class InboxUnavailableError extends Error {
  override name = "InboxUnavailableError";
}

/** Postgres can never keep the delivery. */
export class UnstorableDeliveryError extends Error {
  override name = "UnstorableDeliveryError";
}

export interface Acceptance {
  /**
   * "accepted": it can no longer be lost and will be applied. "known": it was applied or ignored before; nothing more
   * happens.
   */
  status: "accepted" | "known";
  /** Why the delivery waits in Redis; null: it is in Postgres. */
  postgresError: Error | null;
}

/** The stores and the dispatch that a delivery goes through. */
export interface Ways {
  inbox: InboxWriter;
  dispatch: ReturnType<typeof openDispatch>;
  disk: RedisDisk;
}

/**
 * Makes a delivery durable, then asks for it to be applied. With Postgres away the delivery waits on the disk of Redis,
 * unless it is large; with Redis away the dispatcher finds it in Postgres.
 * @throws InboxUnavailableError when neither store takes it
 */
export async function acceptDelivery(
  ctx: Pick<Context, "redis" | "queues">,
  { inbox, dispatch, disk }: Ways,
  delivery: Delivery,
): Promise<Acceptance> {
  const isLarge = delivery.payload.length > LARGE_BYTES;
  let stored: string | null;
  try {
    stored = await inTime("Postgres", inbox.add(delivery), storeTimeoutMs([delivery]));
  } catch (error) {
    const postgresError = error instanceof Error ? error : new Error(String(error));
    if (isLarge)
      throw new InboxUnavailableError("Postgres cannot keep the delivery, which is too large to wait in Redis", {
        cause: postgresError,
      });
    await acceptIntoRedis(ctx, disk, delivery, postgresError);
    return { status: "accepted", postgresError };
  }
  if (stored === null) return { status: "known", postgresError: null };
  // It is safe already. Upstream need not wait for Redis, and when Redis is away the dispatcher asks again.
  dispatch({ deliveryId: stored, traceparent: delivery.traceparent });
  return { status: "accepted", postgresError: null };
}

/**
 * Moves a delivery that waited in Redis to Postgres, and asks for it to be applied. Safe to repeat.
 * @throws InboxUnavailableError when Postgres does not take it at the moment
 * @throws UnstorableDeliveryError when Postgres never will
 */
export async function storeWaitingDelivery(
  ctx: Pick<Context, "db">,
  dispatch: Ways["dispatch"],
  job: InboxJob,
): Promise<void> {
  const { hookId, guid, event, repositoryId, signer = null, traceparent = null, isMade = false } = job;
  const payload = Buffer.from(job.payload, "base64");
  let stored: string | null;
  try {
    const found = keysOf(JSON.parse(payload.toString("utf8")));
    // The receiver's repository counts, since the signature was checked for it.
    const keys = repositoryId === undefined ? found : { ...found, repositoryId };
    const receivedAt = new Date(job.receivedAt);
    stored = await storeDelivery(ctx, {
      hookId,
      guid,
      event,
      ...keys,
      signer,
      payload,
      receivedAt,
      traceparent,
      isMade,
    });
  } catch (error) {
    const isRefused = error instanceof SyntaxError || (isPostgresRefusal(error) && !(await isShutOut(ctx)));
    if (isRefused) throw new UnstorableDeliveryError(reasonOf(error), { cause: error });
    // A bug of ours. Waiting for Postgres would hide it and never end.
    if (!isOfPostgres(error)) throw error;
    throw new InboxUnavailableError(reasonOf(error), { cause: error });
  }
  if (stored !== null) dispatch({ deliveryId: stored, traceparent });
}

/**
 * Whether a migration shuts this version out. Then a refusal may be the new schema's, and a newer Tain can store the
 * delivery.
 */
async function isShutOut({ db }: Pick<Context, "db">): Promise<boolean> {
  // If the database cannot be asked, the delivery waits, which loses nothing.
  const fit = await schemaFit(db, { timeoutMs: STORE_TIMEOUT_MS }).catch(() => "unknown" as const);
  return fit === "unknown" || fit instanceof UnfitStoreError;
}

async function acceptIntoRedis(
  ctx: Pick<Context, "redis" | "queues">,
  disk: RedisDisk,
  delivery: Delivery,
  postgresError: Error,
): Promise<void> {
  const { hookId, guid, event, repositoryId, signer, payload, receivedAt, traceparent, isMade } = delivery;
  const job: InboxJob = {
    hookId,
    guid,
    event,
    repositoryId,
    ...(signer !== null && { signer }),
    payload: payload.toString("base64"),
    receivedAt: receivedAt.toISOString(),
    ...(traceparent !== null && { traceparent }),
    isMade,
  };
  try {
    await inTime("Redis", enqueueInbox(ctx, job));
    await inTime("Redis' disk", disk.settled());
  } catch (redisError) {
    throw new InboxUnavailableError("Neither Postgres nor Redis can keep the delivery", {
      cause: new AggregateError([postgresError, redisError], `${postgresError.message}; ${reasonOf(redisError)}`),
    });
  }
}

/** The outcome of `work`, or a failure if the store is silent. The work goes on: storing a delivery twice is safe. */
function inTime<T>(store: string, work: Promise<T>, timeoutMs = STORE_TIMEOUT_MS): Promise<T> {
  return within(timeoutMs, work, () => {
    throw new Error(`${store} gave no answer within ${timeoutMs} ms`);
  });
}

/**
 * A larger payload has a statement of its own, and does not wait in Redis: as text in a job, 25 MB hold the event loop
 * for half a second.
 */
const LARGE_BYTES = 4_000_000;

// Upstream gives up after 10 s. Two stores are tried one after the other, so each may take this long.
export const STORE_TIMEOUT_MS = 3_000;

/** What is too large for the second store has the time of both for the first. */
function storeTimeoutMs(deliveries: readonly Delivery[]): number {
  const isLarge = deliveries.some(({ payload }) => payload.length > LARGE_BYTES);
  return isLarge ? 2 * STORE_TIMEOUT_MS : STORE_TIMEOUT_MS;
}

/** A delivery in the inbox. */
interface InboxEntry {
  deliveryId: string;
  traceparent: string | null;
}

/** All deliveries of one moment share a question to Redis, and no question waits for another. */
const UNBOUNDED = { atOnce: Number.POSITIVE_INFINITY, most: Number.POSITIVE_INFINITY, patienceMs: null };

/** Asks for deliveries to be applied, all of one moment together, after upstream got its answers. */
export function openDispatch(ctx: Pick<Context, "redis" | "queues" | "log">): (stored: InboxEntry) => void {
  const asks = new Rounds(async (waiting: InboxEntry[]) => {
    // Copies of one delivery that arrive at once count as one.
    const deliveryIds = [...new Set(waiting.map(({ deliveryId }) => deliveryId))];
    const traces = new Map(waiting.flatMap((one) => (one.traceparent ? [[one.deliveryId, one.traceparent]] : [])));
    await enqueueBursts(ctx, deliveryIds, traces).catch((error: unknown) => {
      ctx.log[levelOf(error, "debug")](
        { deliveryIds, err: error },
        "Deliveries could not be queued; the dispatcher will find them",
      );
    });
  }, UNBOUNDED);
  return (stored) => void asks.join(stored);
}

/**
 * How many deliveries one statement stores. More saves little, and the socket to Postgres takes several turns for it.
 */
const STORED_AT_ONCE = 16;
/** While one batch waits for the disk, the next is already sent. With more of them, each would store fewer. */
const BATCHES_AT_ONCE = 2;

/** Answers the row's id when the delivery is to be applied, null when it was settled before. */
export type InboxWriter = Batches<Delivery, string | null>;

/**
 * Stores deliveries in the inbox. Those that arrive during a write share the next statement and commit, because a disk
 * stores many as fast as one.
 */
export function openInboxWriter({ db, log, tracing }: Pick<Context, "db" | "log" | "tracing">): InboxWriter {
  const limits = {
    size: STORED_AT_ONCE,
    bytes: { most: LARGE_BYTES, of: ({ payload }: Delivery) => payload.length },
    atOnce: BATCHES_AT_ONCE,
  };
  return new Batches({ log, tracing }, limits, async (batch) => {
    const ids = await storeNew(db, batch);
    return batch.map((delivery) => {
      const key = deliveryKey(delivery);
      const id = ids.get(key);
      ids.delete(key);
      // A known delivery is stored by itself: a worker that applies it holds its row, and no other delivery should wait
      // for that.
      return id ?? storeDelivery({ db }, delivery);
    });
  });
}

/**
 * Answers the row's id when the delivery is to be applied, null when it was settled before.
 *
 * One statement, so that of two copies arriving at once one inserts a row and the other finds it. A redelivery makes a
 * failed delivery pending again. A pending one stays as it is and is dispatched again, since its job may be lost.
 */
export async function storeDelivery({ db }: Pick<Context, "db">, delivery: Delivery): Promise<string | null> {
  const { hookId, guid, event, action, repositoryId, signer, payload, receivedAt, traceparent, isMade } = delivery;
  const [row] = await db.prepared<{ id: string }>(
    sql`
      insert into deliveries (hook_id, guid, event, action, repository_id, received_at, payload, traceparent, is_made,
          signer_type, signer_id)
        values (${hookId}, ${guid}, ${event}, ${action}, ${repositoryId}, ${receivedAt}, ${payload}, ${traceparent},
          ${isMade}, ${signer?.type ?? null}, ${signer?.id ?? null})
        on conflict (hook_id, guid) do update set status = 'pending', reason = null, settled_at = null,
          traceparent = excluded.traceparent
          where deliveries.status in ('pending', 'failed')
        returning id`,
    // A connection whose server stopped answering is thrown away, not waited for.
    { timeoutMs: storeTimeoutMs([delivery]) },
  );
  return row?.id ?? null;
}

/** The ids of new deliveries, by hook and GUID. If two copies are among them, the first is new. */
async function storeNew(db: Context["db"], deliveries: readonly Delivery[]): Promise<Map<string, string>> {
  const of = <Key extends keyof Delivery>(key: Key) => deliveries.map((delivery) => delivery[key]);
  let end = 1;
  const starts = deliveries.map(({ payload }) => {
    const start = end;
    end += payload.length;
    return start;
  });
  const lengths = deliveries.map(({ payload }) => payload.length);
  // The payloads are one parameter: an array of them would be sent as text, twice as long.
  const payloads = new Pieces(of("payload"));
  const rows = await db.prepared<{ id: string; hook_id: number; guid: string }>(
    sql`
      insert into deliveries (hook_id, guid, event, action, repository_id, received_at, traceparent, is_made, signer_type,
          signer_id, payload)
        select hook_id, guid, event, action, repository_id, received_at, traceparent, is_made, signer_type, signer_id,
            substring(${payloads}::bytea from start for length)
          from unnest(${of("hookId")}::bigint[], ${of("guid")}::text[], ${of("event")}::text[], ${of("action")}::text[],
            ${of("repositoryId")}::bigint[], ${of("receivedAt")}::timestamptz[], ${starts}::integer[],
            ${lengths}::integer[], ${of("traceparent")}::text[], ${of("isMade")}::boolean[],
            ${deliveries.map(({ signer }) => signer?.type ?? null)}::text[],
            ${deliveries.map(({ signer }) => signer?.id ?? null)}::bigint[])
            as x(hook_id, guid, event, action, repository_id, received_at, start, length, traceparent, is_made,
              signer_type, signer_id)
        on conflict (hook_id, guid) do nothing returning id, hook_id, guid`,
    { timeoutMs: storeTimeoutMs(deliveries) },
  );
  return new Map(rows.map(({ id, hook_id, guid }) => [deliveryKey({ hookId: hook_id, guid }), id]));
}

function deliveryKey({ hookId, guid }: Pick<Delivery, "hookId" | "guid">): string {
  return `${hookId} ${guid}`;
}

/** A delivery that a worker is about to apply. */
export interface Taken {
  id: string;
  event: string;
  /** The JSON document; null: too large for the same batch as the deliveries before it. */
  payload: string | null;
  /** The repository that the receiver read. */
  repositoryId: number | null;
  /** Whose own secret signed it; null: WEBHOOK_SECRET itself, which signs for all. */
  signer: HookHolder | null;
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
  type Row = Omit<Taken, "receivedAt" | "signer"> & {
    receivedMs: number;
    signerType: HookHolder["type"] | null;
    signerId: number | null;
  };
  const rows = await tx.prepared<Row>(sql`with held as materialized
      (select id, event, payload, status, received_at, repository_id, traceparent, signer_type, signer_id from deliveries
        where id = any(${sql.array(ids, "uuid")}::uuid[]) order by id for update),
    sized as (select *, row_number() over going as place, sum(octet_length(payload)) over going as bytes
      from held where status in ('pending', 'failed') window going as (order by received_at, id))
    select id, event, repository_id as "repositoryId", traceparent, signer_type as "signerType",
      signer_id as "signerId",
      extract(epoch from received_at)::float8 * 1000 as "receivedMs",
      case when place = 1 or bytes <= ${MAX_TAKEN_BYTES} then convert_from(payload, 'UTF8') end as payload
    from sized order by place`);
  return rows.map(({ receivedMs, signerType: type, signerId: id, ...taken }) => ({
    ...taken,
    signer: type === null || id === null ? null : { type, id },
    receivedAt: new Date(receivedMs),
  }));
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
