import type { Context } from "../context.ts";
import { HttpError } from "../http/errors.ts";
import { BodyBudget, type Exchange, type HeldBody } from "../http/exchange.ts";
import { json, type Reply } from "../http/reply.ts";
import type { Route } from "../http/router.ts";
import { acceptDelivery, openInboxWriter } from "../inbox/accept.ts";
import { openDispatch } from "../inbox/dispatch.ts";
import { RedisDisk } from "../inbox/redis-disk.ts";
import { BoundedLabel } from "../operations/metrics.ts";
import { MAX_BODY_BYTES, readEnvelope, tooLarge } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";
import { readPayload, requireOf } from "./payload.ts";
import { Refusals } from "./refusals.ts";
import { CommonSecret, Signatures } from "./verify.ts";

type Receiving = Pick<Context, "config" | "db" | "redis" | "queues" | "clock" | "log" | "metrics" | "tracing">;

const PATH = "/webhooks";
/** The service has some 70. */
const MOST_EVENTS = 120;

export interface Receiver {
  routes: Route[];
  /** After the last delivery was answered. */
  close(): Promise<void>;
}

/**
 * `POST /webhooks`. Answers 202 with `{delivery, status: "accepted" | "known"}` once the delivery can no longer be lost, 503
 * when it could be, and each fault of the request with its status and `{message}`.
 */
export function openReceiver(ctx: Receiving): Receiver {
  const disk = new RedisDisk(ctx);
  const into = { inbox: openInboxWriter(ctx), dispatch: openDispatch(ctx), disk };
  const { webhookBodiesBytes: maxBytes, webhookBodyTimeoutMs: patienceMs } = ctx.config;
  const budget = new BodyBudget({ maxBytes, patienceMs });
  const signatures = new Signatures(ctx.config.webhookSecrets);
  const refusals = new Refusals(ctx);
  const common = new CommonSecret(ctx.log);
  const arrived = ctx.metrics.counter("tain_deliveries_received_total", "Webhook requests, by what came of them.", [
    "event",
    "outcome",
  ]);
  const events = new BoundedLabel(MOST_EVENTS);

  const receive = async (exchange: Exchange): Promise<Reply> => {
    const receivedAt = ctx.clock.now();
    let named = "unknown";
    try {
      const envelope = readEnvelope(exchange.headers);
      const { form, hookId, guid, event, isMade } = envelope;
      using body = await heldBody(budget, exchange);
      // The signature is over the exact bytes, and nothing is said of them before it is checked.
      const signer = await signatures.require(body.bytes, envelope);
      const traceparent = ctx.tracing.here();
      const read = readPayload(form, body.bytes);
      const delivery = { hookId, guid, event, isMade, ...read, receivedAt, traceparent };
      // Before the signature is checked, anybody could have named it.
      named = events.of(event);
      exchange.span?.setAttributes({ "tain.event": named, "tain.delivery": guid });
      if (signer) requireOf(signer, delivery);
      else common.note(envelope);
      const { status, postgresError } = await acceptDelivery(ctx, into, delivery);
      refusals.kept(postgresError);
      arrived.inc({ event: named, outcome: postgresError ? "kept in Redis" : status });
      const { action } = delivery;
      ctx.log.debug({ guid, event, action, status, reason: postgresError?.message }, "A delivery arrived");
      return json(202, { delivery: guid, status });
    } catch (error) {
      const reply = refusals.reply(error, exchange);
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
      await signatures.close();
    },
  };
}

/** The exact bytes of a delivery's body. @throws DeliveryFault 413, 408, 503, or 400 when the sender went away before the end */
async function heldBody(budget: BodyBudget, exchange: Exchange): Promise<HeldBody> {
  try {
    return await budget.read(exchange, MAX_BODY_BYTES);
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    switch (error.status) {
      case 413:
        throw tooLarge();
      case 408:
        throw new DeliveryFault(408, "The body took too long to arrive: send it again");
      case 503:
        throw new DeliveryFault(503, "Too many bodies are under way at the moment: send it again later");
      default:
        throw new DeliveryFault(400, "The body ended before all of it had arrived: send it again");
    }
  }
}
