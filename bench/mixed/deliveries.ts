import { createHmac, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { control } from "../upstream.ts";
import type { Problems } from "./problems.ts";

export interface Sending {
  ctx: Pick<Context, "db">;
  /** Of the simulator. */
  upstream: string;
  /** Of the receiver. */
  webhooks: string;
  secret: string;
  /** Deliveries in a second, upstream's and the repeated ones together. */
  perSecond: number;
  /** Changes that people make upstream in a second; most of them are told by a webhook. */
  changesPerSecond: number;
  problems: Problems;
  signal: AbortSignal;
}

export interface Sent {
  /** By upstream, since the sending began. */
  live: number;
  /** Those of the mirror's inbox once more, under GUIDs of their own. */
  repeated: number;
}

interface Tally {
  sent: number;
  failed: number;
  redeliveries: number;
}

interface Letter {
  hook_id: string;
  event: string;
  payload: Buffer;
}

const TICK_MS = 100;
const CONNECTIONS = 16;
/** How often the deliveries to repeat are chosen anew, so that none of them is very old. */
const CHOOSE_MS = 10_000;
const CHOSEN = 500;

/**
 * Has upstream live until the signal comes. Where its own deliveries are fewer than `perSecond`, earlier ones are
 * sent again: they come late and say what is known, or was true once. Resolves when each was answered.
 */
export async function sendOn(sending: Sending): Promise<Sent> {
  const { upstream, perSecond, changesPerSecond, problems, signal } = sending;
  const agent = new Agent({ connections: CONNECTIONS });
  const before = await tallyOf(upstream);
  const startedAt = performance.now();
  await control(upstream, "POST", "live", { ratePerSecond: changesPerSecond, seed: 1 });
  let repeated = 0;
  let letters: Letter[] = [];
  let chosenAt = Number.NEGATIVE_INFINITY;
  const underWay = new Set<Promise<void>>();
  while (!signal.aborted) {
    await delay(TICK_MS);
    const now = performance.now();
    if (now - chosenAt > CHOOSE_MS) {
      letters = await recentLetters(sending);
      chosenAt = now;
    }
    const { sent } = await tallyOf(upstream);
    const missing = Math.floor(((now - startedAt) / 1_000) * perSecond) - (sent - before.sent) - repeated;
    for (let one = 0; one < missing && letters.length > 0; one++) {
      const letter = letters[repeated % letters.length] as Letter;
      repeated += 1;
      const posted: Promise<void> = repeat(sending, agent, letter).finally(() => underWay.delete(posted));
      underWay.add(posted);
    }
  }
  await control(upstream, "DELETE", "live");
  await control(upstream, "POST", "quiet");
  await Promise.all(underWay);
  await agent.close();
  const after = await tallyOf(upstream);
  const failed = after.failed - before.failed;
  if (failed > 0) problems.add("upstream's deliveries that were not taken", `${failed} of its tally`, failed);
  // A delivery that upstream was asked to send again is one that was not taken.
  const live = after.sent - before.sent - (after.redeliveries - before.redeliveries);
  return { live, repeated };
}

async function recentLetters({ ctx }: Sending): Promise<Letter[]> {
  const rows = await ctx.db.query<Letter>(sql`
    select hook_id, event, payload from deliveries
      where status = 'applied' and not is_made order by id desc limit ${CHOSEN}`);
  return rows;
}

async function repeat({ webhooks, secret, problems }: Sending, dispatcher: Agent, letter: Letter): Promise<void> {
  const { hook_id: hook, event, payload } = letter;
  try {
    const answer = await request(webhooks, {
      dispatcher,
      method: "POST",
      body: payload,
      headers: {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": randomUUID(),
        "x-github-hook-id": hook,
        "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(payload).digest("hex")}`,
      },
    });
    const body = await answer.body.text();
    if (answer.statusCode !== 202) problems.add(`delivery: ${answer.statusCode}`, body);
  } catch (error) {
    problems.add("delivery: no answer", (error as Error).message);
  }
}

/** What the simulator's webhooks have done since it began. */
async function tallyOf(upstream: string): Promise<Tally> {
  return ((await control(upstream, "GET", "meter")) as { webhooks: Tally }).webhooks;
}
