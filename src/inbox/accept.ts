import { isOfPostgres, isPostgresRefusal } from "../../db/outage.ts";
import { schemaFit } from "../../db/schema-fit.ts";
import { UnfitStoreError } from "../../db/unfit.ts";
import type { Context } from "../context.ts";
import { reasonOf } from "../failure.ts";
import { enqueueInbox } from "../queues/enqueue.ts";
import type { InboxJob } from "../queues/jobs.ts";
import { type Delivery, keysOf } from "./delivery.ts";
import type { openDispatch } from "./dispatch.ts";
import type { RedisDisk } from "./redis-disk.ts";
import { type InboxWriter, STORE_TIMEOUT_MS, storeDelivery } from "./writer.ts";

/** No store can keep the delivery at the moment. It must not be acknowledged, or has to stay in Redis. */
export class InboxUnavailableError extends Error {
  override name = "InboxUnavailableError";
}

/** Postgres can never keep the delivery. */
export class UnstorableDeliveryError extends Error {
  override name = "UnstorableDeliveryError";
}

export interface Acceptance {
  /** "accepted": it can no longer be lost and will be applied. "known": it was applied or ignored before; nothing more happens. */
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
 * Makes a delivery durable, then asks for it to be applied. With Postgres away the delivery waits on the disk of Redis; with
 * Redis away the dispatcher finds it in Postgres.
 * @throws InboxUnavailableError when neither store takes it
 */
export async function acceptDelivery(
  ctx: Pick<Context, "redis" | "queues">,
  { inbox, dispatch, disk }: Ways,
  delivery: Delivery,
): Promise<Acceptance> {
  let stored: string | null;
  try {
    stored = await within(STORE_TIMEOUT_MS, "Postgres", inbox.add(delivery));
  } catch (error) {
    const postgresError = error instanceof Error ? error : new Error(String(error));
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
  const { hookId, guid, event, repositoryId, traceparent = null, isMade = false } = job;
  const payload = Buffer.from(job.payload, "base64");
  let stored: string | null;
  try {
    const found = keysOf(JSON.parse(payload.toString("utf8")));
    // The receiver's repository counts, since the signature was checked for it.
    const keys = repositoryId === undefined ? found : { ...found, repositoryId };
    const receivedAt = new Date(job.receivedAt);
    stored = await storeDelivery(ctx, { hookId, guid, event, ...keys, payload, receivedAt, traceparent, isMade });
  } catch (error) {
    const isRefused = error instanceof SyntaxError || (isPostgresRefusal(error) && !(await isShutOut(ctx)));
    if (isRefused) throw new UnstorableDeliveryError(reasonOf(error), { cause: error });
    // A bug of ours. Waiting for Postgres would hide it and never end.
    if (!isOfPostgres(error)) throw error;
    throw new InboxUnavailableError(reasonOf(error), { cause: error });
  }
  if (stored !== null) dispatch({ deliveryId: stored, traceparent });
}

/** Whether a migration shuts this version out. Then a refusal may be the new schema's, and a newer Tain can store the delivery. */
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
  const { hookId, guid, event, repositoryId, payload, receivedAt, traceparent, isMade } = delivery;
  const job: InboxJob = {
    hookId,
    guid,
    event,
    repositoryId,
    payload: payload.toString("base64"),
    receivedAt: receivedAt.toISOString(),
    ...(traceparent !== null && { traceparent }),
    isMade,
  };
  try {
    await within(STORE_TIMEOUT_MS, "Redis", enqueueInbox(ctx, job));
    await within(STORE_TIMEOUT_MS, "Redis' disk", disk.settled());
  } catch (redisError) {
    throw new InboxUnavailableError("Neither Postgres nor Redis can keep the delivery", {
      cause: new AggregateError([postgresError, redisError], `${postgresError.message}; ${reasonOf(redisError)}`),
    });
  }
}

/**
 * The outcome of `work`, or a failure after `timeoutMs`. The work itself goes on, since storing a delivery twice is
 * safe.
 */
function within<T>(timeoutMs: number, store: string, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`${store} gave no answer within ${timeoutMs} ms`));
    const timer = setTimeout(late, timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
