/** What requests of the dialect have in common, and their replies. */
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Config } from "../../config.ts";
import { isContentType } from "../../http/body.ts";
import { HttpError } from "../../http/errors.ts";
import type { Exchange } from "../../http/exchange.ts";
import { isRead, type Reply, wantsNoCache } from "../../http/reply.ts";
import { decoded } from "../../http/router.ts";
import type { RepositoryName } from "../../mirror/read/repositories.ts";
import { readTime } from "../../mirror/search/range.ts";
import { ApiFault, invalidFilter, REST_DOCS } from "./fault.ts";

/** The prefix under which enterprise-style clients reach the same API. */
export const ENTERPRISE_PREFIX = "/api/v3";

/** The path below the API's address. */
export function pathInApi({ path }: Pick<Exchange, "path">): { path: string; isEnterprise: boolean } {
  const isEnterprise = path === ENTERPRISE_PREFIX || path.startsWith(`${ENTERPRISE_PREFIX}/`);
  return { path: isEnterprise ? path.slice(ENTERPRISE_PREFIX.length) || "/" : path, isEnterprise };
}

/**
 * The repository that a path in the API names, by its name or its id, and the rest of the path as it was sent. Null: it
 * names none. Pure.
 */
export function repositoryIn(path: string): (RepositoryName & { rest: string }) | null {
  const [, name, id, rest = ""] = /^\/(?:repos\/([^/]+\/[^/]+)|repositories\/(\d{1,15}))(\/.*)?$/.exec(path) ?? [];
  if (id !== undefined) return { fullName: null, id: Number(id), rest };
  const fullName = name === undefined ? null : decoded(name);
  return fullName === null ? null : { fullName, id: null, rest };
}

/**
 * The API's address as the caller wrote it, without a trailing slash: it stands in bodies, `Link` and `Location`.
 * @throws ApiFault 400 when the request's Host is no host
 */
export function apiAddress(
  { publicUrl }: Pick<Config, "publicUrl">,
  exchange: Pick<Exchange, "protocol" | "host">,
  { isEnterprise }: { isEnterprise: boolean },
): string {
  const prefix = isEnterprise ? ENTERPRISE_PREFIX : "";
  if (publicUrl) return publicUrl + prefix;
  const { host, protocol } = exchange;
  if (!/^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(host)) throw new ApiFault(400, "Bad Request");
  return `${protocol}://${host}${prefix}`;
}

/** Headers that say which server this is. Clients take it for an enterprise server. */
export function serverHeaders(
  { enterpriseVersion }: Pick<Config, "enterpriseVersion">,
  isEnterprise: boolean,
): Record<string, string> {
  return isEnterprise ? { "X-GitHub-Enterprise-Version": enterpriseVersion } : {};
}

/** Whether the request names its agent, as the service requires. */
export function hasAgent(headers: { "user-agent"?: string | undefined }): boolean {
  return (headers["user-agent"] ?? "").trim() !== "";
}

const AGENT_MISSING = `Request forbidden by administrative rules. Please make sure your request has a User-Agent header (https://docs.github.com/rest/overview/resources-in-the-rest-api#user-agent-required). Check https://developer.github.com for other possible causes.\n`;

export function agentMissing(requestId: string): Reply {
  const headers = { "Content-Type": "text/html; charset=utf-8" };
  return dialectReply(requestId, { status: 403, headers, body: AGENT_MISSING });
}

/** The forms in which bodies are shown that people wrote in Markdown. */
export type BodyForm = "raw" | "text" | "html" | "full";

/** The form of an answer. `form` is null if none was named; bodies are then raw. */
export interface MediaType {
  form: BodyForm | null;
  /** Whether the whole answer is a text that Git knows. Only some operations have one. */
  patch: "diff" | "patch" | null;
  /** Whether a search shows where the words stand that it found. */
  hasMatches: boolean;
}

const OUR_MEDIA_TYPE = /^application\/vnd\.github(?:-[a-z]+)?(?:\.v3)?(?:\.([\w-]+))?(?:\+json)?$/;
const REST_START_DOCS = "https://docs.github.com/rest/using-the-rest-api/getting-started-with-the-rest-api";
const HELD_BY_SERVICE: ReadonlySet<string> = new Set(["sha", "star"]);
const ANY_TYPE: ReadonlySet<string> = new Set(["*/*", "application/*", "application/json"]);

/** An `Accept` header as it was read. */
export interface Accepted extends MediaType {
  /**
   * Whether it asks for what only the service holds, whatever the operation: commits' hashes, times of starring, or types
   * that we do not know.
   */
  isServicesAlone: boolean;
  /** Whether it names no type that we know. */
  isUnknown: boolean;
}

/**
 * Several types may be given, separated by commas. The first that says more than "JSON" counts, whatever its weight.
 */
export function readAccept(accept: string | undefined = ""): Accepted {
  const types = accept.split(",").map((one) => one.replace(/;.*/s, "").trim().toLowerCase());
  const read: Accepted = {
    ...{ form: null, patch: null, hasMatches: false },
    ...{ isServicesAlone: false, isUnknown: types.some(Boolean) },
  };
  for (const type of types) {
    const match = OUR_MEDIA_TYPE.exec(type);
    if (match || ANY_TYPE.has(type)) read.isUnknown = false;
    const param = match?.[1];
    if (param === undefined) continue;
    if (isBodyForm(param)) read.form ??= param;
    if (param === "diff" || param === "patch") read.patch ??= param;
    if (param === "text-match") read.hasMatches = true;
    if (HELD_BY_SERVICE.has(param)) read.isServicesAlone = true;
  }
  read.isServicesAlone ||= read.isUnknown;
  return read;
}

/** The media type of the answer. @throws ApiFault 415 if we answer in none of the accepted types */
export function mediaType({ form, patch, hasMatches, isUnknown }: Accepted, accept: string | undefined): MediaType {
  if (!isUnknown) return { form, patch, hasMatches };
  const message = `Unsupported 'Accept' header: '${accept}'. Must accept 'application/json'.`;
  throw new ApiFault(415, message, { documentationUrl: `${REST_START_DOCS}#media-types` });
}

function isBodyForm(param: string): param is BodyForm {
  return param === "raw" || param === "text" || param === "html" || param === "full";
}

/** The header `X-GitHub-Media-Type`, which says how the request was understood. */
export function mediaTypeHeader({ form, hasMatches }: MediaType): string {
  const param = hasMatches ? "text-match" : form;
  return param === null ? "github.v3; format=json" : `github.v3; param=${param}; format=json`;
}

/** The versions of the REST dialect, newest first. GitHub docs: the older one is supported until 2028-03-10. */
export const API_VERSIONS = ["2026-03-10", "2022-11-28"] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

const [newest, oldest] = API_VERSIONS;

/**
 * The version that `X-GitHub-Api-Version` asks for, or the older version without this header.
 * @throws ApiFault 400; the service checks this once the credential that was sent is known, and before all else
 */
export function apiVersion(header: string | string[] | undefined): ApiVersion {
  if (header === undefined || header === "") return oldest;
  const asked = String(header);
  const version = API_VERSIONS.find((candidate) => candidate === asked);
  if (version) return version;
  throw new ApiFault(400, "Bad Request", {
    errors: `The version you specified in the "X-GitHub-API-Version" request header, "${asked}", is not a supported version. The following versions are currently supported: "${newest}" (most recent) and "${oldest}".`,
    documentationUrl: REST_DOCS,
  });
}

const DEFAULT_PAGE_SIZE = 30;
const MAX_PAGE_SIZE = 100;
/** The last page. `offset` is a 64-bit number in Postgres, and pages beyond this one are just as empty. */
const LAST_PAGE = 1_000_000_000;

/**
 * The parameters of these names, each with its last value. A parameter that an operation does not know changes no
 * answer, so it may not be part of the name of a page, a validator or a question to upstream.
 */
export function knownQuery(asked: URLSearchParams, known: ReadonlySet<string>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of asked) if (known.has(name)) query.set(name, value);
  return query;
}

/** The page's size. Larger values are silently reduced; a value that is no number counts as absent. */
export function pageSize(query: URLSearchParams): number {
  return Math.min(wholeNumber(query.get("per_page")) ?? DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

export function pageNumber(query: URLSearchParams): number {
  return Math.min(wholeNumber(query.get("page")) ?? 1, LAST_PAGE);
}

/** The number that a value begins with, as the service reads it: some clients ask for `page=4?state=all`. */
function wholeNumber(text: string | null): number | null {
  const [, digits = "0"] = /^\s*\+?(\d+)/.exec(text ?? "") ?? [];
  const value = Number(digits);
  return value > 0 ? value : null;
}

/**
 * One word of a closed set. Null: the parameter was not sent. A word outside the set counts as `otherwise`: the
 * service's lists refuse no such word.
 */
export function sentChoice<T extends string>(
  query: URLSearchParams,
  name: string,
  values: readonly T[],
  otherwise: T,
): T | null {
  const text = query.get(name);
  return text === null ? null : (values.find((value) => value === text) ?? otherwise);
}

/** One word of a closed set, or the set's first word for anything else. */
export function choice<T extends string>(query: URLSearchParams, name: string, values: readonly [T, ...T[]]): T {
  return sentChoice(query, name, values, values[0]) ?? values[0];
}

/**
 * The same for `state` in lists of issues, the one parameter that is known to refuse other words. The empty word is one.
 * @throws ApiFault 422
 */
export function issueState(query: URLSearchParams): "open" | "closed" | "all" {
  const text = query.get("state");
  const value = (["open", "closed", "all"] as const).find((one) => one === (text ?? "open"));
  if (value === undefined) throw invalidFilter("state", text ?? "");
  return value;
}

const DIRECTIONS = ["asc", "desc"] as const;

/** The direction. Null: it was not sent. @param otherwise what any other word means in this list */
export function sentDirection(query: URLSearchParams, otherwise: "asc" | "desc"): "asc" | "desc" | null {
  return sentChoice(query, "direction", DIRECTIONS, otherwise);
}

/** Whether the parameter was sent with a word outside the set. */
export function isOutside(query: URLSearchParams, name: string, values: readonly string[]): boolean {
  const text = query.get(name);
  return text !== null && !values.includes(text);
}

/** A time. Null: it is absent or empty. @throws ApiFault 422 for what is no time, in the service's words */
export function moment(query: URLSearchParams, name: string): Date | null {
  const text = query.get(name);
  if (text === null || text === "") return null;
  const read = readTime(text);
  if (read) return read.at;
  throw new ApiFault(422, `The ${name} parameter needs to be in ISO 8601 format: YYYY-MM-DDTHH:MM:SSZ`);
}

/** The largest body of a request. GitHub takes bodies of 65,536 characters, and a review may hold several. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * The largest body of a GraphQL request. A text of 65,536 characters, each escaped as two surrogates, fills three
 * quarters of it. A MiB of JSON is parsed in 15 ms.
 */
const MAX_GRAPHQL_BYTES = 1024 * 1024;

/** How a body is read. */
interface BodyReading {
  /** The body's memory counts until this is disposed of. */
  until: DisposableStack;
  /** Whose share of the memory it takes. Absent: that of the address. */
  sender?: string;
}

/**
 * The text of the request's body, as it was sent; a read has none. Ask for it once the caller is known and has paid.
 * @throws HttpError 413 for a body that is too large, 415 for a Content-Type that cannot be read, and as
 *   `Exchange.body`
 */
export async function bodyText(
  exchange: Exchange,
  { until, sender }: BodyReading,
  maxBytes = MAX_BODY_BYTES,
): Promise<string> {
  if (isRead(exchange.method)) return "";
  const type = exchange.headers["content-type"];
  if (type !== undefined && !isContentType(type)) throw new HttpError(415, "Bad Request");
  return until.use(await exchange.body(maxBytes, sender)).bytes.toString();
}

/** The text of a GraphQL request's body. @throws as `bodyText` */
export function graphqlText(exchange: Exchange, reading: BodyReading): Promise<string> {
  return bodyText(exchange, reading, MAX_GRAPHQL_BYTES);
}

/** Requests share all but the last digits. Drawing each id anew would take longer than the rest of a 304. */
const SERIES_LENGTH = 0x10000;

/** The digits of each byte. */
const BYTES: readonly string[] = Array.from({ length: 0x100 }, (_, byte) =>
  byte.toString(16).toUpperCase().padStart(2, "0"),
);

/** Names requests, in the service's form. */
export class RequestIds {
  #series = "";
  #last = SERIES_LENGTH;

  next(): string {
    this.#last += 1;
    if (this.#last >= SERIES_LENGTH) {
      const drawn = randomBytes(14).toString("hex").toUpperCase();
      this.#series = `${drawn.slice(0, 4)}:${drawn.slice(4, 10)}:${drawn.slice(10, 16)}:${drawn.slice(16, 24)}:${drawn.slice(24)}`;
      this.#last = 0;
    }
    return this.#series + BYTES[this.#last >> 8] + BYTES[this.#last & 0xff];
  }
}

/** Whether a request asks for upstream's present state. */
export function asksFresh(query: URLSearchParams, headers: IncomingHttpHeaders): boolean {
  return query.get("fresh") === "true" || wantsNoCache(headers);
}

/** Headers from GitHub's docs and recordings. HSTS is left to the proxy that ends TLS for this host. */
const COMMON_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "ETag, Link, Location, Retry-After, X-GitHub-OTP, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Used, X-RateLimit-Resource, X-RateLimit-Reset, X-OAuth-Scopes, X-Accepted-OAuth-Scopes, X-Poll-Interval, X-GitHub-Media-Type, X-GitHub-SSO, X-GitHub-Request-Id, Deprecation, Sunset, Age, Warning, X-Cache, X-Tain-Confirmed-At, X-Tain-Hint, X-Tain-Missing, X-Tain-Not-Confirmed, X-Tain-Part, X-Tain-Passed-Through",
  "X-Frame-Options": "deny",
  "X-Content-Type-Options": "nosniff",
  "X-XSS-Protection": "0",
  "Referrer-Policy": "origin-when-cross-origin, strict-origin-when-cross-origin",
  "Content-Security-Policy": "default-src 'none'",
};

export const VARY = "Accept-Encoding, Accept, X-Requested-With";

/** The header of an answer that upstream alone could give whole: it shows what lies in mirrored repositories. */
export const PART = { "X-Tain-Part": "mirrored repositories" };

/** The headers of every reply. */
export function commonHeaders(requestId: string): Record<string, string> {
  return { ...COMMON_HEADERS, "X-GitHub-Request-Id": requestId, Vary: VARY };
}

/** A reply with the headers that every reply of the dialect has. */
export function dialectReply(
  requestId: string,
  { status, headers, body }: { status: number; headers: Record<string, string>; body: string | Buffer | null },
): Reply {
  return {
    status,
    headers: { ...commonHeaders(requestId), ...headers },
    body,
    isEncodable: headers["Content-Encoding"] === undefined,
  };
}
