import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Context } from "../context.ts";
import { type Accepted, acceptDelivery, InboxUnavailableError, openDispatch } from "../inbox/accept.ts";
import { InboxWriter } from "../inbox/writer.ts";
import { goInFront, type Way } from "../operations/front.ts";
import { Outage } from "../operations/outage.ts";
import { readBody } from "./body.ts";
import { readEnvelope } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";
import { requireSigned } from "./verify.ts";

type Receiving = Pick<Context, "config" | "db" | "redis" | "queues" | "clock" | "log">;

/** How long upstream's redelivery should wait when neither store can keep a delivery. */
const RETRY_AFTER_S = 30;

const PATH = "/webhooks";

/** What an acknowledged delivery is answered with. */
interface Receipt {
  /** Its GUID. */
  delivery: string;
  status: Accepted["status"];
}

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
    const refuse = (error: Error & { statusCode?: number }, from: string): Answer => {
      if (error instanceof InboxUnavailableError) stores.missed(error);
      return faultAnswer(ctx, error, from);
    };
    app.setErrorHandler((error: Error, request, reply) => {
      const { status, headers, body } = refuse(error, request.ip);
      return reply.code(status).headers(headers).send(body);
    });

    const receive = async (request: IncomingMessage): Promise<Receipt> => {
      const receivedAt = ctx.clock.now();
      const body = await readBody(request);
      requireSigned(body, single(request, "x-hub-signature-256"), ctx.config.webhookSecrets);
      const delivery = readEnvelope(request.headers, body, receivedAt);
      const { status, postgresError } = await acceptDelivery(ctx, into, delivery);
      stores.met();
      if (postgresError) postgres.missed(postgresError);
      else postgres.met();
      const { guid, event, action } = delivery;
      ctx.log.debug({ guid, event, action, status, reason: postgresError?.message }, "A delivery arrived");
      return { delivery: guid, status };
    };

    // The way through the app to the route and back takes 20 µs, an eighth of all that is done for a delivery. So it is
    // received in front of the app. What cannot be acknowledged goes on to the route, which knows behind which proxy the
    // sender is; but once the app has begun to close it would say only that.
    const refused = new WeakMap<IncomingMessage, Promise<Receipt>>();
    goInFront(app, (request, response, way) => {
      if (request.method !== "POST" || request.url !== PATH) return way.pass(request, response);
      const receiving = receive(request);
      receiving.then(
        (receipt) => answer(response, { status: 202, headers: {}, body: receipt }, way),
        (error: Error) => {
          if (way.isClosing()) return answer(response, refuse(error, request.socket.remoteAddress ?? ""), way);
          refused.set(request, receiving);
          way.pass(request, response);
        },
      );
    });
    app.post(PATH, async (request, reply) => {
      const receipt = await (refused.get(request.raw) ?? receive(request.raw));
      return reply.code(202).send(receipt);
    });

    app.route({
      method: ["GET", "PUT", "PATCH", "DELETE"],
      url: PATH,
      handler: async (request, reply) =>
        reply
          .code(405)
          .header("allow", "POST")
          .send({ message: `${request.method} is not what a delivery comes by: send POST` }),
    });
  };
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: object;
}

/** As the app answers, which closes connections when it is to stop. */
function answer(
  response: ServerResponse,
  { status, headers, body }: Answer,
  { isClosing }: Pick<Way, "isClosing">,
): void {
  const text = JSON.stringify(body);
  if (isClosing()) response.shouldKeepAlive = false;
  response
    .writeHead(status, {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Length": Buffer.byteLength(text),
      ...headers,
    })
    .end(text);
}

function faultAnswer({ log }: Pick<Context, "log">, error: Error & { statusCode?: number }, from: string): Answer {
  if (error instanceof DeliveryFault) {
    log.warn({ status: error.status, from, reason: error.message }, "A request is no delivery");
    return { status: error.status, headers: {}, body: { message: error.message } };
  }
  if (error instanceof InboxUnavailableError) {
    return {
      status: 503,
      headers: { "retry-after": String(RETRY_AFTER_S) },
      body: { message: "The delivery cannot be kept at the moment: send it again later" },
    };
  }
  if (error.statusCode === 415) {
    // Fastify refuses a Content-Type that cannot be read at all before the route is entered.
    const message = "Content-Type is malformed: send application/json or application/x-www-form-urlencoded";
    return { status: 415, headers: {}, body: { message } };
  }
  log.error({ err: error }, "The receiver failed");
  const message = "The delivery was not taken because of a fault of ours: send it again later";
  return { status: 500, headers: {}, body: { message } };
}

function single(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
