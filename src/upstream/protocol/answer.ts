import { reasonOf } from "../../failure.ts";
import { type Fields, isObject, type Json, objectOf, parseExactly, textsOf } from "../../json.ts";
import { parseAnswer } from "../../sent-json.ts";
import { pathBelow } from "./address.ts";
import { doubtsIn, isNotYet } from "./doubts.ts";
import { CredentialRejectedError, NotYetError, UpstreamRefusedError, UpstreamUnavailableError } from "./errors.ts";
import type { UpstreamHeaders } from "./headers.ts";
import { isFullPage, isLater, parseLinks } from "./pagination.ts";
import type { Received } from "./transport.ts";
import type { ReadAnswer } from "./upstream.ts";

/** The values of a request that decide how its answer is read. */
interface AskedPage {
  base: string;
  path: string;
  /** The name under which the request's validator is stored. */
  key: string;
  accept: string | undefined;
  credential: string;
  /** As in the validator. */
  madeFor: string | null;
  seenAt: Date;
  /** The validator that was sent along, to ask conditionally. */
  validator: { next: string | null } | undefined;
}

/**
 * Reads an answer to a GET, after limits and rejected credentials were dealt with. Pure.
 * @throws UpstreamUnavailableError, UpstreamRefusedError
 */
export function readAnswer(asked: AskedPage, received: Received): ReadAnswer {
  const { headers } = received;
  return { ...readStatus(asked, received), doubts: doubtsIn(headers), missing: missingIn(headers) };
}

function readStatus(asked: AskedPage, received: Received): ReadAnswer {
  const { base, path, seenAt, validator } = asked;
  const { status, headers, text } = received;
  switch (status) {
    case 304:
      if (!validator) throw unreadable(path, status, "it says that nothing has changed, which was not asked");
      return { kind: "unchanged", seenAt, ...answerTimes(headers, seenAt), next: validator.next };
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return { kind: "moved", location: readLocation(base, headerValue(headers.location)) };
    case 404:
    case 410:
    case 451:
      // A page of HTML comes from something between us and upstream, so it proves no deletion.
      if (parseJson(text) === undefined) throw unreadable(path, status, "it is no JSON");
      return { kind: "missing", status, message: messageOf(received) };
    default:
      if (status < 200 || status > 299) throw failureOf(path, received);
      return readPageAnswer(asked, received);
  }
}

function readPageAnswer(
  { base, path, key, accept, credential, madeFor, seenAt }: AskedPage,
  received: Received,
): ReadAnswer {
  const { status, headers } = received;
  const body = readBody(path, accept, received);
  const links = parseLinks(headerValue(headers.link), (url) => {
    try {
      return pathBelow(base, url);
    } catch (cause) {
      // Without the page the list would end early, and rows would look deleted.
      throw unreadable(path, status, reasonOf(cause), { cause });
    }
  });
  // To follow such a link would never end.
  if (links.next !== undefined && !isLater(links.next, path))
    throw unreadable(path, status, `it names ${links.next} as the page that comes after ${path}`);
  const etag = headerValue(headers.etag) ?? null;
  const lastModified = headerValue(headers["last-modified"]) ?? null;
  const next = links.next ?? null;
  const isFull = isFullPage(path, body);
  const validator =
    etag === null && lastModified === null
      ? null
      : {
          ...{ credential, path: key, etag, lastModified, next, isFull, seenAt },
          ...{ body: null, variesBy: null, usedAt: seenAt, madeFor },
        };
  return { kind: "ok", body, seenAt, ...answerTimes(headers, seenAt), links, lastModified, validator };
}

function readBody(path: string, accept: string | undefined, { status, headers, text }: Received): Json {
  if (text === "") {
    if (status === 204 || status === 205) return null;
    throw unreadable(path, status, "it is empty");
  }
  const body = parseJson(text);
  if (body !== undefined) return body;
  if (accept === undefined || /json/.test(headerValue(headers["content-type"]) ?? "")) {
    throw unreadable(path, status, "it is no whole JSON");
  }
  return text;
}

/**
 * The new path; null: upstream names none. An address outside upstream, where our token must not go, is answered whole.
 */
function readLocation(base: string, location: string | undefined): string | null {
  if (!location) return null;
  const isBelow = location.startsWith("/") || location.startsWith(`${base}/`);
  return isBelow ? pathBelow(base, location) : location;
}

/** The error for an answer that is no success, no redirect and no limit. */
export function failureOf(path: string, received: Received): Error {
  const { status, text, headers } = received;
  const where = path.split("?")[0];
  if (isNotYet(headers))
    return new NotYetError(`${where}: upstream, a mirror, has not read this yet`, "failed", { status });
  if (status >= 500) {
    return new UpstreamUnavailableError(`${where}: upstream failed with ${status}`, "failed", { status });
  }
  if (status === 401) return new CredentialRejectedError([]);
  const body = parseJson(text);
  return new UpstreamRefusedError(status, [messageOf(received), ...reasonsOf(body)].join("; "), body ?? text);
}

/** The exact faults of a request. GitHub docs: they are listed in `errors`, with a message only if no code fits. */
function reasonsOf(body: Json | undefined): string[] {
  const { errors } = objectOf(body);
  if (typeof errors === "string") return [errors];
  if (!Array.isArray(errors)) return [];
  return textsOf(errors.map((error) => (isObject(error) ? (error.message ?? null) : error)));
}

function unreadable(path: string, status: number, why: string, options: ErrorOptions = {}): UpstreamUnavailableError {
  const message = `${path.split("?")[0]}: upstream's answer (${status}) cannot be read: ${why}`;
  return new UpstreamUnavailableError(message, "unreadable", { ...options, status });
}

/** The answer's `message`, or the beginning of its text when it is no JSON of the service's. */
export function messageOf({ text, status }: Received): string {
  if (status < 300 || text === "") return "";
  const { message } = objectOf(parseJson(text));
  if (typeof message === "string") return message;
  return text
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 200);
}

/** The object in a successful answer. @throws UpstreamUnavailableError when the body is no JSON object */
export function shownObject(path: string, { status, text }: Pick<Received, "status" | "text">): Fields {
  const body = parseJson(text);
  if (!isObject(body)) throw unreadable(path, status, "it is no JSON object");
  return body;
}

/** Undefined if the text is not JSON, or is beyond what any reader of it takes in more than single rows. */
function parseJson(text: string): Json | undefined {
  try {
    return parseAnswer(text, parseExactly);
  } catch {
    return undefined; // Each caller decides what undefined means.
  }
}

/** `asOf` of a mirror that is still making its first copy. */
export const NEVER = new Date(0);

/** Upstream's clock by its `Date` header; without one, ours at the request. */
export function answerTimes(
  headers: UpstreamHeaders,
  seenAt: Date,
): Pick<Extract<ReadAnswer, { kind: "ok" }>, "upstreamNow" | "asOf"> {
  const time = Date.parse(headerValue(headers.date) ?? "");
  return { upstreamNow: Number.isNaN(time) ? seenAt : new Date(time), asOf: asOfMirror(headers) };
}

/** As `freshnessHeaders` writes it. */
function asOfMirror(headers: UpstreamHeaders): Date | null {
  const time = Date.parse(headerValue(headers["x-tain-confirmed-at"]) ?? "");
  if (!Number.isNaN(time)) return new Date(time);
  return headerValue(headers.warning)?.startsWith("110 tain ") ? NEVER : null;
}

/** As `freshnessHeaders` writes it. */
function missingIn(headers: UpstreamHeaders): string[] | undefined {
  return headerValue(headers["x-tain-missing"])?.split(", ");
}

function headerValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
