import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../context.ts";
import { readBody } from "./body.ts";
import { readEnvelope } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";
import { acceptDelivery, InboxUnavailableError, openDispatch } from "./inbox.ts";
import { InboxWriter } from "./inbox-writer.ts";
import { Outage } from "./outage.ts";
import { requireSigned } from "./verify.ts";

type Receiving = Pick<Context, "config" | "db" | "redis" | "queues" | "clock" | "log">;

/** How long upstream's redelivery should wait when neither store can keep a delivery. */
const RETRY_AFTER_S = 30;

/**
 * `POST /webhooks`. Answers 202 with `{delivery, status: "accepted" | "known"}` once the delivery can no longer be lost, 503
 * when it could be, and each fault of the request with its status and `{message}`.
 */
export function receiver(ctx: Receiving): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    // The signature is over the exact bytes, and a fault of the body must not be told before the signature is checked: so
    // nothing is parsed here, and the route reads the request itself.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, _payload, done) => done(null));

    const into = { inbox: new InboxWriter(ctx), dispatch: openDispatch(ctx) };

    // Deliveries come by the hundred; an outage is one event.
    const postgres = new Outage(ctx.log, "warn", {
      begins: "Postgres cannot take deliveries; they wait in Redis",
      ends: "Postgres takes deliveries again",
    });
    const stores = new Outage(ctx.log, "error", {
      begins: "Deliveries cannot be kept and are not acknowledged",
      ends: "Deliveries can be kept again",
    });
    app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
      if (error instanceof InboxUnavailableError) stores.missed(error);
      return answerFault(ctx, error, reply);
    });

    app.post("/webhooks", async (request, reply) => {
      const receivedAt = ctx.clock.now();
      const body = await readBody(request.raw);
      requireSigned(body, single(request, "x-hub-signature-256"), ctx.config.webhookSecrets);
      const delivery = readEnvelope(request.headers, body, receivedAt);
      const { status, postgresError } = await acceptDelivery(ctx, into, delivery);
      stores.met();
      if (postgresError) postgres.missed(postgresError);
      else postgres.met();
      const { guid, event, action } = delivery;
      ctx.log.debug({ guid, event, action, status, reason: postgresError?.message }, "A delivery arrived");
      return reply.code(202).send({ delivery: delivery.guid, status });
    });

    app.route({
      method: ["GET", "PUT", "PATCH", "DELETE"],
      url: "/webhooks",
      handler: async (request, reply) =>
        reply
          .code(405)
          .header("allow", "POST")
          .send({ message: `${request.method} is not what a delivery comes by: send POST` }),
    });
  };
}

function answerFault(
  { log }: Pick<Context, "log">,
  error: Error & { statusCode?: number },
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof DeliveryFault) {
    log.warn({ status: error.status, from: reply.request.ip, reason: error.message }, "A request is no delivery");
    return reply.code(error.status).send({ message: error.message });
  }
  if (error instanceof InboxUnavailableError) {
    return reply
      .code(503)
      .header("retry-after", String(RETRY_AFTER_S))
      .send({ message: "The delivery cannot be kept at the moment: send it again later" });
  }
  if (error.statusCode === 415) {
    // Fastify refuses a Content-Type that cannot be read at all before the route is entered.
    return reply
      .code(415)
      .send({ message: "Content-Type is malformed: send application/json or application/x-www-form-urlencoded" });
  }
  log.error({ err: error }, "The receiver failed");
  return reply
    .code(500)
    .send({ message: "The delivery was not taken because of a fault of ours: send it again later" });
}

function single(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
