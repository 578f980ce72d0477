import { randomUUID } from "node:crypto";
import { and, eq, isNull } from "drizzle-orm";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { traceHeaders } from "../operations/tracing.ts";
import { targets } from "../schema.ts";
import { waitAfterMs } from "../waits/backoff.ts";
import { RETRIES } from "../waits/retries.ts";
import { releaseAsk, takeAsk } from "./asks.ts";
import {
  type HeldCursor,
  holdFrom,
  isAllTold,
  isHeldForAnAttempt,
  type NextEvent,
  nextEvents,
  postpone,
  releaseCursor,
  type Step,
  stepOf,
  takeCursor,
} from "./cursors.ts";
import { type HeldPayload, openPayload } from "./payload.ts";
import { isAccepted, type SendOutcome, type TargetClient } from "./post.ts";
import { type Message, requestTo, type TargetRequest } from "./request.ts";
import type { SendSlot } from "./send-slots.ts";
import { noteSent, type Sending } from "./sent.ts";
import { findTarget, SealedSecretError, secretOf, type Target } from "./target.ts";
import { wantsEvent, wantsLabels } from "./wanted.ts";

/** How many repositories' events a target is sent at once. Events of one repository are sent one after the other. */
const LANES = 4;
/** The status of a target that was sent too much: Slack and Discord let a webhook have about one a second. */
const TOO_MANY = 429;
/** After this time other targets have their turn. */
const TURN_MS = 5_000;

type TurnContext = Pick<Context, "config" | "db" | "clock" | "random" | "log" | "tracing">;

/** One turn of one target, on its way. */
interface Turn {
  name: string;
  isOver: () => boolean;
  accepted: number;
  /** No more events were found. Later events wake the target anew. */
  isDrained: boolean;
  /** There was no room for an event's payload: the scheduler looks again within seconds. */
  isCrowded: boolean;
  /** When the first event that failed is tried again. */
  retryAt: Date | null;
  /** The target asks for fewer requests: all of its repositories wait until `retryAt`. */
  isLimited: boolean;
}

/**
 * Sends a target its waiting requests: first the asks, then the events, in order within each repository. Answers
 * whether more could be sent now.
 *
 * Everything is in Postgres. When a process dies, others take its cursors once they are no longer held. At most the
 * event that it was sending is sent twice.
 */
export async function sendTo(
  ctx: TurnContext,
  client: TargetClient,
  targetId: number,
  signal: AbortSignal,
): Promise<boolean> {
  let begun = performance.now();
  const turn: Turn = {
    name: randomUUID(),
    isOver: () => signal.aborted || performance.now() - begun > TURN_MS,
    accepted: 0,
    isDrained: false,
    isCrowded: false,
    retryAt: null,
    isLimited: false,
  };
  // The wait for room took the turn's time. The events have a turn of their own, and do not wait behind the ask.
  if ((await sendAsked(ctx, client, targetId, turn)) === "crowded") begun = performance.now();
  await runLanes(ctx, client, targetId, turn);
  if (turn.retryAt && waitsWhole(turn)) await postpone(ctx, targetId, turn.retryAt);
  return turn.isOver();
}

/** Whether a target that has refused an event is left alone with all of its repositories. */
function waitsWhole({ accepted, isLimited }: Turn): boolean {
  return accepted === 0 || isLimited;
}

/** "crowded": there was no room for the payload of an ask, which is given back. */
async function sendAsked(
  ctx: TurnContext,
  client: TargetClient,
  targetId: number,
  turn: Turn,
): Promise<"crowded" | "done"> {
  while (!turn.isOver()) {
    const ask = await takeAsk(ctx, targetId);
    const target = ask && (await findTarget(ctx, targetId));
    if (!ask || !target) return "done";
    const opened = ask.payload ? ownPayload(ask.payload) : await openPayload(ctx, client.room, ask.deliveryId);
    if (opened === "crowded") {
      await releaseAsk(ctx, ask);
      return "crowded";
    }
    const drop = sql`delete from target_asks where id = ${ask.id}`;
    if (opened === "gone") {
      await ctx.db.query(drop);
      continue;
    }
    using payload = opened;
    using slot = await client.slots.take();
    // The ask may have waited for long. Then another turn takes it once it is no longer held.
    if (!isHeldForAnAttempt(ask, ctx.clock.now())) return "done";
    const tried = await tryOnce(ctx, client, target, { ...ask, ...contentOf(payload), eventId: null });
    if (tried === null) return "done";
    slot.answered();
    await noteRequest(ctx, target, tried, { ...ask, ...timesOf(tried) }, drop);
  }
  return "done";
}

/** Mostly only one repository has events, so a lane opens only after the lane before has found some. */
async function runLanes(ctx: TurnContext, client: TargetClient, targetId: number, turn: Turn): Promise<void> {
  const lanes: Promise<void>[] = [];
  const failures: unknown[] = [];
  let running = 0;
  const open = () => {
    if (running === LANES || turn.isDrained) return;
    running += 1;
    const lane = runLane(ctx, client, { targetId, turn, open }).finally(() => {
      running -= 1;
    });
    lanes.push(lane.catch((error) => void failures.push(error)));
  };
  open();
  // By index, since lanes open further lanes meanwhile.
  for (let at = 0; at < lanes.length; at++) await lanes[at];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} repositories of one turn failed`);
  if (failures.length > 0) throw failures[0];
}

async function runLane(
  ctx: TurnContext,
  client: TargetClient,
  { targetId, turn, open }: { targetId: number; turn: Turn; open: () => void },
): Promise<void> {
  while (!turn.isOver() && !turn.isDrained) {
    const cursor = await takeCursor(ctx, targetId, turn.name);
    if (!cursor) {
      turn.isDrained = true;
      return;
    }
    open();
    // The target is read anew, since its owner may have changed it.
    const [target, events] = await Promise.all([findTarget(ctx, targetId), nextEvents(ctx, cursor)]);
    if (!target?.active || target.disabledAt !== null) {
      await releaseCursor(ctx, cursor);
      return;
    }
    // The target was disabled for so long that its waiting events are no longer kept.
    if (events.length === 0) await take(ctx, cursor, { to: "next", doneId: cursor.wantedId });
    const isGivenBack = await sendNext(ctx, client, { target, cursor, turn }, events);
    if (!isGivenBack && (await releaseCursor(ctx, cursor))) turn.isDrained = false;
    if (turn.isCrowded || (turn.retryAt && waitsWhole(turn))) return;
  }
}

/** Sends the next events of one repository. Answers whether the cursor is given back already. */
async function sendNext(
  ctx: TurnContext,
  client: TargetClient,
  { target, cursor, turn }: { target: Target; cursor: HeldCursor; turn: Turn },
  events: readonly NextEvent[],
): Promise<boolean> {
  for (const event of events) {
    if (turn.isOver() || turn.isLimited || !isHeldForAnAttempt(cursor, ctx.clock.now())) return false;
    const isWanted = wantsEvent(target, event);
    const opened = isWanted ? await openPayload(ctx, client.room, event.deliveryId) : "gone";
    if (opened === "crowded") {
      turn.isCrowded = true;
      return false;
    }
    if (opened === "gone") {
      if (isWanted)
        ctx.log.warn({ targetId: target.id, guid: event.guid }, "An event's payload is no longer kept: it is not sent");
      if ((await take(ctx, cursor, { to: "next", doneId: event.id })) !== "next") return true;
      continue;
    }
    using payload = opened;
    if (!wantsLabels(target, payload.bytes)) {
      if ((await take(ctx, cursor, { to: "next", doneId: event.id })) !== "next") return true;
      continue;
    }
    using slot = await client.slots.take();
    if (!isHeldForAnAttempt(cursor, ctx.clock.now())) return false;
    if ((await sendOne(ctx, client, { target, cursor, turn }, event, { payload, slot })) !== "next") return true;
  }
  return isAllTold(cursor);
}

async function sendOne(
  ctx: TurnContext,
  client: TargetClient,
  { target, cursor, turn }: { target: Target; cursor: HeldCursor; turn: Turn },
  event: NextEvent,
  { payload, slot }: { payload: HeldPayload; slot: SendSlot },
): Promise<Step["to"] | "lost"> {
  const tried = await tryOnce(ctx, client, target, { ...event, ...contentOf(payload), eventId: event.id });
  if (tried === null) {
    // Another process may have the key, or this one after its next start. The event waits, and its target stays on.
    turn.retryAt ??= new Date(ctx.clock.now().getTime() + waitAfterMs(1, RETRIES.unknownKey, ctx.random));
    turn.isDrained = true;
    return take(ctx, cursor, { to: "rest" });
  }
  slot.answered();
  const { outcome } = tried;
  const now = ctx.clock.now();
  const isGood = isAccepted(outcome);
  const step: Step = isGood
    ? { to: "next", doneId: event.id }
    : afterFailure(cursor, outcome, {
        eventId: event.id,
        now,
        // A request that the target accepted in this turn may not be noted yet.
        acceptedAt: turn.accepted > 0 ? now : target.acceptedAt,
        retryForMs: ctx.config.targetsRetryForMs,
        random: ctx.random,
      });
  // The target is disabled before its cursor is given back. Otherwise another lane would try once more.
  if (step.to === "rest") await disable(ctx, target, silenceProblem(cursor, outcome));
  const sending = {
    ...event,
    repositoryId: cursor.repositoryId || null,
    payload: null,
    redelivery: cursor.attempts > 0,
  };
  const moved = await noteRequest(ctx, target, tried, { ...sending, ...timesOf(tried) }, stepOf(cursor, step, now));
  if (isGood) turn.accepted += 1;
  else if (step.to === "again") {
    const isLimited = outcome.statusCode === TOO_MANY;
    turn.isLimited ||= isLimited;
    if (isLimited || turn.retryAt === null) turn.retryAt = step.retryAt;
  } else if (step.to === "next")
    ctx.log.error({ targetId: target.id, guid: event.guid, status: outcome.status }, "An event is given up");
  return followStep(cursor, step, moved, now);
}

interface Tried {
  request: TargetRequest;
  outcome: SendOutcome;
  sentAt: Date;
  durationMs: number;
}

const contentOf = ({ bytes, traceparent }: HeldPayload) => ({ payload: bytes, traceparent });
const timesOf = ({ sentAt, durationMs }: Tried) => ({ sentAt, durationMs });

/** Sends one request. Null: this process has not the key of the target's secret, and cannot sign it. */
async function tryOnce(
  ctx: TurnContext,
  client: TargetClient,
  target: Target,
  { traceparent, ...message }: Omit<Message, "sentAt"> & Pick<HeldPayload, "traceparent">,
): Promise<Tried | null> {
  let secret: string | null;
  try {
    secret = secretOf(ctx, target);
  } catch (error) {
    if (!(error instanceof SealedSecretError)) throw error;
    ctx.log.error({ targetId: target.id, problem: error.message }, "A request cannot be signed: events wait");
    return null;
  }
  const sentAt = ctx.clock.now();
  const request = await requestTo(ctx, target, secret, { ...message, sentAt });
  const begun = performance.now();
  const attributes = { "tain.event": message.event, "tain.delivery": message.guid, "tain.target": target.id };
  const about = { kind: "client", attributes } as const;
  // The trace does not tell the address, which is a secret of some targets.
  const outcome = await ctx.tracing.resume("send event", traceparent, about, async (span) => {
    const headers = { ...request.headers, ...traceHeaders(ctx.tracing) };
    const come = await client.post(target, { ...request, headers });
    span.setAttributes({ "http.response.status_code": come.statusCode });
    if (!isAccepted(come)) span.failed(come.status);
    return come;
  });
  return { request, outcome, sentAt, durationMs: performance.now() - begun };
}

/** Notes a request together with its consequence, so that a process that dies has done both or neither. */
async function noteRequest(
  ctx: TurnContext,
  target: Target,
  { request, outcome, sentAt }: Tried,
  sending: Sending,
  follows: ReturnType<typeof sql>,
): Promise<MovedCursor | undefined> {
  const accepted = isAccepted(outcome)
    ? sql`, accepted as (update targets set accepted_at = ${sentAt} where id in (select id from known)
        and (accepted_at is null or accepted_at < ${new Date(sentAt.getTime() - ACCEPTED_GRAIN_MS)}))`
    : sql``;
  // The target may have been removed meanwhile. Its row is locked first, since a statement cannot lock a row that it
  // has changed.
  const [moved] = await ctx.db.prepared<MovedCursor>(
    sql`with known as materialized (select id from targets where id = ${target.id} for key share),
      noted as (${noteSent(target, sending, request, outcome)})${accepted} ${follows}`,
  );
  return moved;
}

/** Keeps a busy target's row from being written with each request. */
const ACCEPTED_GRAIN_MS = 60_000;

interface MovedCursor {
  doneId: number;
  wantedId: number;
}

async function take(ctx: TurnContext, cursor: HeldCursor, step: Step): Promise<Step["to"] | "lost"> {
  const now = ctx.clock.now();
  const [moved] = await ctx.db.prepared<MovedCursor>(stepOf(cursor, step, now));
  return followStep(cursor, step, moved, now);
}

/** "lost": another turn has the cursor, or the target is gone. */
function followStep(cursor: HeldCursor, step: Step, moved: MovedCursor | undefined, now: Date): Step["to"] | "lost" {
  if (!moved) return "lost";
  Object.assign(cursor, moved, { attempts: 0, firstTriedAt: null, heldUntil: holdFrom(now) });
  return step.to;
}

async function disable({ db, clock, log }: TurnContext, { id }: Target, problem: string): Promise<void> {
  await db
    .update(targets)
    .set({ disabledAt: clock.now(), problem })
    .where(and(eq(targets.id, id), isNull(targets.disabledAt)));
  log.error({ targetId: id, problem }, "A target is disabled");
}

function silenceProblem({ firstTriedAt }: HeldCursor, { status, reason }: SendOutcome): string {
  const since = firstTriedAt?.toISOString() ?? "it was made";
  return `It has accepted nothing since ${since}. At last: ${reason ?? status}`;
}

/** The payload of an ask itself was made here, and is small. */
function ownPayload(bytes: Buffer): HeldPayload {
  return { bytes, traceparent: null, [Symbol.dispose]: () => {} };
}

/**
 * The step after a target has not accepted an event. The event is tried again for `retryForMs`. Then it is given up if
 * the target has accepted others meanwhile. If the target has accepted nothing, it is at fault and rests. Pure.
 */
function afterFailure(
  { attempts, firstTriedAt }: Pick<HeldCursor, "attempts" | "firstTriedAt">,
  { retryAfterMs }: Pick<SendOutcome, "retryAfterMs">,
  at: { eventId: number; now: Date; acceptedAt: Date | null; retryForMs: number; random: () => number },
): Step {
  const { now, acceptedAt, retryForMs } = at;
  if (firstTriedAt !== null && now.getTime() - firstTriedAt.getTime() >= retryForMs)
    return acceptedAt !== null && acceptedAt > firstTriedAt ? { to: "next", doneId: at.eventId } : { to: "rest" };
  const askedMs = Math.min(retryAfterMs ?? 0, retryForMs);
  const waitMs = Math.max(waitAfterMs(attempts + 1, RETRIES.event, at.random), askedMs);
  return { to: "again", retryAt: new Date(now.getTime() + waitMs) };
}
