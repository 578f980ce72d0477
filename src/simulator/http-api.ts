/**
 * One request of the public interface, from socket to answer. The order is the service's: user agent, version, who is
 * calling, limits, route, permission, and only then the route itself; validators and compression at the end.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Faults, HttpFault } from "./faults.ts";
import { Graphql } from "./graphql.ts";
import { type Bucket, type Caller, callerOf } from "./quota.ts";
import type { Repository } from "./records.ts";
import { Refusal } from "./refusal.ts";
import { type Answer, type Call, notFound, Redirect, type RepositoryCall, type Service } from "./rest/call.ts";
import {
  cacheHeaders,
  commonHeaders,
  DEPRECATION,
  DEPRECATION_LINK,
  etagOf,
  isFresh,
  newRequestId,
  PLAIN_VARY,
  quotaHeaders,
  tokenHeaders,
} from "./rest/headers.ts";
import { credentialOf, mediaOf, unsupportedVersion, versionOf } from "./rest/negotiation.ts";
import { type Route, Router, segmentsOf } from "./rest/routes.ts";
import { roleOf, type Token } from "./tokens.ts";
import { openView, type View } from "./views/view.ts";

const MAX_BODY = 25 * 1024 * 1024;
// Below this gzip makes nothing smaller; the service's answers of `[]` are never compressed.
const MIN_COMPRESSED = 64;
const DOCS = "https://docs.github.com/rest";
const LIMIT_DOCS = `${DOCS}/overview/rate-limits-for-the-rest-api`;
const SECONDARY_DOCS =
  "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits";
const REDIRECT_DOCS = `${DOCS}/guides/best-practices-for-using-the-rest-api#follow-redirects`;
const SCRAPING =
  "For more on scraping GitHub and how it may affect your rights, please review our Terms of Service (https://docs.github.com/en/site-policy/github-terms/github-terms-of-service)";

/** What is known of a request as it goes through; the answer's headers and the meter need it. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** Below `/api/v3`, not decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly view: View;
  readonly token: Token | null;
  readonly caller: Caller;
  readonly requestId: string;
  readonly mediaName: string;
  readonly file: "diff" | "patch" | null;
  bucket: Bucket;
  route: string;
  docs: string;
  charged: number;
  points: number;
  limited: "primary" | "secondary" | null;
  /** Set when a fault cuts the answer short. */
  truncated: boolean;
}

export class HttpApi {
  readonly graphql: Graphql;
  readonly #service: Service;
  readonly #faults: Faults;
  readonly #htmlUrl: string;
  readonly #ownUrl: () => string;
  readonly #router = new Router();
  readonly #stop = new AbortController();
  #running = 0;

  /** `ownUrl` is where the server listens: the base of addresses for requests that name no host. */
  constructor(service: Service, faults: Faults, htmlUrl: string, ownUrl: () => string) {
    this.#service = service;
    this.#faults = faults;
    this.#htmlUrl = htmlUrl;
    this.#ownUrl = ownUrl;
    this.graphql = new Graphql(service.world, service.quota);
  }

  /** Slow answers are given up. */
  close(): void {
    this.#stop.abort();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { quota, meter } = this.#service;
    const exchange = this.#open(request, response);
    quota.enter(exchange.caller);
    this.#running += 1;
    meter.sawConcurrent(this.#running);
    try {
      const fault = this.#faults.http(exchange.method, exchange.path);
      if (fault && (await this.#struck(exchange, fault))) return;
      await this.#answer(exchange);
    } finally {
      this.#running -= 1;
      quota.leave(exchange.caller);
      meter.count({
        caller: exchange.token?.value ?? exchange.caller.key,
        bucket: exchange.bucket,
        route: exchange.route,
        status: response.statusCode,
        charged: exchange.charged,
        points: exchange.points,
        limited: exchange.limited,
      });
    }
  }

  #open(request: IncomingMessage, response: ServerResponse): Exchange {
    const { world, tokens } = this.#service;
    const { headers } = request;
    const own = this.#ownUrl();
    const host = headers.host && /^[\w.:[\]-]+$/.test(headers.host) ? `http://${headers.host}` : own;
    const [rawPath = "/", rawQuery = ""] = (request.url ?? "/").split(/\?(.*)/s);
    const prefix = /^\/api\/v3(?=\/|$)/.exec(rawPath)?.[0] ?? "";
    const path = rawPath === "/api/graphql" ? "/graphql" : rawPath.slice(prefix.length) || "/";
    const credential = credentialOf(headers.authorization);
    const token = credential ? (tokens.find(credential) ?? null) : null;
    const media = mediaOf(headers.accept);
    return {
      request,
      response,
      method: request.method ?? "GET",
      path,
      query: new URLSearchParams(rawQuery),
      view: openView({
        world,
        apiUrl: `${host}${prefix}`,
        htmlUrl: this.#htmlUrl,
        version: versionOf(header(request, "x-github-api-version")) ?? "2022-11-28",
        bodyForm: media.bodyForm,
        nextIds: header(request, "x-github-next-global-id") === "1",
        roleOf: token
          ? (repository) => roleOf(world, token, repository)
          : (repository) => roleOf(world, null, repository),
      }),
      token,
      caller: callerOf(token, request.socket.remoteAddress ?? "127.0.0.1"),
      requestId: newRequestId(),
      mediaName: media.name,
      file: media.file,
      bucket: path === "/graphql" ? "graphql" : "core",
      route: `${request.method} (unknown)`,
      docs: DOCS,
      charged: 0,
      points: 0,
      limited: null,
      truncated: false,
    };
  }

  async #answer(exchange: Exchange): Promise<void> {
    const { request } = exchange;
    if (!request.headers["user-agent"]?.trim()) {
      this.#plain(exchange, 403, "text/html", FORBIDDEN_AGENT);
      return;
    }
    if (exchange.method === "OPTIONS") {
      this.#preflight(exchange);
      return;
    }
    if (exchange.path === "/graphql") {
      await this.#answerGraphql(exchange);
      return;
    }
    const version = header(request, "x-github-api-version");
    if (version && !versionOf(version)) {
      this.#send(exchange, { status: 400, body: unsupportedVersion(version) });
      return;
    }
    const text = await readText(request);
    if (text === null) {
      this.#send(exchange, { status: 413, body: this.#errorBody(exchange, new Refusal(413, "Payload too large")) });
      return;
    }
    try {
      this.#send(exchange, this.#rest(exchange, text));
    } catch (error) {
      if (error instanceof Redirect) this.#send(exchange, redirectAnswer(exchange.method, error.location));
      else if (error instanceof Refusal)
        this.#send(exchange, { status: error.status, body: this.#errorBody(exchange, error) });
      else throw error;
    }
  }

  #rest(exchange: Exchange, text: string): Answer {
    const { request, method, path } = exchange;
    const wantsCredential = credentialOf(request.headers.authorization) !== null;
    if (wantsCredential && !exchange.token) throw new Refusal(401, "Bad credentials");
    const { segments, repository, moved } = this.#resolve(exchange);
    const found =
      path !== "/" && path.endsWith("/") ? undefined : this.#router.find(method === "HEAD" ? "GET" : method, segments);
    if (found) {
      exchange.route = `${found.route.method} ${found.route.pattern}`;
      exchange.docs = `${DOCS}/${found.route.docs}`;
    }
    const limited = this.#limit(exchange, found?.route);
    if (limited) return limited;
    if (!found) throw notFound();
    const call: Call = {
      ...this.#service,
      method,
      path: canonicalPath(exchange, segments, repository),
      query: exchange.query,
      body: method === "GET" || method === "HEAD" ? {} : readJson(text, found.route.pattern),
      params: { ...found.params, ...(exchange.file ? { accept: exchange.file } : {}) },
      token: exchange.token,
      caller: exchange.caller,
      view: exchange.view,
    };
    if (typeof found.route.run === "function") return dressed(exchange, found.route, found.route.run(call));
    const role = repository && exchange.view.roleOf(repository);
    if (!repository || !role) throw notFound();
    if (moved) throw new Redirect(`${exchange.view.apiUrl}${call.path}${queryOf(request)}`);
    const inRepository: RepositoryCall = { ...call, repository, role };
    return dressed(exchange, found.route, found.route.run.inRepository(inRepository));
  }

  /** Names and numeric ids lead to the same routes. */
  #resolve(exchange: Exchange): { segments: string[]; repository: Repository | undefined; moved: boolean } {
    const { world } = this.#service;
    const segments = segmentsOf(exchange.path).map(decoded);
    if (segments[0] === "repositories" && segments.length > 1) {
      const repository = world.repositories.get(Number(segments[1]));
      return { segments: ["repos", "?", "?", ...segments.slice(2)], repository, moved: false };
    }
    if (segments[0] !== "repos" || segments.length < 3) return { segments, repository: undefined, moved: false };
    const found = world.repositoryByName(segments[1] ?? "", segments[2] ?? "");
    return { segments, repository: found?.repository, moved: found?.moved ?? false };
  }

  /** Secondary first, as those are looked at for every request; `/rate_limit` is free of the primary one. */
  #limit(exchange: Exchange, route: Route | undefined): Answer | null {
    const { quota } = this.#service;
    const { caller, method } = exchange;
    const points = method === "GET" || method === "HEAD" ? 1 : 5;
    const refused = quota.secondary(caller, { api: "rest", points, createsContent: route?.content ?? false });
    if (refused) {
      exchange.limited = "secondary";
      const message =
        refused.limit === "content"
          ? "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later."
          : `You have exceeded a secondary rate limit. Please wait a few minutes before you try again. ${this.#support(exchange)}`;
      return this.#limitAnswer(message, SECONDARY_DOCS, quota.retryAfter ? refused.retryAfterSeconds : null);
    }
    if (route?.pattern === "/rate_limit") return null;
    if (quota.charge(caller, exchange.bucket, 1)) {
      exchange.charged = 1;
      return null;
    }
    exchange.limited = "primary";
    const message = caller.anonymous
      ? `API rate limit exceeded for ${caller.name}. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)`
      : `API rate limit exceeded for ${caller.name}. ${this.#support(exchange)}`;
    return this.#limitAnswer(message, LIMIT_DOCS, null);
  }

  #support(exchange: Exchange): string {
    const at = new Date(this.#service.world.clock.now()).toISOString().slice(0, 19).replace("T", " ");
    return `If you reach out to GitHub Support for help, please include the request ID ${exchange.requestId} and timestamp ${at} UTC. ${SCRAPING}`;
  }

  #limitAnswer(message: string, documentationUrl: string, retryAfter: number | null): Answer {
    const { status } = this.#service.quota;
    const body = { message, documentation_url: documentationUrl, status: String(status) };
    return { status, body, headers: retryAfter === null ? {} : { "Retry-After": String(retryAfter) } };
  }

  async #answerGraphql(exchange: Exchange): Promise<void> {
    const { request, token, view } = exchange;
    exchange.route = `${exchange.method} /graphql`;
    if (exchange.method !== "POST") {
      this.#send(exchange, { status: 404, body: this.#errorBody(exchange, notFound()) });
      return;
    }
    const text = await readText(request);
    if (text === null) {
      this.#send(exchange, { status: 413, body: this.#errorBody(exchange, new Refusal(413, "Payload too large")) });
      return;
    }
    const credential = credentialOf(request.headers.authorization);
    const answer = await this.graphql.answer({
      token: token ?? (credential === null ? "none" : "bad"),
      body: text,
      view,
    });
    exchange.points = answer.points;
    exchange.charged = answer.points > 0 ? 1 : 0;
    exchange.limited = answer.limited;
    const wait = answer.retryAfterSeconds !== undefined && this.#service.quota.retryAfter;
    const headers = wait ? { "Retry-After": String(answer.retryAfterSeconds) } : {};
    this.#send(exchange, { status: answer.status, body: answer.body, uncached: true, headers });
  }

  // --- Sending

  #send(exchange: Exchange, answer: Answer): void {
    const { request, token } = exchange;
    const json = answer.body === undefined ? null : JSON.stringify(answer.body);
    const content = answer.text?.content ?? json;
    const signed = token !== null;
    const cacheable = content !== null && (answer.status === 200 || answer.status === 201);
    const tagged = cacheable && !answer.uncached;
    const etag = tagged ? etagOf(request.headers, signed, content) : null;
    const read = exchange.method === "GET" || exchange.method === "HEAD";
    const fresh =
      read && answer.status === 200 && isFresh(request.headers, etag, tagged ? answer.lastModified : undefined);
    if (fresh && signed && exchange.charged > 0) {
      // A 304 costs nothing, but only with an Authorization header.
      this.#service.quota.refund(exchange.caller, exchange.bucket, exchange.charged);
      exchange.charged = 0;
    }

    const pretty = json !== null && /curl|Wget|Safari|Firefox/.test(request.headers["user-agent"] ?? "");
    const text = pretty ? `${JSON.stringify(answer.body, null, 2)}\n` : content;
    const compressed =
      text !== null && text.length >= MIN_COMPRESSED && /\bgzip\b/.test(header(request, "accept-encoding") ?? "");
    const links = [...(answer.links ?? [])];
    const headers: Record<string, string | string[]> = {
      ...this.#baseHeaders(exchange),
      ...(cacheable ? cacheHeaders(signed, answer.uncached ?? false) : { Vary: PLAIN_VARY }),
      ...(etag === null ? {} : { ETag: `${compressed ? "W/" : ""}"${etag}"` }),
      ...(tagged && answer.lastModified !== undefined
        ? { "Last-Modified": new Date(answer.lastModified * 1_000).toUTCString() }
        : {}),
      ...answer.headers,
      ...(links.length > 0 ? { Link: links.join(", ") } : {}),
    };
    if (fresh) {
      this.#write(exchange, 304, headers, null);
      return;
    }
    if (text === null) {
      this.#write(exchange, answer.status, headers, null);
      return;
    }
    headers["Content-Type"] = answer.text?.type ?? "application/json; charset=utf-8";
    const body = compressed ? gzipSync(text, { level: 1 }) : Buffer.from(text);
    if (compressed) headers["Content-Encoding"] = "gzip";
    this.#write(exchange, answer.status, headers, body);
  }

  #baseHeaders(exchange: Exchange): Record<string, string> {
    const { quota, world } = this.#service;
    return {
      Date: new Date(world.clock.now()).toUTCString(),
      ...commonHeaders(exchange.requestId),
      "X-GitHub-Media-Type": exchange.mediaName,
      "x-github-api-version-selected": exchange.view.version,
      ...tokenHeaders(exchange.token),
      ...quotaHeaders(quota.state(exchange.caller, exchange.bucket), exchange.bucket),
    };
  }

  #write(exchange: Exchange, status: number, headers: Record<string, string | string[]>, body: Buffer | null): void {
    const { response } = exchange;
    if (body) headers["Content-Length"] = String(body.length);
    response.writeHead(status, headers);
    if (exchange.method === "HEAD" || !body) {
      response.end();
    } else if (exchange.truncated) {
      response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
    } else response.end(body);
  }

  #plain(exchange: Exchange, status: number, type: string, content: string, extra: Record<string, string> = {}): void {
    this.#write(
      exchange,
      status,
      { ...this.#baseHeaders(exchange), "Content-Type": type, ...extra },
      Buffer.from(content),
    );
  }

  #preflight(exchange: Exchange): void {
    this.#write(
      exchange,
      204,
      {
        ...commonHeaders(exchange.requestId),
        "Access-Control-Allow-Headers":
          "Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Match, If-Unmodified-Since, X-GitHub-OTP, X-Requested-With",
        "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE",
        "Access-Control-Max-Age": "86400",
      },
      null,
    );
  }

  #errorBody(exchange: Exchange, refusal: Refusal) {
    return {
      message: refusal.message,
      ...(refusal.errors === undefined ? {} : { errors: refusal.errors }),
      documentation_url: exchange.docs,
      status: String(refusal.status),
    };
  }

  // --- Faults

  /** True: the request has been answered (or dropped) by the fault. */
  async #struck(exchange: Exchange, fault: HttpFault): Promise<boolean> {
    const retryAfter: Record<string, string> =
      fault.retryAfter === undefined ? {} : { "Retry-After": String(fault.retryAfter) };
    switch (fault.kind) {
      case "reset":
        exchange.response.statusCode = 499;
        exchange.request.socket.destroy();
        return true;
      case "truncate":
        exchange.truncated = true;
        return false;
      case "slow":
        await wait(fault.delayMs ?? 1_000, undefined, { signal: this.#stop.signal });
        return false;
      case "secondary-limit": {
        exchange.limited = "secondary";
        const message = `You have exceeded a secondary rate limit. Please wait a few minutes before you try again. ${this.#support(exchange)}`;
        this.#send(exchange, this.#limitAnswer(message, SECONDARY_DOCS, fault.retryAfter ?? null));
        return true;
      }
      case "status":
        if (fault.status === 502 || fault.status === 504)
          this.#plain(exchange, fault.status, "text/html", SERVER_ERROR_PAGE, retryAfter);
        else if (fault.status === 429) this.#plain(exchange, 429, "text/plain", "Too Many Requests", retryAfter);
        else {
          const body = { message: "Server Error", ...(fault.status === 503 ? { code: "unavailable" } : {}) };
          this.#send(exchange, { status: fault.status ?? 500, body, headers: retryAfter });
        }
        return true;
      default:
        return fault.kind satisfies never;
    }
  }
}

const FORBIDDEN_AGENT =
  "\r\nRequest forbidden by administrative rules. Please make sure your request has a User-Agent header " +
  "(https://docs.github.com/en/rest/overview/resources-in-the-rest-api#user-agent-required). Check https://developer.github.com for other possible causes.\r\n";
const SERVER_ERROR_PAGE =
  "<!DOCTYPE html>\n<html>\n  <head><title>Unicorn! &middot; GitHub</title></head>\n  <body>Server Error</body>\n</html>\n";

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) throw notFound();
    throw error;
  }
}

/** The text of the body; null when it is too long. */
async function readText(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY) chunks.push(chunk);
  }
  return length > MAX_BODY ? null : Buffer.concat(chunks).toString("utf8");
}

function readJson(text: string, pattern: string): Record<string, unknown> {
  if (text === "") return {};
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal(400, "Problems parsing JSON");
    throw error;
  }
  // Labels of an issue may come as the bare array.
  if (Array.isArray(json) && pattern.endsWith("/issues/:number/labels")) return { labels: json };
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new Refusal(400, "Body should be a JSON object");
  return json as Record<string, unknown>;
}

function queryOf(request: IncomingMessage): string {
  const at = (request.url ?? "").indexOf("?");
  return at < 0 ? "" : (request.url ?? "").slice(at);
}

/** With numeric ids in the place of names, as `Link` and redirects show it. */
function canonicalPath(exchange: Exchange, segments: readonly string[], repository: Repository | undefined): string {
  const rest = (from: number) =>
    segments
      .slice(from)
      .map((segment) => `/${encodeURIComponent(segment)}`)
      .join("");
  if (repository) return `/repositories/${repository.id}${rest(3)}`;
  const { world } = exchange.view;
  const account = segments[0] === "users" || segments[0] === "orgs" ? world.userByLogin(segments[1] ?? "") : undefined;
  if (account) return `/${segments[0] === "users" ? "user" : "organizations"}/${account.id}${rest(2)}`;
  return exchange.path;
}

/** Answers to the old version of operations that changed say so, with a `Link` that is no page. */
function dressed(exchange: Exchange, route: Route, answer: Answer): Answer {
  if (!route.deprecated || exchange.view.version !== "2022-11-28") return answer;
  return {
    ...answer,
    headers: { ...answer.headers, ...DEPRECATION },
    links: [...(answer.links ?? []), DEPRECATION_LINK],
  };
}

/** Reads are moved for good (301), writes are to be repeated as they are (307). */
function redirectAnswer(method: string, location: string): Answer {
  const body = { message: "Moved Permanently", url: location, documentation_url: REDIRECT_DOCS };
  return { status: method === "GET" || method === "HEAD" ? 301 : 307, body, headers: { Location: location } };
}
