import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { levelOf } from "../failure.ts";
import { TooManyPiecesError } from "../http/body.ts";
import { HttpError } from "../http/errors.ts";
import type { Exchange } from "../http/exchange.ts";
import { json, type Reply } from "../http/reply.ts";
import type { Route } from "../http/router.ts";
import { acceptDelivery, InboxUnavailableError, openDispatch, openInboxWriter } from "../inbox/inbox.ts";
import { RedisDisk } from "../inbox/redis-disk.ts";
import type { Logger } from "../operations/log.ts";
import { BoundedLabel } from "../operations/metrics.ts";
import { putNote } from "../operations/notes.ts";
import { Outage } from "../operations/outage.ts";
import { CommonSecret, MAX_PAYLOAD_BYTES, readEnvelope, requireOf, tooLarge } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";
import { DeliveryReading } from "./reading.ts";

type Receiving = Pick<Context, "config" | "db" | "redis" | "queues" | "clock" | "log" | "metrics" | "tracing">;

const PATH = "/webhooks";
/** The most event names that become labels of metrics. The service has some 70. */
const MOST_EVENTS = 120;

export interface Receiver {
  routes: Route[];
  /** Call it after the last delivery was answered. */
  close(): Promise<void>;
}

/**
 * `POST /webhooks`. Answers 202 with `{delivery, status: "accepted" | "known"}` once the delivery can no longer be
 * lost, 503 when it could be, and each fault of the request with its status and `{message}`.
 */
export function openReceiver(ctx: Receiving): Receiver {
  const disk = new RedisDisk(ctx);
  const into = { inbox: openInboxWriter(ctx), dispatch: openDispatch(ctx), disk };
  const reading = new DeliveryReading(ctx.config.webhookSecrets);
  const refusals = new Refusals(ctx);
  const common = new CommonSecret(ctx.log);
  const arrived = ctx.metrics.counter("tain_deliveries_received_total", "Webhook requests, by what came of them.", [
    "event",
    "outcome",
  ]);
  const events = new BoundedLabel(MOST_EVENTS);
  ctx.metrics.activity.tellOf("arrived");

  const receive = async (exchange: Exchange): Promise<Reply> => {
    const receivedAt = ctx.clock.now();
    let named = "unknown";
    try {
      const envelope = readEnvelope(exchange.headers);
      const { hookId, guid, event, isMade } = envelope;
      // Upstream sends all its deliveries from a few addresses.
      using body = await exchange.body(MAX_PAYLOAD_BYTES, null);
      const { signer, read } = await reading.read(body, envelope, exchange.address);
      const traceparent = ctx.tracing.here();
      const delivery = { hookId, guid, event, isMade, signer, ...read, receivedAt, traceparent };
      // Only after the signature check, since anybody can send any event name.
      named = events.of(event);
      exchange.span?.setAttributes({ "tain.event": named, "tain.delivery": guid });
      if (signer) requireOf(signer, delivery);
      else common.note(envelope);
      const { status, postgresError } = await acceptDelivery(ctx, into, delivery);
      refusals.kept(postgresError);
      arrived.inc({ event: named, outcome: postgresError ? "kept in Redis" : status });
      if (status === "accepted") ctx.metrics.activity.add("arrived", 1);
      const { action } = delivery;
      ctx.log.debug({ guid, event, action, status, reason: postgresError?.message }, "A delivery arrived");
      return json(202, { delivery: guid, status });
    } catch (error) {
      const reply = refusals.reply(bodyFault(error), exchange);
      arrived.inc({ event: named, outcome: `refused with ${reply.status}` });
      return reply;
    }
  };
  const other = ({ method }: Exchange) =>
    json(405, { message: `${method} is not what a delivery comes by: send POST` }, { Allow: "POST" });
  const others = ["GET", "PUT", "PATCH", "DELETE"].map((method) => ({ method, path: PATH, handle: other }));
  return {
    routes: [{ method: "POST", path: PATH, handle: receive }, ...others],
    async close() {
      disk.close();
      await reading.close();
    },
  };
}

/** What a body that could not be read tells its sender. Any other error is answered as it is. */
function bodyFault(error: unknown): unknown {
  if (!(error instanceof HttpError)) return error;
  switch (error.status) {
    case 413:
      return tooLarge();
    case 408:
      return new DeliveryFault(408, "The body took too long to arrive: send it again");
    case 503:
      return new DeliveryFault(503, "Too many bodies are under way at the moment: send it again later");
    default:
      if (error instanceof TooManyPiecesError) return new DeliveryFault(400, error.message, { cause: error });
      return new DeliveryFault(400, "The body ended before all of it had arrived: send it again");
  }
}

/** How long upstream's redelivery should wait when neither store can keep a delivery, or there is no room for it. */
const RETRY_AFTER = { "Retry-After": "30" };

/** Words and logs why a delivery was not kept. Deliveries come by the hundred, so an outage is logged once. */
class Refusals {
  readonly #log: Context["log"];
  readonly #refused: RefusalLog;
  readonly #noted: RefusalNote;
  readonly #postgres: Outage;
  readonly #stores: Outage;

  constructor(ctx: Receiving) {
    const { log } = ctx;
    this.#log = log;
    this.#refused = new RefusalLog(log);
    this.#noted = new RefusalNote(ctx);
    this.#postgres = new Outage(log, "warn", {
      begins: "Postgres cannot take deliveries; they wait in Redis",
      ends: "Postgres takes deliveries again",
    });
    this.#stores = new Outage(log, "error", {
      begins: "Deliveries cannot be kept and are not acknowledged",
      ends: "Deliveries can be kept again",
    });
  }

  /** @param postgresError why the delivery had to be kept in Redis */
  kept(postgresError: Error | null): void {
    this.#stores.met();
    if (postgresError) this.#postgres.missed(postgresError);
    else this.#postgres.met();
  }

  reply(error: unknown, { address, headers }: Exchange): Reply {
    if (error instanceof DeliveryFault) {
      this.#refused.note(address, error);
      this.#noted.note(headers["x-github-hook-id"], address, error);
      return json(error.status, { message: error.message }, error.status === 503 ? RETRY_AFTER : {});
    }
    if (error instanceof InboxUnavailableError) {
      this.#stores.missed(error);
      const message = "The delivery cannot be kept at the moment: send it again later";
      return json(503, { message }, RETRY_AFTER);
    }
    this.#log.error({ err: error }, "The receiver failed");
    return json(500, { message: "The delivery was not taken because of a fault of ours: send it again later" });
  }
}

/** After this time without another refusal, the status tells of none. */
const REFUSAL_NOTED_MS = 10 * 60_000;
const NOTE_PACE_MS = 5_000;

/** Strangers' requests may be many. */
const LOOK_PACE_MS = 50;

/**
 * Notes in Redis that hooks are refused, and why, for the status. At most one note every five seconds.
 *
 * A request that cannot be verified may be anybody's. It counts if it names a hook that has delivered, or that upstream
 * listed as ours: strangers know no such number, so they neither raise the note nor hide what is noted.
 */
class RefusalNote {
  readonly #ctx: Receiving;
  /** Both by the monotonic clock. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #unseeingUntil = Number.NEGATIVE_INFINITY;

  constructor(ctx: Receiving) {
    this.#ctx = ctx;
  }

  /** @param hook as the request names it */
  note(hook: string | string[] | undefined, address: string, { message }: DeliveryFault): void {
    const now = performance.now();
    if (now < this.#quietUntil || now < this.#unseeingUntil || !/^[1-9][0-9]{0,14}$/.test(String(hook))) return;
    this.#unseeingUntil = now + LOOK_PACE_MS;
    this.#noteOf(Number(hook), `${message} (from ${address})`).catch((error: unknown) =>
      this.#ctx.log[levelOf(error, "debug")]({ err: error }, "A refusal could not be noted"),
    );
  }

  async #noteOf(hookId: number, reason: string): Promise<void> {
    const known = sql`select from deliveries where hook_id = ${hookId} union all
      select from hook_checks where hook_id = ${hookId} limit 1`;
    if ((await this.#ctx.db.count(known, { timeoutMs: NOTE_PACE_MS })) === 0) return;
    this.#quietUntil = performance.now() + NOTE_PACE_MS;
    await putNote(this.#ctx, "webhooks", { reason, keptMs: REFUSAL_NOTED_MS });
  }
}

const REFUSALS_WINDOW_MS = 60_000;
/** The most addresses with log lines of their own. All others share one line. */
const MOST_ADDRESSES = 100;

/**
 * Logs refused requests by the address that they come from: the first at once, and those that follow as one line a
 * minute with their number. So thousands of bad requests fill neither the log nor the memory.
 */
export class RefusalLog {
  readonly #log: Logger;
  /** The requests of each address since its last log line. */
  readonly #since = new Map<string, { count: number; last: DeliveryFault }>();
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  note(address: string, fault: DeliveryFault): void {
    const isTold = this.#since.has(address) || this.#since.size < MOST_ADDRESSES;
    const from = isTold ? address : "further addresses";
    const known = this.#since.get(from);
    this.#since.set(from, { count: known ? known.count + 1 : 0, last: fault });
    if (!known) this.#log.warn({ status: fault.status, from, reason: fault.message }, "A delivery was refused");
    this.#timer ??= this.#later();
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => this.#tell(), REFUSALS_WINDOW_MS).unref();
  }

  #tell(): void {
    for (const [from, { count, last }] of this.#since) {
      if (count === 0) this.#since.delete(from);
      else {
        this.#log.warn({ count, status: last.status, from, reason: last.message }, "Deliveries were refused");
        this.#since.set(from, { count: 0, last });
      }
    }
    this.#timer = this.#since.size > 0 ? this.#later() : null;
  }
}
