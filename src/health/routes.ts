import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Context } from "../context.ts";
import { missingParts } from "./readiness.ts";
import { loadStatus } from "./status.ts";

type Watched = Pick<Context, "config" | "db" | "queues" | "redis" | "clock">;

/** The probes and the status. `quota` answers what upstream still lets each credential do, `forecast` what follows from it. */
export function health<Quota>(
  ctx: Watched,
  { quota, forecast }: { quota: () => Promise<Quota[]>; forecast?: Parameters<typeof loadStatus<Quota>>[2] },
): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    app.addHook("onSend", async (_request, reply) => {
      reply.header("cache-control", "no-store");
    });

    app.get("/-/live", async () => ({ live: true }));

    app.get("/-/ready", async (_request, reply) => {
      const missing = await missingParts(ctx);
      if (missing.length === 0) return { ready: true };
      return reply.code(503).send({ ready: false, missing });
    });

    // To anyone but the operator the page does not exist, since it names private repositories. As a constraint of the route
    // this is true to the letter: their request goes wherever one for an unknown path goes.
    app.addConstraintStrategy(operatorOnly(ctx.config));
    app.get("/-/status", { constraints: { operator: true } }, async () => await loadStatus(ctx, quota, forecast));
  };
}

type RouteConstraint = Parameters<FastifyInstance["addConstraintStrategy"]>[0];
type Stored = ReturnType<ReturnType<RouteConstraint["storage"]>["get"]>;

function operatorOnly({ operatorToken }: Watched["config"]): RouteConstraint {
  return {
    name: "operator",
    storage: () => {
      let handler: Stored = null;
      return {
        get: (isOperator) => (isOperator ? handler : null),
        set: (_isOperator, added) => {
          handler = added;
        },
      };
    },
    deriveConstraint: (request) => isOperator(request as IncomingMessage, operatorToken),
  };
}

/** Whether the caller sits at this machine, or holds the operator's token. */
function isOperator(request: Pick<IncomingMessage, "headers" | "socket">, operatorToken: string | null): boolean {
  const [, given] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "") ?? [];
  if (given !== undefined && operatorToken !== null && isSame(given, operatorToken)) return true;
  return isDirectLoopback(request);
}

/** What proxies add. A request that carries one has come from elsewhere, though the proxy sits at this machine. */
const forwardingHeaders = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-port",
  "x-forwarded-server",
  "x-real-ip",
  "x-client-ip",
  "x-original-host",
  "x-envoy-external-address",
  "true-client-ip",
  "cf-connecting-ip",
  "fly-client-ip",
];

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function isDirectLoopback({ headers, socket }: Pick<IncomingMessage, "headers" | "socket">): boolean {
  if (!isLoopbackAddress(socket.remoteAddress ?? "")) return false;
  if (forwardingHeaders.some((name) => headers[name] !== undefined)) return false;
  // A web page can make the browser of somebody at this machine ask us under a name of its own (DNS rebinding), and a proxy
  // that adds no header passes the public name: a caller at this machine has no need of either.
  const host = URL.parse(`http://${headers.host ?? ""}`)?.hostname ?? "";
  const name = host.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return name === "localhost" || name.endsWith(".localhost") || isLoopbackAddress(name);
}

function isLoopbackAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  const family = isIP(plain);
  return family !== 0 && loopback.check(plain, family === 4 ? "ipv4" : "ipv6");
}

/** In constant time, whatever the lengths. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
