import type { Context } from "../context.ts";
import { enqueueBursts, enqueueInbox } from "../queues/enqueue.ts";
import type { InboxJob } from "../queues/jobs.ts";
import { type Delivery, keysOf } from "./delivery.ts";
import { type InboxWriter, STORE_TIMEOUT_MS, storeDelivery } from "./writer.ts";

/** Neither Postgres nor Redis can keep the delivery. It must not be acknowledged. */
export class InboxUnavailableError extends Error {
  override name = "InboxUnavailableError";
}

export interface Accepted {
  /** "accepted": it can no longer be lost and will be applied. "known": it was applied or ignored before; nothing more happens. */
  status: "accepted" | "known";
  /** Why it waits in Redis, when it does not stand in Postgres. */
  postgresError: Error | null;
}

/**
 * Makes a delivery durable, then asks for it to be applied. With Postgres away the delivery waits in Redis; with Redis away
 * the dispatcher finds it in Postgres.
 * @throws InboxUnavailableError when neither store takes it
 */
export async function acceptDelivery(
  ctx: Pick<Context, "redis" | "queues">,
  { inbox, dispatch }: { inbox: InboxWriter; dispatch: (deliveryId: string) => void },
  delivery: Delivery,
): Promise<Accepted> {
  let stored: string | null;
  try {
    stored = await within(STORE_TIMEOUT_MS, "Postgres", inbox.store(delivery));
  } catch (error) {
    const postgresError = error as Error;
    await acceptIntoRedis(ctx, delivery, postgresError);
    return { status: "accepted", postgresError };
  }
  if (stored === null) return { status: "known", postgresError: null };
  // It is safe already. Upstream need not wait for Redis, and when Redis is away the dispatcher asks again.
  dispatch(stored);
  return { status: "accepted", postgresError: null };
}

/** Moves a delivery that waited in Redis to Postgres, and asks for it to be applied. Safe to repeat. */
export async function storeWaitingDelivery(
  ctx: Pick<Context, "db" | "redis" | "queues" | "log">,
  job: InboxJob,
): Promise<void> {
  const payload = Buffer.from(job.payload, "base64");
  const keys = keysOf(JSON.parse(payload.toString("utf8")));
  const { hookId, guid, event } = job;
  const stored = await storeDelivery(ctx, {
    hookId,
    guid,
    event,
    ...keys,
    payload,
    receivedAt: new Date(job.receivedAt),
  });
  if (stored !== null) openDispatch(ctx)(stored);
}

/**
 * Settles a delivery whose job has failed for good. One that was settled meanwhile stays as it is. A redelivery tries it again.
 */
export async function failDelivery(
  { db, clock }: Pick<Context, "db" | "clock">,
  { deliveryId, reason, attempts }: { deliveryId: string; reason: string; attempts: number },
): Promise<void> {
  await db.$client.query(
    `update deliveries set status = 'failed', reason = $2, attempts = greatest(attempts, $3), settled_at = $4
      where id = $1 and status = 'pending'`,
    // Postgres text holds no NUL; a message that quotes a payload may.
    [deliveryId, reason.replaceAll("\0", "").slice(0, 1_000), attempts, clock.now()],
  );
}

async function acceptIntoRedis(
  ctx: Pick<Context, "redis" | "queues">,
  delivery: Delivery,
  postgresError: Error,
): Promise<void> {
  const { hookId, guid, event, payload, receivedAt } = delivery;
  const job: InboxJob = {
    hookId,
    guid,
    event,
    payload: payload.toString("base64"),
    receivedAt: receivedAt.toISOString(),
  };
  try {
    await within(STORE_TIMEOUT_MS, "Redis", enqueueInbox(ctx, job));
  } catch (redisError) {
    throw new InboxUnavailableError("Neither Postgres nor Redis can keep the delivery", {
      cause: new AggregateError(
        [postgresError, redisError],
        `${postgresError.message}; ${(redisError as Error).message}`,
      ),
    });
  }
}

/** Asks for deliveries to be applied: all those of one moment at once, behind the answers to upstream. */
export function openDispatch(ctx: Pick<Context, "redis" | "queues" | "log">): (deliveryId: string) => void {
  let waiting: string[] = [];
  const ask = () => {
    // Copies of one that arrive at once are one.
    const deliveryIds = [...new Set(waiting)];
    waiting = [];
    enqueueBursts(ctx, deliveryIds).catch((error: Error) => {
      ctx.log.debug(
        { deliveryIds, reason: error.message },
        "Deliveries could not be queued; the dispatcher will find them",
      );
    });
  };
  return (deliveryId) => {
    if (waiting.push(deliveryId) === 1) setImmediate(ask);
  };
}

/** The outcome of `work`, or a failure once `timeoutMs` have passed. The work itself goes on; it is safe to have it twice. */
function within<T>(timeoutMs: number, store: string, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`${store} gave no answer within ${timeoutMs} ms`));
    const timer = setTimeout(late, timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
