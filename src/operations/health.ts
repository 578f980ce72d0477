import { createHash, timingSafeEqual } from "node:crypto";
import { BlockList, isIP } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../context.ts";
import { missingParts } from "./readiness.ts";
import { loadStatus } from "./status.ts";

type Watched = Pick<Context, "config" | "db" | "queues" | "redis" | "clock">;

/** The probes and the status. `quota` answers what upstream still lets each credential do. */
export function health(
  ctx: Watched,
  { quota }: { quota: () => Promise<unknown[]> },
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

    app.get("/-/status", async (request, reply) => {
      // To anyone else the page does not exist: it names private repositories.
      if (!isOperator(request, ctx.config.operatorToken)) return reply.callNotFound();
      return await loadStatus(ctx, quota);
    });
  };
}

/** Whether the caller sits at this machine, or holds the operator's token. */
export function isOperator(request: Pick<FastifyRequest, "headers" | "socket">, operatorToken: string | null): boolean {
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

function isDirectLoopback({ headers, socket }: Pick<FastifyRequest, "headers" | "socket">): boolean {
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
