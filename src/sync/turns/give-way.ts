import type { Context } from "../../context.ts";
import { countWaiting } from "../../inbox/deliveries.ts";
import { askQueues } from "../../queues/queues.ts";
import { QueueUnavailableError } from "../../queues/unavailable.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";

/** A delivery that has waited for longer than this is late. */
const DELIVERY_LATE_MS = 2_000;
/** Fewer are no backlog: a single delivery that fails again and again is late for hours. */
const BACKLOG = 100;

type Inbox = Pick<Context, "db" | "clock" | "random">;
type Inboxes = Inbox & Pick<Context, "queues" | "redis">;

/**
 * Lets deliveries and refreshes go first. A job that reads upstream page by page takes all the processor time it gets,
 * here and in Postgres, and news from webhooks waits. So while deliveries or refreshes are behind, the job waits before
 * its next page, five seconds at most. Returns at once when `signal` aborts.
 */
export async function giveWay(ctx: Inboxes, signal: AbortSignal): Promise<void> {
  await waitWhile(ctx, signal, async () => {
    const [deliveriesAreLate, refreshesAreBehind] = await Promise.all([
      areDeliveriesLate(ctx),
      areRefreshesBehind(ctx),
    ]);
    // Without Redis nobody works on refreshes, whose jobs are in it. So "unknown" is no reason to wait.
    return deliveriesAreLate || refreshesAreBehind === true;
  });
}

/** The same for jobs that find what webhooks leave open or miss: they let deliveries alone go first. */
export async function giveWayToDeliveries(ctx: Inbox, signal: AbortSignal): Promise<void> {
  await waitWhile(ctx, signal, () => areDeliveriesLate(ctx));
}

/**
 * For the refreshes of a worker. Many run at once, so they look together; the signal of the first ends the wait of all.
 * The same read then also covers further changes of the same resources.
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

async function waitWhile(
  { random }: Pick<Context, "random">,
  signal: AbortSignal,
  isBehind: () => Promise<boolean>,
): Promise<void> {
  const waits = new Waits({ policy: RETRIES.givenWay, random, signal });
  while (!signal.aborted && (await isBehind()) && (await waits.nextUnlessAborted()));
}

async function areDeliveriesLate(ctx: Inbox): Promise<boolean> {
  const before = new Date(ctx.clock.now().getTime() - DELIVERY_LATE_MS);
  return (await countWaiting(ctx, before, BACKLOG)) >= BACKLOG;
}

/** A refresh that has to wait for upstream's pace is delayed, so it does not count here. "unknown": Redis is away. */
async function areRefreshesBehind(ctx: Inboxes): Promise<boolean | "unknown"> {
  try {
    return (await askQueues(ctx, () => ctx.queues.refresh.getWaitingCount())) >= BACKLOG;
  } catch (error) {
    if (error instanceof QueueUnavailableError) return "unknown";
    throw error;
  }
}
