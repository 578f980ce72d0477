import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** As they came, with names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The header as one line, if it came more than once. Empty: it did not come. */
export function headerText(header: string | readonly string[] | undefined): string {
  return typeof header === "string" ? header : (header ?? []).join(",");
}

/** A request, as far as its answer's form depends on it. */
interface AskedRequest {
  method: string;
  headers: IncomingHttpHeaders;
}

/** By their names. One that has several values has as many lines. */
type ReplyHeaders = Readonly<Record<string, string | string[]>>;

/** What a request is answered with. */
export interface Reply {
  status: number;
  headers: ReplyHeaders;
  /** Null: no body. A HEAD gets no body either, but its length, where that is known. */
  body: string | Buffer | null;
  /** The body travels in the encoding that the caller likes best. The headers name `Accept-Encoding` in `Vary` then. */
  isEncodable?: boolean;
  /** Writes what the caller gets instead of a body, until it settles. */
  stream?: (outlet: Outlet) => Promise<void>;
}

/** Where a stream is written. */
export interface Outlet {
  /** False: the reader has not taken what was written before, which stays in memory until they do. */
  write(piece: string | Uint8Array): boolean;
  /** Waits until the reader has taken it, for so long at most. "gone": there is no reader any more. */
  drained(withinMs: number): Promise<"drained" | "gone" | "unread">;
  /** The caller has gone, or the stream is over. */
  onClose(listener: () => void): void;
  /** Breaks off the connection, and forgets what was not read. */
  drop(): void;
}

/** The media type of JSON, as the service writes it. */
export const JSON_TYPE = "application/json; charset=utf-8";

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return {
    status,
    headers: { "Content-Type": JSON_TYPE, ...headers },
    body: JSON.stringify(value),
  };
}

interface SendingRules {
  /** The connection is closed behind it. */
  isLast: boolean;
  /** How long the caller may leave a part of it unread. A stream has its own bound. */
  unreadMs: number;
  /** When the reply is sent, by the clock by which it tells other times: a mirror below this one compares them. */
  now: Date;
}

/**
 * Writes a reply to the socket; a promise, where that takes time.
 * @throws TypeError for a header that HTTP does not allow
 */
export function sendReply(
  asked: AskedRequest,
  response: ServerResponse,
  reply: Reply,
  how: SendingRules,
): Promise<void> | undefined {
  const { status, headers, body } = reply;
  if (reply.stream) {
    sendHead(response, status, headers, how);
    return stream(response, reply.stream, how.unreadMs);
  }
  const isHead = asked.method === "HEAD";
  if (body === null) {
    const isPlain = isHead || status === 204 || status === 304;
    return sendWhole(response, { status, headers: isPlain ? headers : { ...headers, ...lengthOf("") }, body }, how);
  }
  const encoding = encodingFor(asked, reply);
  // How long the body is once it is compressed is not known.
  if (isHead) {
    const known = encoding === null ? { ...headers, ...lengthOf(body) } : headers;
    return sendWhole(response, { status, headers: known, body: null }, how);
  }
  if (encoding === null) return sendWhole(response, { status, headers: { ...headers, ...lengthOf(body) }, body }, how);
  return compressed(body, encoding, "once").then((bytes) => {
    const encoded = { ...headers, "Content-Encoding": encoding, ...lengthOf(bytes) };
    return sendWhole(response, { status, headers: encoded, body: bytes }, how);
  });
}

/** Sends an answer whose head and body are complete. */
function sendWhole(
  response: ServerResponse,
  { status, headers, body }: { status: number; headers: ReplyHeaders; body: string | Buffer | null },
  how: SendingRules,
): Promise<void> | undefined {
  sendHead(response, status, headers, how);
  if (body !== null && body.length > WRITTEN_AT_ONCE)
    return write(response, typeof body === "string" ? Buffer.from(body) : body, how.unreadMs);
  end(response, body, how.unreadMs);
  return undefined;
}

function lengthOf(body: string | Buffer): { "Content-Length": string } {
  return { "Content-Length": String(Buffer.byteLength(body)) };
}

function sendHead(response: ServerResponse, status: number, headers: ReplyHeaders, how: SendingRules): void {
  // An answer that is passed on brings its own, in lower case.
  const isDated = "Date" in headers || "date" in headers;
  const dated = isDated ? headers : { ...headers, Date: how.now.toUTCString() };
  response.writeHead(status, how.isLast ? { ...dated, Connection: "close" } : dated);
}

/** Goes to the socket at once. More would hold the event loop for as long as the reader takes it. */
const WRITTEN_AT_ONCE = 1024 * 1024;

/** Writes a whole body, as fast as it is read. A caller who does not read would hold it in memory for ever. */
async function write(response: ServerResponse, bytes: Buffer, unreadMs: number): Promise<void> {
  let at = 0;
  for (; bytes.length - at > WRITTEN_AT_ONCE; at += WRITTEN_AT_ONCE) {
    if (response.write(bytes.subarray(at, at + WRITTEN_AT_ONCE))) continue;
    if ((await drained(response, unreadMs)) !== "drained") return void response.destroy();
  }
  end(response, bytes.subarray(at), unreadMs);
}

/** Writes the last of an answer. */
function end(response: ServerResponse, bytes: string | Buffer | null, unreadMs: number): void {
  response.end(bytes);
  boundUnread(response, unreadMs);
}

/** Node.js drops a connection on which nothing moves for that long while a part of an answer is unread. */
function boundUnread(response: ServerResponse, unreadMs: number): void {
  // Most are with the kernel at once, and need no timer.
  if (response.writableLength > 0) response.setTimeout(unreadMs);
}

/** A reply to a request that was never whole, as it goes over the wire. The connection is closed behind it. */
export function rawText(reason: string, { status, headers, body }: Reply): string {
  const lines = Object.entries({ ...headers, ...lengthOf(body ?? ""), Connection: "close" }).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${one}\r\n`),
  );
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n${body ?? ""}`;
}

/** The encoding in which this body travels; null: as it is. */
function encodingFor({ headers }: AskedRequest, { body, isEncodable }: Reply): Encoding | null {
  return isEncodable && body !== null ? encodingOf(body, headers["accept-encoding"]) : null;
}

async function stream(
  response: ServerResponse,
  write: (outlet: Outlet) => Promise<void>,
  unreadMs: number,
): Promise<void> {
  try {
    await write({
      write: (piece) => response.write(piece),
      drained: (withinMs) => drained(response, withinMs),
      onClose: (listener) => {
        if (response.closed) listener();
        else response.once("close", listener);
      },
      drop: () => response.destroy(),
    });
  } finally {
    end(response, null, unreadMs);
  }
}

async function drained(response: ServerResponse, withinMs: number): ReturnType<Outlet["drained"]> {
  if (response.closed) return "gone";
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Outlet["drained"]>>>();
  const onDrain = () => resolve("drained");
  const onClose = () => resolve("gone");
  const timer = setTimeout(() => resolve("unread"), withinMs);
  response.once("drain", onDrain).once("close", onClose);
  const outcome = await promise;
  clearTimeout(timer);
  response.off("drain", onDrain).off("close", onClose);
  return outcome;
}

/** Smaller bodies gain nothing by it. */
const THRESHOLD_BYTES = 1_024;

/** Whether a body is too short to travel compressed. */
export function isShort(body: string | Buffer): boolean {
  return Buffer.byteLength(body) < THRESHOLD_BYTES;
}

const ENCODINGS = ["br", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/**
 * The encoding for a body to a caller with this `Accept-Encoding`: the one that we like best among those they like
 * best.
 */
export function encodingOf(body: string | Buffer, acceptEncoding: string | string[] | undefined): Encoding | null {
  if (acceptEncoding === undefined || isShort(body)) return null;
  let chosen: { encoding: Encoding; weight: number } | null = null;
  for (const one of [acceptEncoding].flat().join(",").toLowerCase().split(",")) {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim());
    // A caller that takes anything surely takes the older one.
    const encoding = name === "*" ? "gzip" : ENCODINGS.find((known) => known === name);
    const weight = Number(parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? 1);
    if (!encoding || !(weight > 0)) continue;
    if (!chosen || weight > chosen.weight || (weight === chosen.weight && encoding === ENCODINGS[0]))
      chosen = { encoding, weight };
  }
  return chosen?.encoding ?? null;
}

/** How hard brotli tries: what is sent often is worth more of it. */
const BROTLI_QUALITY = { once: 4, often: 5 };

/** A whole body as it travels. */
export async function compressed(
  body: string | Buffer,
  encoding: Encoding,
  sent: keyof typeof BROTLI_QUALITY,
): Promise<Buffer> {
  if (encoding === "gzip") return promisify(gzip)(body);
  return promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY[sent] } });
}

/** Whether `If-None-Match` names the tag. Compared weakly: compression turns a strong tag into a weak one. Pure. */
export function namesTag(tags: string, tag: string): boolean {
  const strong = (one: string) => one.trim().replace(/^W\//, "");
  return tags.trim() === "*" || tags.split(",").some((one) => strong(one) === strong(tag));
}

/** Whether the caller has this very answer. With both validators sent, the ETag decides. */
export function isUnchanged(headers: Record<string, string>, request: RequestHeaders): boolean {
  const [tags, since] = [request["if-none-match"], request["if-modified-since"]];
  if (tags !== undefined)
    return headers.ETag !== undefined && (tags === headers.ETag || namesTag(String(tags), headers.ETag));
  if (since === undefined || headers["Last-Modified"] === undefined) return false;
  const known = Date.parse(String(since));
  return !Number.isNaN(known) && Date.parse(headers["Last-Modified"]) <= known;
}

/**
 * Whether a read is not to be answered with what was kept. `fetch` adds this header by itself to each request with a
 * validator: there it means nothing.
 */
export function wantsNoCache(headers: IncomingHttpHeaders): boolean {
  if (headers["cache-control"] === undefined) return false;
  if (headers["if-none-match"] !== undefined || headers["if-modified-since"] !== undefined) return false;
  return headers["cache-control"].split(",").some((part) => part.trim().toLowerCase() === "no-cache");
}

/** How fresh an answer is. */
export interface Freshness {
  /** When upstream confirmed what is shown, by our clock; null: not yet. Absent: it does not come from upstream. */
  confirmedAt?: Date | null;
  /** The parts of it that upstream did not show then; null or absent: none. */
  missing?: string | null;
  /** Why upstream's present state could not be shown although the caller asked for it. */
  notFresh?: string;
}

/**
 * What may have changed at upstream without anything that a confirmation compares: reactions have neither a webhook nor
 * an `updated_at`, accounts have no webhook, and the newest changes show no edit of a comment.
 */
const NOT_CONFIRMED = "accounts, comments, reactions";

/** The headers by which an answer says how fresh it is. Pure. RFC 7234 has the numbers of the warnings. */
export function freshnessHeaders(
  { confirmedAt, missing, notFresh }: Freshness,
  { now, staleAfterMs }: { now: Date; staleAfterMs: number },
): Record<string, string> {
  if (confirmedAt === undefined) return {};
  const ageMs = confirmedAt === null ? null : Math.max(0, now.getTime() - confirmedAt.getTime());
  const warnings: string[] = [];
  if (ageMs === null) warnings.push('110 tain "Upstream has not confirmed this yet"');
  else if (ageMs > staleAfterMs) warnings.push('110 tain "Upstream has not confirmed this for a long time"');
  if (notFresh !== undefined) warnings.push(`111 tain "Not refreshed: ${notFresh.replace(/[^ !#-[\]-~]/g, "")}"`);
  return {
    ...(confirmedAt === null || ageMs === null
      ? {}
      : {
          "X-Tain-Confirmed-At": confirmedAt.toISOString(),
          "X-Tain-Not-Confirmed": NOT_CONFIRMED,
          Age: String(Math.floor(ageMs / 1_000)),
        }),
    ...(missing ? { "X-Tain-Missing": missing } : {}),
    ...(warnings.length > 0 ? { Warning: warnings.join(", ") } : {}),
  };
}

export function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}
