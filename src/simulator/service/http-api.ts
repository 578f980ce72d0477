/**
 * One request of the public interface, from socket to answer. The order is the service's: user agent, version, who is
 * calling, limits, route, permission, and only then the route itself; validators and compression at the end.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Faults, HttpFault } from "../faults/faults.ts";
import { REFUSALS } from "../faults/refusals.ts";
import { suspended } from "../rest/apps.ts";
import {
  type Answer,
  type Call,
  inaccessible,
  notFound,
  Redirect,
  type RepositoryCall,
  type Service,
} from "../rest/call.ts";
import { DEPRECATION, DEPRECATION_LINK } from "../rest/headers.ts";
import { credentialOf, unsupportedVersion, versionOf } from "../rest/negotiation.ts";
import { type Route, Router, segmentsOf } from "../rest/router.ts";
import { ROUTES } from "../rest/routes.ts";
import { time } from "../views/view.ts";
import { allows, wasGiven } from "../world/access.ts";
import type { App } from "../world/apps.ts";
import { isJsonObject } from "../world/json.ts";
import { acceptedPermissions, acceptedScopes, has, levelOf, type Needed, neededFor } from "../world/permissions.ts";
import type { Repository } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { readText } from "../world/request-text.ts";
import { hasScopes, isIntegration, type Token } from "../world/tokens.ts";
import { UNDECODABLE } from "./app-jwt.ts";
import { type Exchange, header, openExchange } from "./exchange.ts";
import { Graphql } from "./graphql.ts";
import { LockOut } from "./lock-out.ts";
import { Responder } from "./responder.ts";

const DOCS = "https://docs.github.com/rest";
const LIMIT_DOCS = `${DOCS}/overview/rate-limits-for-the-rest-api`;
const SECONDARY_DOCS =
  "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits";
const REDIRECT_DOCS = `${DOCS}/guides/best-practices-for-using-the-rest-api#follow-redirects`;

export class HttpApi {
  readonly graphql: Graphql;
  readonly #service: Service;
  readonly #faults: Faults;
  readonly #htmlUrl: string;
  readonly #ownUrl: () => string;
  readonly #router = new Router(ROUTES);
  readonly #responder: Responder;
  readonly #stop = new AbortController();
  readonly #lockOut = new LockOut();
  #running = 0;

  /** `ownUrl` is where the server listens: the base of addresses for requests that name no host. */
  constructor(service: Service, faults: Faults, htmlUrl: string, ownUrl: () => string) {
    this.#service = service;
    this.#faults = faults;
    this.#htmlUrl = htmlUrl;
    this.#ownUrl = ownUrl;
    this.#responder = new Responder(service, faults);
    this.graphql = new Graphql(service.world, service.quota, service.wholeSchema);
  }

  /** Slow answers are given up. */
  close(): void {
    this.#stop.abort();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { quota, meter } = this.#service;
    const base = { htmlUrl: this.#htmlUrl, ownUrl: this.#ownUrl() };
    const exchange = openExchange(this.#service, request, response, base);
    quota.enter(exchange.caller);
    this.#running += 1;
    meter.sawConcurrent(this.#running);
    try {
      quota.draw(this.#faults.windows ? this.#faults.random : null);
      const page = Number(exchange.query.get("page") ?? 1);
      const rows = Number(exchange.query.get("per_page") ?? 30);
      const fault = this.#faults.http(exchange.method, exchange.path, { page, rows });
      if (fault && (await this.#struck(exchange, fault))) return;
      await this.#answer(exchange);
    } finally {
      this.#running -= 1;
      quota.leave(exchange.caller);
      meter.count({
        caller: credentialName(exchange),
        bucket: exchange.bucket,
        route: exchange.route,
        repository: this.#repositoryOf(exchange),
        status: response.statusCode,
        charged: exchange.charged,
        points: exchange.points,
        limited: exchange.limited,
      });
    }
  }

  async #answer(exchange: Exchange): Promise<void> {
    this.#service.world.lag.draw(this.#faults.lagDrawn ? this.#faults.random : null);
    const { request } = exchange;
    if (!request.headers["user-agent"]?.trim()) {
      this.#responder.plain(exchange, 403, "text/html", FORBIDDEN_AGENT);
      return;
    }
    if (exchange.method === "OPTIONS") {
      this.#responder.preflight(exchange);
      return;
    }
    const lockedOut = this.#lockOut.refuses(exchange, this.#service, this.#faults.lockOut);
    if (lockedOut) {
      this.#responder.send(exchange, { status: 403, body: this.#responder.errorBody(exchange, lockedOut) });
      return;
    }
    if (exchange.path === "/graphql") {
      await this.#answerGraphql(exchange);
      return;
    }
    const version = header(request, "x-github-api-version");
    // A credential that is none comes before (brekkylab/backlot, measured 2026-09-15).
    const isKnown = credentialOf(request.headers.authorization) === null || exchange.token || exchange.app;
    // So does a route that there is not, and what anonymous callers ask about their quota (the same, 2026-09-17).
    const found = this.#find(exchange);
    const isAnonymous = request.headers.authorization === undefined;
    exchange.isUnrouted = !found;
    exchange.hasVersion = Boolean(isKnown && found && !(isAnonymous && found.route.pattern === "/rate_limit"));
    if (exchange.hasVersion && version && !versionOf(version)) {
      exchange.hasVersion = false;
      this.#service.quota.charge(exchange.caller, exchange.bucket, 1);
      this.#responder.send(exchange, { status: 400, body: unsupportedVersion(version) });
      return;
    }
    const text = await readText(request);
    if (text === null) {
      this.#responder.send(exchange, {
        status: 413,
        body: this.#responder.errorBody(exchange, new Refusal(413, "Payload too large")),
      });
      return;
    }
    try {
      this.#responder.send(exchange, this.#rest(exchange, text));
    } catch (error) {
      if (error instanceof Redirect) this.#responder.send(exchange, redirectAnswer(exchange.method, error.location));
      else if (error instanceof Refusal)
        this.#responder.send(exchange, {
          status: error.status,
          body: this.#responder.errorBody(exchange, error),
          headers: error.headers,
        });
      else throw error;
    }
  }

  #rest(exchange: Exchange, text: string): Answer {
    const { request, method } = exchange;
    const { segments, repository, moved } = this.#resolve(exchange);
    const found = this.#find(exchange);
    if (!found && !exchange.token && !exchange.app && credentialOf(request.headers.authorization) !== null)
      throw notFound();
    const app = authenticated(exchange, found?.route.forApps ?? false);
    if (found) {
      exchange.route = `${found.route.method} ${found.route.pattern}`;
      exchange.docs = `${DOCS}/${found.route.docs}`;
      if (!found.route.forApps) exchange.accepted = acceptedOf(found.route);
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
      app,
      headers: request.headers,
      caller: exchange.caller,
      view: exchange.view,
    };
    if (typeof found.route.run === "function") {
      if (exchange.token && !mayCreate(exchange.token, found.route.method)) throw inaccessible(exchange.token);
      return dressed(exchange, found.route, found.route.run(call));
    }
    const needed = found.route.forApps ? [] : neededFor(found.route.method, found.route.pattern);
    const role = repository && exchange.view.roleOf(repository, needed);
    if (!repository || !role) throw notFound();
    if (moved) throw new Redirect(`${exchange.view.apiUrl}${call.path}${queryOf(request)}`);
    if (repository.blocked) return blockedAnswer(repository);
    if (segments[3] === "pulls" && !repository.hasPullRequests) throw notFound();
    if (!app) this.#checkPermission(exchange, needed, repository);
    const { token } = exchange;
    const level = levelOf(method);
    const inRepository: RepositoryCall = {
      ...call,
      repository,
      // Within its permissions an App may do everything.
      role: token && isIntegration(token) && wasGiven(token, repository) ? "admin" : role,
      mayTouch: (permission) => allows(this.#service.world, token, repository, [{ permission, level }]),
    };
    return dressed(exchange, found.route, found.route.run.inRepository(inRepository));
  }

  #find(exchange: Exchange): ReturnType<Router["find"]> {
    const { method, path } = exchange;
    if (path !== "/" && path.endsWith("/")) return undefined;
    return this.#router.find(method === "HEAD" ? "GET" : method, this.#resolve(exchange).segments);
  }

  /** Callers without a token are refused by what needs one. */
  #checkPermission({ token }: Exchange, needed: Needed, repository: Repository): void {
    if (!token || allows(this.#service.world, token, repository, needed)) return;
    // A scope that is missing looks as if there were nothing.
    throw hasScopes(token) && token.write ? notFound() : inaccessible(token, needed);
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
          : `You have exceeded a secondary rate limit. Please wait a few minutes before you try again. ${this.#responder.support(exchange)}`;
      return this.#responder.limitAnswer(message, SECONDARY_DOCS, quota.retryAfter ? refused.retryAfterSeconds : null);
    }
    if (route?.pattern === "/rate_limit") return null;
    if (quota.charge(caller, exchange.bucket, 1)) {
      exchange.charged = 1;
      return null;
    }
    exchange.limited = "primary";
    const message = caller.anonymous
      ? `API rate limit exceeded for ${caller.name}. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)`
      : `API rate limit exceeded for ${caller.name}. ${this.#responder.support(exchange)}`;
    return this.#responder.limitAnswer(message, LIMIT_DOCS, null);
  }

  async #answerGraphql(exchange: Exchange): Promise<void> {
    const { request, token, view } = exchange;
    exchange.route = `${exchange.method} /graphql`;
    if (exchange.method !== "POST") {
      this.#responder.send(exchange, { status: 404, body: this.#responder.errorBody(exchange, notFound()) });
      return;
    }
    const text = await readText(request);
    if (text === null) {
      this.#responder.send(exchange, {
        status: 413,
        body: this.#responder.errorBody(exchange, new Refusal(413, "Payload too large")),
      });
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
    this.#responder.send(exchange, { status: answer.status, body: answer.body, uncached: true, headers });
  }

  /** Which repository the path is of, as the meter names it. */
  #repositoryOf({ path }: Exchange): string | null {
    const [first, ...rest] = segmentsOf(path);
    if (first === "repositories") return rest[0] ?? null;
    const found = first === "repos" && this.#service.world.repositoryByName(rest[0] ?? "", rest[1] ?? "");
    return found ? String(found.repository.id) : null;
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
        const message = `You have exceeded a secondary rate limit. Please wait a few minutes before you try again. ${this.#responder.support(exchange)}`;
        this.#responder.send(exchange, this.#responder.limitAnswer(message, SECONDARY_DOCS, fault.retryAfter ?? null));
        return true;
      }
      case "refusal": {
        const { status, body, ...more } = REFUSALS[fault.as ?? "permission"];
        exchange.charged = this.#service.quota.charge(exchange.caller, exchange.bucket, 1) ? 1 : 0;
        this.#responder.send(exchange, { status, body, headers: "headers" in more ? more.headers : {} });
        return true;
      }
      case "status":
        if (fault.status === 502 || fault.status === 504)
          this.#responder.plain(exchange, fault.status, "text/html", SERVER_ERROR_PAGE, retryAfter);
        else if (fault.status === 429)
          this.#responder.plain(exchange, 429, "text/plain", "Too Many Requests", retryAfter);
        else {
          const body = { message: "Server Error", ...(fault.status === 503 ? { code: "unavailable" } : {}) };
          this.#responder.send(exchange, { status: fault.status ?? 500, body, headers: retryAfter });
        }
        return true;
      default:
        return fault.kind satisfies never;
    }
  }
}

/** For the meter: installations keep their name while their tokens change every hour. */
function credentialName({ token, caller }: Exchange): string {
  return token && !token.grant ? token.value : caller.key;
}

const FORBIDDEN_AGENT =
  "\r\nRequest forbidden by administrative rules. Please make sure your request has a User-Agent header " +
  "(https://docs.github.com/en/rest/overview/resources-in-the-rest-api#user-agent-required). Check https://developer.github.com for other possible causes.\r\n";
const SERVER_ERROR_PAGE =
  "<!DOCTYPE html>\n<html>\n  <head><title>Unicorn! &middot; GitHub</title></head>\n  <body>Server Error</body>\n</html>\n";

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) throw notFound();
    throw error;
  }
}

/** No text holds half a character, and no address either. What the service makes of one is unconfirmed. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

function readJson(text: string, pattern: string): Record<string, unknown> {
  if (text === "") return {};
  let json: unknown;
  try {
    json = JSON.parse(text, wellFormed);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal(400, "Problems parsing JSON");
    throw error;
  }
  // Labels of an issue may come as the bare array.
  if (Array.isArray(json) && pattern.endsWith("/issues/:number/labels")) return { labels: json };
  if (!isJsonObject(json)) throw new Refusal(400, "Body should be a JSON object");
  return json;
}

/**
 * The caller, or the refusal. Routes for Apps take only a JWT; all others take none. The service's answer to a JWT on
 * those others is not documented: here it counts as an unknown token.
 */
function authenticated({ request, token, app }: Exchange, forApps: boolean): App | null {
  if (forApps) {
    if (!app) throw new Refusal(401, UNDECODABLE);
    if (app instanceof Refusal) throw app;
    return app;
  }
  if (credentialOf(request.headers.authorization) !== null && !token) throw new Refusal(401, "Bad credentials");
  if (token?.grant && token.grant.installation.suspendedAt !== null) throw suspended();
  return null;
}

/** GitHub docs: Apps make repositories only with a user's token. */
function mayCreate(token: Token, method: string): boolean {
  if (method !== "POST") return true;
  return !isIntegration(token) && (!token.permissions || has(token.permissions, "administration", "write"));
}

function acceptedOf({ method, pattern }: Route): Exchange["accepted"] {
  return { permissions: acceptedPermissions(method, pattern), scopes: acceptedScopes(method, pattern) };
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

/** Taken down: 451 for copyright, 403 for the terms of service. */
function blockedAnswer({ blocked, createdAt }: Repository): Answer {
  const block = { reason: blocked, created_at: time(createdAt), html_url: null };
  return { status: blocked === "dmca" ? 451 : 403, body: { message: "Repository access blocked", block } };
}

/** Reads are moved for good (301), writes are to be repeated as they are (307). */
function redirectAnswer(method: string, location: string): Answer {
  const body = { message: "Moved Permanently", url: location, documentation_url: REDIRECT_DOCS };
  return { status: method === "GET" || method === "HEAD" ? 301 : 307, body, headers: { Location: location } };
}
