import { lookup } from "node:dns/promises";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "../operations/log.ts";
import { type TracedSpan, type Tracing, UNTRACED } from "../operations/tracing.ts";
import { TrustedProxies } from "./addresses.ts";
import { BodyBudget, type HeldBody, TooManyPiecesError } from "./body.ts";
import { HttpError, parserError } from "./errors.ts";
import { type Reply, rawText, sendReply } from "./reply.ts";

/** Values of the path, decoded, by the names that the route gives them. */
export type Params = Readonly<Record<string, string>>;

export type Handler = (exchange: Exchange, at: FoundRoute) => Reply | Promise<Reply>;

/** What the router found for a request. */
interface FoundRoute {
  /** Made when they are asked for: a kept answer needs none. */
  readonly params: Params;
}

export interface Route {
  method: string;
  /** A segment that begins with a colon stands for any one that is not empty. */
  path: string;
  /** Its last segment, which begins with a colon, stands for one or more. */
  takesRest?: boolean;
  handle: Handler;
}

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
    const server = createServer({ ...times, optimizeEmptyRequests: true }, (request, response) => {
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

interface DeclaredRoute {
  handle: Handler;
  /** Of its params, in the path's order. */
  names: readonly string[];
  /** The path that the route was declared with. */
  template: string;
}

class RouteMatch implements FoundRoute {
  readonly #route: DeclaredRoute;
  readonly #values: readonly string[];

  constructor(route: DeclaredRoute, values: readonly string[]) {
    this.#route = route;
    this.#values = values;
  }

  get handle(): Handler {
    return this.#route.handle;
  }

  get template(): string {
    return this.#route.template;
  }

  get params(): Params {
    return Object.fromEntries(this.#route.names.map((name, at) => [name, this.#values[at] ?? ""]));
  }
}

interface RouteNode {
  literal: Map<string, RouteNode>;
  any: RouteNode | null;
  /** Of one segment or more. */
  rest: RouteNode | null;
  /** By method. */
  routes: Map<string, DeclaredRoute>;
}

/**
 * All routes, as a tree of path segments. A literal segment goes before any other. A trailing slash is a segment of its
 * own.
 */
export class Router {
  readonly #root = newRouteNode();

  constructor(routes: Iterable<Route>) {
    for (const { method, path, takesRest = false, handle } of routes) {
      let node = this.#root;
      const names: string[] = [];
      const segments = path === "/" ? [] : path.slice(1).split("/");
      for (const [at, segment] of segments.entries()) {
        if (segment.startsWith(":")) names.push(segment.slice(1));
        if (takesRest && at === segments.length - 1) {
          node.rest ??= newRouteNode();
          node = node.rest;
        } else if (segment.startsWith(":")) {
          node.any ??= newRouteNode();
          node = node.any;
        } else {
          const next = node.literal.get(segment) ?? newRouteNode();
          node.literal.set(segment, next);
          node = next;
        }
      }
      if (node.routes.has(method)) throw new Error(`There are two routes ${method} ${path}`);
      node.routes.set(method, { handle, names, template: path });
    }
  }

  /** Null: there is no such route. A HEAD goes where a GET goes. */
  find(method: string, path: string): RouteMatch | null {
    let node: RouteNode | null = this.#root;
    /** Where the path might end in more segments than one: the last such place wins. */
    let wide: { node: RouteNode; values: number; start: number } | null = null;
    const values: string[] = [];
    const isEncoded = path.includes("%");
    for (let start = 1, end = 0; node && end < path.length && path !== "/"; start = end + 1) {
      const slash = path.indexOf("/", start);
      end = slash < 0 ? path.length : slash;
      if (node.rest && start < path.length) wide = { node: node.rest, values: values.length, start };
      const segment = path.slice(start, end);
      const literal: RouteNode | undefined | false = node.literal.size > 0 && node.literal.get(segment);
      if (literal) {
        node = literal;
        continue;
      }
      const value: string | null = isEncoded ? decoded(segment) : segment;
      if (value) values.push(value);
      node = value ? node.any : null;
    }
    const found = node && routeIn(node, method, values);
    if (found || !wide) return found;
    const rest = decoded(path.slice(wide.start));
    return rest === null ? null : routeIn(wide.node, method, [...values.slice(0, wide.values), rest]);
  }
}

function routeIn({ routes }: RouteNode, method: string, values: readonly string[]): RouteMatch | null {
  const route = routes.get(method) ?? (method === "HEAD" ? routes.get("GET") : undefined);
  return route ? new RouteMatch(route, values) : null;
}

function newRouteNode(): RouteNode {
  return { literal: new Map(), any: null, rest: null, routes: new Map() };
}

/** RFC 9112: a client that believes us to be a proxy sends the whole address, and is to be answered, too. */
const ORIGIN = /^https?:\/\/[^/?]*/i;

/** A request, and what can be known of its caller. */
export class Exchange {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly requestTarget: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Where its trace is told; null: it is not. */
  span: TracedSpan | null = null;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #proxies: TrustedProxies;
  readonly #bodies: BodyBudget;
  /** The rest of its body is not read, so the connection ends behind the answer. */
  isCut = false;
  #gone: AbortSignal | null = null;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { proxies, bodies }: { proxies: TrustedProxies; bodies: BodyBudget },
  ) {
    this.#request = request;
    this.#response = response;
    this.#proxies = proxies;
    this.#bodies = bodies;
    this.method = request.method ?? "GET";
    const url = request.url ?? "/";
    this.requestTarget = url.startsWith("/") ? url : url.replace(ORIGIN, "") || "/";
    const at = this.requestTarget.indexOf("?");
    this.path = at < 0 ? this.requestTarget : this.requestTarget.slice(0, at);
    this.headers = request.headers;
  }

  /** What follows the question mark. */
  get search(): string {
    return this.requestTarget.slice(this.path.length + 1);
  }

  /** Fires once the caller has gone away before the whole answer was sent. */
  get gone(): AbortSignal {
    if (this.#gone) return this.#gone;
    const controller = new AbortController();
    const abort = () => {
      if (!this.#response.writableFinished) controller.abort();
    };
    if (this.#response.closed) abort();
    else this.#response.once("close", abort);
    this.#gone = controller.signal;
    return controller.signal;
  }

  /** The address at the other end of the connection: the caller's, or a proxy's. */
  get peer(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  /** The caller's address. The word of trusted proxies counts, from the nearest to the farthest. */
  get address(): string {
    const said = this.headers["x-forwarded-for"];
    return said === undefined ? this.peer : this.#proxies.callersAddress(this.#request.socket, said);
  }

  /** The protocol that the caller speaks. TLS ends at a proxy. */
  get protocol(): string {
    return this.#forwarded("x-forwarded-proto") ?? "http";
  }

  /** The name and port that the caller asks for. */
  get host(): string {
    return this.#forwarded("x-forwarded-host") ?? this.headers.host ?? "";
  }

  /**
   * The body, within the server's memory for bodies.
   * @param sender whose share it takes; absent: that of the address. Null: senders are not told apart
   * @throws HttpError as `BodyBudget.read`
   */
  async body(maxBytes: number, sender: string | null = this.address): Promise<HeldBody> {
    try {
      return await this.#bodies.read(this.#request, maxBytes, sender);
    } catch (error) {
      if (error instanceof TooManyPiecesError) this.isCut = true;
      throw error;
    }
  }

  /** What the nearest proxy says, if it is trusted. */
  #forwarded(name: string): string | undefined {
    const said = this.headers[name];
    return said === undefined ? undefined : this.#proxies.nearestSays(this.#request.socket, said);
  }
}

/** The text without its percent-encoding. Null: what is encoded is no UTF-8. */
export function decoded(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
