import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "../operations/log.ts";
import { type Tracing, UNTRACED } from "../operations/tracing.ts";
import { TrustedProxies } from "./addresses.ts";
import { BodyBudget } from "./body.ts";
import { HttpError, parserError } from "./errors.ts";
import { Exchange } from "./exchange.ts";
import { pacedRequests } from "./paced-request.ts";
import { type Reply, rawText, sendReply } from "./reply.ts";
import { decoded, type FoundRoute, type Handler, type RouteMatch, type Router } from "./router.ts";

const NOWHERE: FoundRoute = { params: {} };
/** Redirects repeat the target, and clients of Node.js read heads of 16 KiB. */
const MOST_TARGET_BYTES = 8_192;
/** A request must have arrived whole within this time; 25 MB take it on a slow line. */
const REQUEST_TIMEOUT_MS = 30_000;
/**
 * How long a connection may stay without a request. Most load balancers give one up after 60 s, and should be the
 * first.
 */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** A part of an answer that is not read is held in memory. A MiB takes as long over a line of 140 kbit/s. */
const ANSWER_UNREAD_MS = 60_000;
const SMALL_BODIES = { maxBytes: 1024 * 1024, patienceMs: REQUEST_TIMEOUT_MS };
/** While the server stops, an answer that was begun before may leave its connection open. */
const IDLE_CHECK_MS = 500;

export interface ServerParts {
  routes: Router;
  /** Answers what no route answers. */
  otherwise: Handler;
  /** The answer to a request that failed. @param path null: there was no request that could be read */
  failure: (error: unknown, path: string | null) => Reply;
  /** Fits a reply, also a failure's, to the `Origin` of its request. Null: each goes as it is. */
  adapt?: ((reply: Reply, origin: string | undefined) => Reply) | null;
  trustedProxies: readonly string[];
  /** The memory for bodies. Absent: that of a server whose requests have small ones. */
  bodies?: BodyBudget;
  tracing?: Tracing;
  log: Logger;
  /** Dates the answers. */
  clock: { now(): Date };
  /** How long a caller may leave a part of an answer unread. Absent: a minute. */
  unreadMs?: number;
}

/** Rethrows an error, unless it says that this machine has no such address: IPv6 may be switched off. */
function unlessMissing(error: Error & { code?: string }): void {
  if (error.code !== "EADDRNOTAVAIL" && error.code !== "EAFNOSUPPORT") throw error;
}

/** Takes requests, has each answered by its route, and sends the answer. */
export class HttpServer {
  readonly #parts: ServerParts;
  readonly #proxies: TrustedProxies;
  readonly #bodies: BodyBudget;
  readonly #tracing: Tracing;
  readonly #unreadMs: number;
  readonly #requests = pacedRequests();
  readonly #servers: Server[] = [];
  #isStopping = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#proxies = new TrustedProxies(parts.trustedProxies);
    this.#bodies = parts.bodies ?? new BodyBudget(SMALL_BODIES);
    this.#tracing = parts.tracing ?? UNTRACED;
    this.#unreadMs = parts.unreadMs ?? ANSWER_UNREAD_MS;
  }

  /** Its address, once it listens. @throws what the operating system refuses */
  async listen(at: { host: string; port: number } | { path: string }): Promise<string> {
    if ("path" in at) {
      await this.#open(at);
      return at.path;
    }
    // `localhost` is often two addresses, and a caller may take either.
    const [first, ...others] = at.host === "localhost" ? await lookup(at.host, { all: true }) : [{ address: at.host }];
    const bound = (await this.#open({ host: first?.address ?? at.host, port: at.port })).address();
    const port = typeof bound === "object" && bound !== null ? bound.port : at.port;
    for (const { address } of others) await this.#open({ host: address, port }).catch(unlessMissing);
    const host = at.host === "0.0.0.0" ? "127.0.0.1" : (first?.address ?? at.host);
    return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  }

  /** Takes no more connections, finishes what is under way, and closes the connections behind it. */
  async close(): Promise<void> {
    this.#isStopping = true;
    const closed = this.#servers.map(async (server) => {
      const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
      await new Promise((resolve) => server.close(resolve));
      clearInterval(idle);
    });
    await Promise.all(closed);
  }

  async #open(at: { host: string; port: number } | { path: string }): Promise<Server> {
    const times = { requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS };
    const how = { ...times, IncomingMessage: this.#requests, optimizeEmptyRequests: true };
    const server = createServer(how, (request, response) => {
      void this.#serve(request, response);
    });
    server.on("clientError", (error, socket) => this.#refuse(error, socket));
    server.listen(at);
    // Rejects if the server emits an error instead.
    await once(server, "listening");
    this.#servers.push(server);
    return server;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = new Exchange(request, response, { proxies: this.#proxies, bodies: this.#bodies });
    try {
      let reply: Reply;
      try {
        const route = this.#parts.routes.find(exchange.method, exchange.path);
        reply = this.#tracing.isOn ? await this.#traced(exchange, route) : await this.#answer(exchange, route);
      } catch (error) {
        reply = this.#parts.failure(error, exchange.path);
      }
      const adapted = this.#adapted(reply, exchange.headers.origin);
      const isLast = this.#isStopping || exchange.isCut;
      const how = { isLast, unreadMs: this.#unreadMs, now: this.#parts.clock.now() };
      await sendReply(exchange, response, adapted, how);
    } catch (error) {
      this.#parts.log.error({ err: error, path: exchange.path }, "An answer could not be sent");
      response.destroy();
    }
  }

  /**
   * Traces a request until its answer begins. Requests below `/-/`, such as probes, are left out: they would hide the
   * rest.
   */
  #traced(exchange: Exchange, route: RouteMatch | null): Reply | Promise<Reply> {
    const { method, path, headers } = exchange;
    if (path.startsWith("/-/")) return this.#answer(exchange, route);
    const template = route?.template;
    const attributes = { "http.request.method": method, ...(template !== undefined && { "http.route": template }) };
    const name = template === undefined ? method : `${method} ${template}`;
    const traceparent = [headers.traceparent].flat()[0];
    return this.#tracing.begin(name, traceparent, { kind: "server", attributes }, async (span) => {
      exchange.span = span;
      let reply: Reply;
      try {
        reply = await this.#answer(exchange, route);
      } catch (error) {
        reply = this.#parts.failure(error, path);
      }
      span.setAttributes({ "http.response.status_code": reply.status });
      if (reply.status >= 500) span.failed(String(reply.status));
      return reply;
    });
  }

  #answer(exchange: Exchange, route: RouteMatch | null): Reply | Promise<Reply> {
    if (exchange.requestTarget.length > MOST_TARGET_BYTES)
      throw new HttpError(
        414,
        `URI Too Long: send at most ${MOST_TARGET_BYTES.toLocaleString("en-US")} bytes of path and query`,
      );
    if (route) return route.handle(exchange, route);
    if (decoded(exchange.path) === null)
      throw new HttpError(400, `Bad Request: '${exchange.requestTarget}' is not a valid url component`);
    return this.#parts.otherwise(exchange, NOWHERE);
  }

  #adapted(reply: Reply, origin: string | undefined): Reply {
    return this.#parts.adapt?.(reply, origin) ?? reply;
  }

  /** Answers what Node.js could not read as a request. */
  #refuse(error: Error & { code?: string }, socket: Duplex): void {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const reply = this.#adapted(this.#parts.failure(parserError(error), null), undefined);
    socket.end(rawText(STATUS_CODES[reply.status] ?? "", reply));
  }
}
