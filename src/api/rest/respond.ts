import { createHash, hash } from "node:crypto";
import {
  type Encoding,
  encodingOf,
  freshnessHeaders,
  isRead,
  isShort,
  isUnchanged,
  JSON_TYPE,
  type Reply,
  type RequestHeaders,
} from "../../http/reply.ts";
import type { Exchange } from "../../http/server.ts";
import type { Pace } from "../../work/pace.ts";
import type { Again } from "../again.ts";
import type { Answer, ApiContext, Call, RenderedPage } from "../call.ts";
import type { Caller } from "../callers/permissions.ts";
import { type Bucket, type CallerQuota, type QuotaFigures, quotaHeaders } from "../callers/quota.ts";
import { asBytes, isLaidOut, laidOut } from "../dialect/elements.ts";
import { type ApiFault, faultBody } from "../dialect/fault.ts";
import {
  type ApiVersion,
  commonHeaders,
  dialectReply,
  type MediaType,
  mediaTypeHeader,
  VARY,
} from "../dialect/protocol.ts";
import { forwardedReply } from "../forward/forwarding.ts";
import { encoded } from "../kept-bodies.ts";
import type { RequestFigures } from "../metering.ts";

/** How much is hashed at once: it takes a millisecond. */
const HASHED_AT_ONCE = 512 * 1024;

/** How many tags of one page are kept, each for another caller. */
const MAX_TAGS = 100;

/** What is known of a request so far. A fault is answered with as much of it as there is. */
export interface RestProgress {
  requestId: string;
  metered: RequestFigures;
  version: ApiVersion;
  media: MediaType;
  /** The headers that say which server this is, and what the caller's token may do. */
  identity: Record<string, string>;
  bucket: Bucket;
  figures: QuotaFigures | null;
  docs: string;
}

/** An operation's answer, and its caller. */
interface AnsweredCall {
  exchange: Exchange;
  /** The name by which the request may be remembered. Null: it must not be remembered. */
  signature: string | null;
  call: Call;
  answer: Answer;
  progress: RestProgress;
}

/** An operation's answer with all its headers; 304 where the caller has it already. */
export async function replyTo(
  { ctx, quota, again }: { ctx: ApiContext; quota: CallerQuota; again: Pick<Again, "remember"> },
  { exchange, signature, call, answer, progress: { bucket, figures, requestId, identity, metered } }: AnsweredCall,
): Promise<Reply> {
  const { caller, headers: request } = call;
  const { pace } = ctx.mirror;
  const { status, page } = answer;
  const agent = exchange.headers["user-agent"];
  const lasting: Record<string, string> = {
    ...identity,
    ...versionHeaders(call.version, call.media),
    ...(await cacheHeaders(answer, caller, { request, agent, pace })),
    ...answer.headers,
    ...(answer.link ? { Link: answer.link } : {}),
  };
  const headers = {
    ...freshnessHeaders(answer, { now: ctx.clock.now(), staleAfterMs: ctx.config.staleAfterMs }),
    ...lasting,
  };
  // Upstream's own answer has its own validators, figures and media type.
  if (answer.stream)
    return forwardedReply(requestId, { ...answer, headers: { ...quotaHeaders(figures, bucket), ...headers } });
  const form = page && call.method === "GET" && !isLaidOut(agent) ? keptForm(page, exchange) : null;
  // A page that names no other page needs no memory of its own.
  const isPlain = () => new URLSearchParams(exchange.search).size === call.query.size;
  if (signature !== null && page && form && isPlain()) {
    const { "X-GitHub-Request-Id": _, ...common } = commonHeaders(requestId);
    again.remember(signature, {
      exchange,
      metered,
      caller,
      page,
      bucket,
      headers: { ...common, ...lasting },
      ...form,
    });
  }
  // GitHub docs: a 304 is free to those who are authorised.
  const refunded = () => (caller.kind === "user" ? quota.refund(caller, bucket, 1) : figures);
  if (isRead(call.method) && status === 200 && isUnchanged(headers, request)) {
    const all = { ...headers, ...quotaHeaders(refunded(), bucket) };
    return dialectReply(requestId, { status: 304, headers: all, body: null });
  }
  if (page) {
    const body = form?.encoding ? await encoded(page, form.encoding) : await laidOut(page.bytes, agent, pace);
    const bodyHeaders = form?.bodyHeaders ?? { "Content-Type": JSON_TYPE };
    const all = { ...quotaHeaders(figures, bucket), ...headers, ...bodyHeaders };
    return dialectReply(requestId, { status, headers: all, body });
  }
  // Upstream's own 304 is as free as ours, and its own figures, where it sends some, are those that count.
  const all = { ...quotaHeaders(status === 304 ? refunded() : figures, bucket), ...headers };
  if (answer.body !== null) all["Content-Type"] = answer.contentType ?? JSON_TYPE;
  const body = isOurJson(answer) ? await laidOut(answer.body, agent, pace) : answer.body;
  return dialectReply(requestId, { status, headers: all, body });
}

/**
 * The headers by which an answer may be kept and asked for again.
 * @param agent the agent that the body is laid out for; undefined: it travels as it is
 */
export async function cacheHeaders(
  answer: Answer,
  caller: Caller,
  { request, agent, pace }: { request: RequestHeaders; agent: string | undefined; pace: Pace },
): Promise<Record<string, string>> {
  if (answer.isUncached) return { "Cache-Control": "no-cache" };
  const body = answer.page?.bytes ?? answer.body;
  if (body === null || answer.status > 299) return {};
  const isAnonymous = caller.kind === "anonymous";
  const vary = isAnonymous ? ["Accept"] : ["Accept", "Authorization", "Cookie", "X-GitHub-OTP"];
  const tag = `"${await entityTag(answer, body, { vary, request, pace })}"`;
  // Indented, a short body may be long enough to travel compressed.
  const travelling = isShort(body) && answer.contentType === undefined ? await laidOut(body, agent, pace) : body;
  return {
    // A body that travels compressed has a weak tag, made of the plain bytes. GitHub was recorded to do so, but for a
    // 201.
    ETag: answer.status !== 201 && encodingOf(travelling, request["accept-encoding"]) !== null ? `W/${tag}` : tag,
    "Cache-Control": `${isAnonymous ? "public" : "private"}, max-age=60, s-maxage=60`,
    Vary: `${vary.join(", ")}, ${VARY}`,
    ...(answer.lastModified ? { "Last-Modified": answer.lastModified.toUTCString() } : {}),
  };
}

/** SHA-256 of the request headers that the answer varies by and of the body, as GitHub was found to make it. */
async function entityTag(
  { page }: Answer,
  body: string | Buffer,
  { vary, request, pace }: { vary: string[]; request: RequestHeaders; pace: Pace },
): Promise<string> {
  let prefix = "";
  for (const name of ["Accept", "Authorization", "Cookie"]) {
    const value = vary.includes(name) ? request[name.toLowerCase()] : undefined;
    if (value !== undefined) prefix += `${value}:`;
  }
  // One call takes half the time of a hash that is built in pieces.
  if (!page && typeof body === "string" && body.length <= HASHED_AT_ONCE) return hash("sha256", prefix + body);
  // Hashing a long body takes a while, and the same callers come again, so the page keeps their tags.
  const key = page && hash("sha256", prefix, "base64");
  const known = key && page.tags.get(key);
  if (known) return known;
  const bytes = asBytes(body);
  const varied = createHash("sha256").update(prefix);
  for (let at = 0; at < bytes.length; at += HASHED_AT_ONCE) {
    if (at > 0 && pace.isOver()) await pace.turn();
    varied.update(bytes.subarray(at, at + HASHED_AT_ONCE));
  }
  const tag = varied.digest("hex");
  if (key) {
    if (page.tags.size >= MAX_TAGS) page.tags.clear();
    page.tags.set(key, tag);
  }
  return tag;
}

/** The reply to a request that is refused, with all that is known of the request. */
export async function refused(
  fault: ApiFault,
  progress: RestProgress,
  { agent, pace }: { agent: string | undefined; pace: Pace },
): Promise<Reply> {
  const headers = {
    "Content-Type": JSON_TYPE,
    ...progress.identity,
    ...versionHeaders(progress.version, progress.media),
    ...quotaHeaders(progress.figures, progress.bucket),
    ...fault.headers,
  };
  const body = await laidOut(faultBody(fault, progress.docs), agent, pace);
  return dialectReply(progress.requestId, { status: fault.status, headers, body });
}

/** Whether the answer is JSON of ours. Text, and upstream's own answer, stay as they are. */
export function isOurJson(answer: Answer): answer is Answer & { body: string | Buffer } {
  return answer.body !== null && answer.contentType === undefined;
}

/** How a page's bytes travel to this caller: in an encoding that is kept with them, or as they are. */
function keptForm(
  page: RenderedPage,
  { headers }: Exchange,
): { encoding: Encoding | null; bodyHeaders: Record<string, string> } {
  const encoding = encodingOf(page.bytes, headers["accept-encoding"]);
  return { encoding, bodyHeaders: { "Content-Type": JSON_TYPE, ...(encoding && { "Content-Encoding": encoding }) } };
}

function versionHeaders(version: ApiVersion, media: MediaType): Record<string, string> {
  return { "X-GitHub-Media-Type": mediaTypeHeader(media), "X-GitHub-Api-Version-Selected": version };
}
