import type { Context } from "../../context.ts";
import {
  countByStatus,
  failedDeliveryIds,
  findDeliveries,
  replayDeliveries,
  type StoredDelivery,
} from "../../inbox/deliveries.ts";
import { QueueUnavailableError } from "../../queues/unavailable.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { type Action, type Given, UsageError } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { counted, grouped, type Output, spanOf } from "../terminal/output.ts";
import { START } from "../terminal/typed.ts";
import { deliveriesTable, unknownDelivery } from "./text.ts";

const REPLAYED_AT_ONCE = 500;
/** The most deliveries that are listed. More are only counted. */
const LISTED_DELIVERIES = 50;

export const replay: Action = {
  name: "deliveries replay",
  summary: "apply deliveries once more",
  takes: "GUID|ID…",
  flags: { failed: "all that have failed, in place of names", "no-wait": "do not wait for what becomes of them" },
  about: `
Makes deliveries pending again and queues them, whatever became of them before: to apply one
twice changes nothing. Waits until each is settled and says how (0: all are applied or ignored;
1: some failed again, or are still pending when nothing has moved for ${spanOf(RETRIES.replay.withinMs)}).`,
  run: runReplay,
};

async function runReplay({ words, flags, env, resources, within }: Given, output: Output): Promise<number> {
  const isAll = flags.has("failed");
  if (isAll && words.length > 0)
    throw new UsageError("--failed replays all that have failed: name deliveries, or write --failed, not both");
  if (!isAll && words.length === 0)
    throw new UsageError(
      "tain deliveries replay needs to know which: GUIDs or ids (`tain deliveries list` has them), or --failed",
    );
  const { ctx } = await openInstance(env, resources, within);
  const ids = isAll ? await failedDeliveryIds(ctx) : await namedDeliveries(ctx, words);
  if (ids.length === 0) {
    output.document({ replayed: 0, pending: 0, applied: 0, ignored: 0, failed: 0, deliveries: [] });
    output.line("No delivery has failed: there is nothing to replay");
    return 0;
  }

  const isQueued = await queueAll(ctx, ids, output);
  const isWaiting = isQueued && !flags.has("no-wait") && (await hasWorkers(ctx, output));
  if (isWaiting) await settled(ctx, ids);

  const counts = await countByStatus(ctx, ids);
  const shown = await notable(ctx, ids);
  output.document({ replayed: ids.length, ...counts, deliveries: shown });
  if (shown.length > 0) output.line(deliveriesTable(shown, ctx));
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  output.line(
    `${counted(ids.length, "delivery", "deliveries")} replayed: ${parts.map(([status, count]) => `${grouped(count)} ${status}`).join(", ")}`,
  );
  if (flags.has("no-wait") && isQueued) return 0;
  if (isWaiting && counts.pending > 0)
    output.note(
      `tain: nothing has been settled for ${spanOf(RETRIES.replay.withinMs)}; what is pending is tried again meanwhile, and \`tain deliveries list --status pending\` shows it`,
    );
  return counts.failed + counts.pending === 0 ? 0 : 1;
}

/** @throws CommandError when one of the names finds nothing; nothing was replayed then */
async function namedDeliveries(ctx: Context, words: readonly string[]): Promise<string[]> {
  const names = [...new Set(words)];
  const found = await findDeliveries(ctx, names);
  const missing = names.filter((name) => !found.some(({ id, guid }) => name === guid || name.toLowerCase() === id));
  if (missing.length > 0) throw unknownDelivery(missing, ctx);
  return found.map(({ id }) => id);
}

/** False: Redis took no job. The deliveries stay pending, and the scheduler queues them later. */
async function queueAll(ctx: Context, ids: readonly string[], output: Output): Promise<boolean> {
  let refusal: string | null = null;
  for (let at = 0; at < ids.length; at += REPLAYED_AT_ONCE) {
    try {
      await replayDeliveries(ctx, ids.slice(at, at + REPLAYED_AT_ONCE));
    } catch (error) {
      if (!(error instanceof QueueUnavailableError)) throw error;
      refusal = error.message;
    }
  }
  if (refusal !== null)
    output.note(`tain: ${refusal}: the deliveries are pending, and queued by the scheduler once Redis is there`);
  return refusal === null;
}

async function hasWorkers({ queues }: Context, output: Output): Promise<boolean> {
  if ((await queues.deliveries.getWorkers()).length > 0) return true;
  output.note(`tain: no worker is running: what is queued waits until \`${START}\` brings one`);
  return false;
}

/** Waits until none is pending, or nothing has moved for too long. */
async function settled(ctx: Context, ids: readonly string[]): Promise<void> {
  let left = ids.length;
  const waits = new Waits({ policy: RETRIES.replay, random: ctx.random });
  // Workers show their progress only in the deliveries' rows, so these are read again and again.
  while (left > 0 && (await waits.next())) {
    const { pending } = await countByStatus(ctx, ids);
    if (pending < left) waits.reset();
    left = pending;
  }
}

/** The deliveries to list: all if there are few, otherwise the first ones that failed or are pending. */
async function notable(ctx: Context, ids: readonly string[]): Promise<StoredDelivery[]> {
  if (ids.length <= LISTED_DELIVERIES) return await findDeliveries(ctx, ids);
  const found: StoredDelivery[] = [];
  for (let at = 0; at < ids.length && found.length < LISTED_DELIVERIES; at += REPLAYED_AT_ONCE) {
    const some = await findDeliveries(ctx, ids.slice(at, at + REPLAYED_AT_ONCE));
    found.push(...some.filter(({ status }) => status === "failed" || status === "pending"));
  }
  return found.slice(0, LISTED_DELIVERIES);
}
