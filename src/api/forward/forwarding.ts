import type { RequestHeaders } from "../../http/reply.ts";
import { isRead, isUnchanged, type Reply } from "../../http/reply.ts";
import type { Logger } from "../../operations/log.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import type { Conditional, Opened } from "../../upstream/protocol/opened.ts";
import type { Answer, Call } from "../call/call.ts";
import type { ForwardOwn } from "../callers/permissions.ts";
import { ApiFault } from "../dialect/fault.ts";
import { dialectReply } from "../dialect/protocol.ts";
import { collected, forwardedBody, rebased, rebasedBytes } from "./cache/body.ts";
import type { CacheRequest, ForwardCache } from "./cache/cache.ts";
import type { WholeAnswer } from "./cache/keeping.ts";

/** A request as it is forwarded. */
export interface CallersRequest {
  method: string;
  /** With its query. */
  path: string;
  headers: RequestHeaders;
  body: string;
  /** The address that the caller knows the API by, and upstream's. */
  api: string;
  upstreamUrl: string;
  /** Fires once the caller has gone away. */
  gone: AbortSignal;
  log: Logger;
  /** Restricts a document to what this caller may see. Absent: upstream's answer was made for this caller. */
  restrict?: (document: Buffer) => Buffer;
}

/** The longest document that is restricted: it is held as a whole, and may be parsed. */
const MOST_LOOKED_THROUGH = 4 * 1024 * 1024;

/** @param path with its query */
export function askedBy({ ctx, method, headers, body, api, gone }: Call, path: string): CallersRequest {
  const { config, log } = ctx;
  return { method, path, headers, body, api, upstreamUrl: config.upstreamUrl, gone, log };
}

/** The request headers that upstream sees. None tells where the request came from. */
export const ASKED: readonly string[] = [
  "accept",
  "content-type",
  "graphql-features",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "range",
  "time-zone",
  "user-agent",
  "x-github-api-version",
  "x-github-next-global-id",
  "x-github-otp",
];

/** The response headers that the caller sees. Upstream's quota is among them, since the caller's token paid. */
const ANSWERED: readonly string[] = [
  "Accept-Ranges",
  "Cache-Control",
  "Content-Disposition",
  "Content-Encoding",
  "Content-Language",
  "Content-Range",
  // A client whose clock is wrong corrects it by this header.
  "Date",
  "Deprecation",
  "ETag",
  "Last-Modified",
  "Link",
  "Location",
  "Retry-After",
  "Sunset",
  "Vary",
  "Warning",
  "X-Accepted-GitHub-Permissions",
  "X-Accepted-OAuth-Scopes",
  "X-GitHub-Api-Version-Selected",
  "X-GitHub-Media-Type",
  "X-GitHub-OTP",
  "X-GitHub-SSO",
  "X-OAuth-Scopes",
  "X-Poll-Interval",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-RateLimit-Resource",
  "X-RateLimit-Used",
];

/** Documents of the API, in which addresses are rewritten. A file's bytes, a diff or a hash stay as they are. */
const DOCUMENT = /^application\/(?!vnd\.github(\.v3)?\.(raw|html|diff|patch|sha)\b)([\w.-]+\+)?json\b/;

/**
 * Forwards a request once, and answers as upstream does, while the answer arrives.
 * @throws ApiFault 502 or 504 when no answer begins; the signal's reason
 */
export async function forward(asked: CallersRequest, send: ForwardOwn): Promise<Answer> {
  return arrivingAnswer(asked, await opened(asked, send, (error) => unanswered(error, asked.method)));
}

/** @throws what `fault` makes of an outage; the signal's reason */
export async function opened(
  asked: CallersRequest,
  send: ForwardOwn,
  fault: (error: UpstreamUnavailableError) => unknown,
  conditional?: Conditional,
): Promise<Opened> {
  const { method, path, body, gone } = asked;
  const headers: Record<string, string> = {};
  for (const name of ASKED) {
    const value = [asked.headers[name] ?? ""].flat().join(", ");
    if (value !== "") headers[name] = value;
  }
  // A write goes on even if its caller leaves: the caller may ask later what became of it.
  const extra = { ...(isRead(method) && { signal: gone }), ...(conditional && { conditional }) };
  try {
    return await send({ method, path, headers, body: body === "" ? null : body, ...extra });
  } catch (error) {
    throw error instanceof UpstreamUnavailableError ? fault(error) : error;
  }
}

/**
 * Upstream's answer as the caller gets it, while it arrives.
 * @param pieces the pieces of the body, if its beginning was read before
 */
export function arrivingAnswer(
  asked: CallersRequest,
  { status, headers, body }: Opened,
  pieces: AsyncIterable<Buffer> = body,
): Answer {
  const { shown, isDocument } = shownHeaders(asked, { status, headers });
  const answer = { status, body: null, headers: shown, isUncached: true } as const;
  if (asked.method === "HEAD" || status === 204 || status === 304) {
    body.resume();
    return answer;
  }
  const { upstreamUrl, api, log } = asked;
  const ours = isDocument ? rebasedBytes(pieces, `${upstreamUrl}/`, `${api}/`) : pieces;
  return { ...answer, stream: forwardedBody(body, ours, log) };
}

/**
 * The same for a document that has to be restricted first. @throws ApiFault 502 when it is too long for that;
 * UpstreamUnavailableError when it breaks off
 */
export async function restrictedAnswerOf(
  asked: CallersRequest,
  opened: Opened,
  pieces: AsyncIterable<Buffer> = opened.body,
): Promise<Answer> {
  const isEmpty = asked.method === "HEAD" || opened.status === 204 || opened.status === 304;
  if (!asked.restrict || isEmpty || !shownHeaders(asked, opened).isDocument)
    return arrivingAnswer(asked, opened, pieces);
  const read = await collected(pieces, MOST_LOOKED_THROUGH, { of: asked.path, gone: asked.gone });
  if ("whole" in read) return wholeAnswer(asked, { ...opened, body: read.whole }, {});
  opened.body.destroy();
  throw new ApiFault(502, TOO_LONG);
}

const TOO_LONG = "Upstream's answer is longer than this mirror looks through: ask for fewer with per_page.";

/**
 * Answers a read through the cache.
 * @throws as `asking.send`; what `fault` makes of an answer that breaks off
 */
export async function forwardKept(
  cache: ForwardCache,
  asked: CallersRequest,
  asking: Pick<CacheRequest, "question" | "viewer" | "home" | "isFresh" | "send">,
  fault: (error: UpstreamUnavailableError) => unknown,
): Promise<Answer> {
  const { method, headers, gone } = asked;
  try {
    const found = await cache.answer({ ...asking, method, headers, gone });
    if ("outcome" in found) {
      const { outcome, age } = found;
      const isKept = outcome !== "miss";
      return wholeAnswer(asked, found, { "X-Cache": outcome, ...(isKept && { Age: String(age) }) });
    }
    const answer = await restrictedAnswerOf(asked, found.opened, found.pieces);
    return { ...answer, headers: { ...answer.headers, "X-Cache": "miss" } };
  } catch (error) {
    throw error instanceof UpstreamUnavailableError ? fault(error) : error;
  }
}

/** The answer, or a 304 if the caller has it already. */
function wholeAnswer(
  asked: CallersRequest,
  { status, headers, body }: WholeAnswer,
  extra: Record<string, string>,
): Answer {
  const { shown, isDocument } = shownHeaders(asked, { status, headers });
  const { upstreamUrl, api, method } = asked;
  const all = { ...shown, ...extra };
  if (status === 200 && isUnchanged(all, asked.headers)) {
    const { "Content-Type": _, "Content-Length": __, ...unchanged } = all;
    return { status: 304, body: null, headers: unchanged, isUncached: true };
  }
  const answer = { status, body: null, isUncached: true } as const;
  if (method === "HEAD" || status === 204 || status === 304) return { ...answer, headers: all };
  const shownBody = isDocument && asked.restrict ? asked.restrict(body) : body;
  const bytes = isDocument ? rebased(shownBody, `${upstreamUrl}/`, `${api}/`) : body;
  const stream: Answer["stream"] = async (outlet) => void outlet.write(bytes);
  return { ...answer, headers: { ...all, "Content-Length": String(bytes.length) }, stream };
}

/** The reply that forwards upstream's own answer, as it arrives. */
export function forwardedReply(requestId: string, { status, headers = {}, stream }: Answer): Reply {
  return { ...dialectReply(requestId, { status, headers, body: null }), ...(stream ? { stream } : {}) };
}

function shownHeaders(
  { api, upstreamUrl }: CallersRequest,
  { status, headers }: Pick<Opened, "status" | "headers">,
): { shown: Record<string, string>; isDocument: boolean } {
  const one = (name: string) => [headers[name.toLowerCase()]].flat()[0];
  const shown: Record<string, string> = { "X-Tain-Passed-Through": "upstream" };
  for (const name of ANSWERED) {
    const value = one(name);
    // Whoever was not identified is shown nobody's quota: clients would take it for their own.
    if (value !== undefined && !(status === 401 && name.startsWith("X-RateLimit-"))) shown[name] = value;
  }
  if (shown.Link) shown.Link = shown.Link.replaceAll(`<${upstreamUrl}/`, `<${api}/`);
  // An address outside upstream's API stays as it is: it may be signed.
  if (shown.Location?.startsWith(`${upstreamUrl}/`)) shown.Location = api + shown.Location.slice(upstreamUrl.length);
  const type = one("Content-Type");
  const isDocument = type !== undefined && DOCUMENT.test(type) && shown["Content-Encoding"] === undefined;
  if (type !== undefined) shown["Content-Type"] = type;
  const length = one("Content-Length");
  if (length !== undefined && !isDocument) shown["Content-Length"] = length;
  return { shown, isDocument };
}

/** The answer to the caller in an outage of upstream. */
export function unanswered(error: UpstreamUnavailableError, method: string): ApiFault {
  const what =
    error.outage === "unreachable"
      ? "cannot be reached"
      : error.outage === "timed-out"
        ? "did not answer in time"
        : "gave no answer that can be read";
  const isOpen = !isRead(method) && error.outage !== "unreachable";
  const rest = isOpen ? " Whether it did what was asked is not known; it is not sent again." : "";
  const message = `This mirror does not hold what is asked for, and upstream, which may, ${what}.${rest}`;
  return new ApiFault(error.outage === "timed-out" ? 504 : 502, message, { cause: error });
}
