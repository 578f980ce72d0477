/** Answers on their way out: validators, compression, headers, and what errors look like. */
import { gzipSync } from "node:zlib";
import type { Faults } from "../faults/faults.ts";
import { spoilt } from "../faults/row-faults.ts";
import type { Answer, Service } from "../rest/call.ts";
import {
  cacheHeaders,
  commonHeaders,
  etagOf,
  isFresh,
  PLAIN_VARY,
  quotaHeaders,
  tokenHeaders,
} from "../rest/headers.ts";
import { credentialOf } from "../rest/negotiation.ts";
import { Refusal } from "../world/refusal.ts";
import { type Exchange, header } from "./exchange.ts";

// Below this gzip makes nothing smaller; the service's answers of `[]` are never compressed.
const MIN_COMPRESSED = 64;
const SCRAPING =
  "For more on scraping GitHub and how it may affect your rights, please review our Terms of Service (https://docs.github.com/en/site-policy/github-terms/github-terms-of-service)";

export class Responder {
  readonly #service: Service;
  readonly #faults: Faults;

  constructor(service: Service, faults: Faults) {
    this.#service = service;
    this.#faults = faults;
  }

  send(exchange: Exchange, answer: Answer): void {
    const { request, token } = exchange;
    const odd = this.#faults.rows(
      exchange.method,
      `${exchange.path}${exchange.query.size > 0 ? `?${exchange.query}` : ""}`,
    );
    const written = (body: unknown) => (odd.length === 0 ? JSON.stringify(body) : spoilt(body, odd));
    const json = answer.body === undefined ? null : written(answer.body);
    const content = answer.text?.content ?? json;
    const signed = token !== null;
    const cacheable = content !== null && (answer.status === 200 || answer.status === 201);
    const tagged = cacheable && !answer.uncached;
    const etag = tagged
      ? ((odd.length === 0 ? answer.tag : undefined) ?? etagOf(request.headers, signed, content, this.#faults.tags))
      : null;
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
      ...(exchange.hasVersion ? { "x-github-api-version-selected": exchange.view.version } : {}),
      ...tokenHeaders(exchange.token, exchange.accepted),
      // Calls with a JWT carry none, and neither do refused credentials (seen in 2026).
      ...((exchange.app && !(exchange.app instanceof Refusal)) || isUnknown(exchange) || hasNoFigures(exchange)
        ? {}
        : quotaHeaders(quota.state(exchange.caller, exchange.bucket), exchange.bucket)),
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

  plain(exchange: Exchange, status: number, type: string, content: string, extra: Record<string, string> = {}): void {
    this.#write(
      exchange,
      status,
      { ...this.#baseHeaders(exchange), "Content-Type": type, ...extra },
      Buffer.from(content),
    );
  }

  preflight(exchange: Exchange): void {
    this.#write(
      exchange,
      204,
      {
        ...commonHeaders(exchange.requestId),
        "Access-Control-Allow-Headers":
          "Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Match, If-Unmodified-Since, Accept-Encoding, X-GitHub-OTP, X-Requested-With, User-Agent, GraphQL-Features, X-Github-Next-Global-ID, X-GitHub-Api-Version, X-Fetch-Nonce, Copilot-Integration-Id, DD-CLIENT-TOKEN, X-Client-Application",
        "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE",
        "Access-Control-Max-Age": "86400",
      },
      null,
    );
  }

  errorBody(exchange: Exchange, refusal: Refusal) {
    return {
      message: refusal.message,
      ...(refusal.errors === undefined ? {} : { errors: refusal.errors }),
      documentation_url: exchange.docs,
      status: String(refusal.status),
    };
  }

  support(exchange: Exchange): string {
    const at = new Date(this.#service.world.clock.now()).toISOString().slice(0, 19).replace("T", " ");
    return `If you reach out to GitHub Support for help, please include the request ID ${exchange.requestId} and timestamp ${at} UTC. ${SCRAPING}`;
  }

  limitAnswer(message: string, documentationUrl: string, retryAfter: number | null): Answer {
    const { status } = this.#service.quota;
    const body = { message, documentation_url: documentationUrl, status: String(status) };
    return { status, body, headers: retryAfter === null ? {} : { "Retry-After": String(retryAfter) } };
  }
}

/** Whether a credential came with a request for no route: such answers were seen without figures in 2026. */
function hasNoFigures({ request, isUnrouted }: Exchange): boolean {
  return isUnrouted && request.headers.authorization !== undefined;
}

/** Whether the caller showed a credential that belongs to nobody. */
function isUnknown({ request, token, app }: Exchange): boolean {
  return !token && !app && credentialOf(request.headers.authorization) !== null;
}
