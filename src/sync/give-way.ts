import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** A delivery that has waited for longer than this is late. */
const LATE_MS = 2_000;
/** Fewer are no backlog: one that fails again and again is late for hours. */
const BACKLOG = 100;
const LOOK_AGAIN_MS = 250;
/** Whoever gives way goes on after so long, so that a copy comes to its end under any load. */
const LONGEST_MS = 5_000;

type Inbox = Pick<Context, "db" | "clock">;
type Inboxes = Inbox & Pick<Context, "queues" | "redis">;

/**
 * Lets deliveries and refreshes go first. What reads upstream page by page takes all the processor time that it finds, of this machine
 * and of Postgres', and people wait for what webhooks tell: while these are behind, it waits before its next page, five
 * seconds at most. Returns at once when `signal` comes.
 */
export async function giveWay(ctx: Inboxes, signal: AbortSignal): Promise<void> {
  await waitWhile(signal, async () => {
    const [deliveries, refreshes] = await Promise.all([lateDeliveries(ctx), dueRefreshes(ctx)]);
    return deliveries >= BACKLOG || refreshes >= BACKLOG;
  });
}

/** The same for those who find what webhooks leave open or miss: they let deliveries alone go first. */
export async function giveWayToDeliveries(ctx: Inbox, signal: AbortSignal): Promise<void> {
  await waitWhile(signal, async () => (await lateDeliveries(ctx)) >= BACKLOG);
}

/**
 * For the refreshes of a worker. They are many at once, so they look together; the signal of the first ends the wait of all. While
 * they wait, what else happens to the same resources is left to the same read.
 */
export class DeliveriesFirst {
  readonly #ctx: Inbox;
  #wait: Promise<void> | null = null;

  constructor(ctx: Inbox) {
    this.#ctx = ctx;
  }

  giveWay(signal: AbortSignal): Promise<void> {
    this.#wait ??= giveWayToDeliveries(this.#ctx, signal).finally(() => {
      this.#wait = null;
    });
    return this.#wait;
  }
}

async function waitWhile(signal: AbortSignal, isBehind: () => Promise<boolean>): Promise<void> {
  for (let waitedMs = 0; !signal.aborted && waitedMs < LONGEST_MS && (await isBehind()); waitedMs += LOOK_AGAIN_MS) {
    // Only the signal ends it early.
    await delay(LOOK_AGAIN_MS, undefined, { signal }).catch(() => {});
  }
}

/** As far as they make a backlog. */
async function lateDeliveries({ db, clock }: Inbox): Promise<number> {
  const before = new Date(clock.now().getTime() - LATE_MS);
  const [row] = await db.prepared<{ late: number }>(sql`
    select count(*)::int as late from (
      select from deliveries where status = 'pending' and received_at < ${before} limit ${BACKLOG}) late`);
  return row?.late ?? 0;
}

/** Those for which upstream's pace leaves no room are not due. Without Redis nobody knows, and nobody works on them. */
async function dueRefreshes({ queues, redis }: Inboxes): Promise<number> {
  return redis.status === "ready" ? queues.refresh.getWaitingCount().catch(() => 0) : 0;
}
