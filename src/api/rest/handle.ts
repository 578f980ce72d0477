import { staleAfterMs } from "../../config.ts";
import type { Exchange } from "../../http/exchange.ts";
import {
  type Encoding,
  encodingOf,
  freshnessHeaders,
  isRead,
  isUnchanged,
  JSON_TYPE,
  type Reply,
} from "../../http/reply.ts";
import { type Kept, Reading, type RepositoryVersions } from "../../mirror/unchanged/unchanged.ts";
import { isSafePath } from "../../upstream/protocol/paths.ts";
import type { Pace } from "../../work/pace.ts";
import type { Again, LearntBefore } from "../call/again.ts";
import type { Answer, ApiContext, Call, RenderedPage } from "../call/call.ts";
import { encoded } from "../call/kept-bodies.ts";
import type { KnownOperation, Match, Operation } from "../call/operation.ts";
import { type ApiRequest, answerRequest, type PipelineParts } from "../call/pipeline.ts";
import { acceptedPermissions, accessOf, mayForwardAs, type User } from "../callers/permissions.ts";
import { type CallerQuota, quotaHeaders } from "../callers/quota.ts";
import type { Source } from "../callers/spared.ts";
import { isLaidOut, laidOut } from "../dialect/elements.ts";
import { ApiFault, faultBody, notFound, quotaSpent, REST_DOCS } from "../dialect/fault.ts";
import { MarkdownRenderer } from "../dialect/markdown-renderer.ts";
import { hasNextIds } from "../dialect/node-id.ts";
import { doubtHeaders } from "../dialect/preferences.ts";
import {
  API_VERSIONS,
  type ApiVersion,
  apiAddress,
  apiVersion,
  asksFresh,
  bodyText,
  commonHeaders,
  dialectReply,
  knownQuery,
  type MediaType,
  mediaType,
  mediaTypeHeader,
  pathInApi,
  readAccept,
  serverHeaders,
} from "../dialect/protocol.ts";
import { forward, forwardedReply } from "../forward/forwarding.ts";
import { isServiceWord, serviceRoute } from "../forward/service-routes.ts";
import { answerTo, cacheHeaders, isOurJson } from "./run.ts";

export interface RestParts extends PipelineParts {
  /** What is published of each operation. */
  known: ReadonlyMap<Operation, KnownOperation>;
  pages: Kept<RenderedPage>;
  again: Pick<Again, "remember">;
}

/** How a request was understood so far. A fault is answered in the same way. */
interface RestReading {
  /** What is published of the operation. Null: it is not served here. */
  known: KnownOperation | null;
  version: ApiVersion;
  /** The version to name in the reply. Null: none was read. */
  selected: ApiVersion | null;
  media: MediaType;
  docs: string;
  /**
   * The service has no such route. It says so before it judges credential and version, names no version, and shows
   * figures to those alone who sent no credential.
   */
  isUnknown: boolean;
}

/** An operation's answer, and its caller. */
interface AnsweredCall {
  request: ApiRequest;
  /** The name by which the request may be remembered. Null: it must not be remembered. */
  signature: string | null;
  call: Call;
  answer: Answer;
  reading: RestReading;
}

/**
 * Answers requests of the REST dialect, in the service's order: agent, route, credential, quota, version, media type.
 */
export class Rest {
  readonly #parts: RestParts;
  readonly #markdown: MarkdownRenderer;

  constructor(parts: RestParts) {
    this.#parts = parts;
    this.#markdown = new MarkdownRenderer(parts.ctx.mirror.pace);
  }

  /** Ends the threads that render Markdown. */
  close(): Promise<void> {
    return this.#markdown.close();
  }

  /**
   * Replies to a request, also if the request is wrong. An error is our own.
   * @param matched null: we serve no such operation
   * @param before what was learnt of the request before it came here
   */
  async handle(exchange: Exchange, matched: (() => Match) | null, before: LearntBefore): Promise<Reply> {
    const match = served(exchange, matched);
    const known = match === null ? null : (this.#parts.known.get(match.route) ?? null);
    const reading: RestReading = {
      known,
      version: API_VERSIONS[1],
      selected: null,
      media: { form: null, patch: null, hasMatches: false },
      docs: REST_DOCS,
      isUnknown: match === null && serviceRoute(exchange.method, pathInApi(exchange).path) === null,
    };
    return await answerRequest(this.#parts, exchange, {
      route: known?.form ?? serviceRoute(exchange.method, pathInApi(exchange).path) ?? "other",
      bucket: match?.route.bucket ?? "core",
      answer: (request) => this.#answer(request, match, { reading, before }),
      refuse: (request, fault) => refused(request, fault, { reading, pace: this.#parts.ctx.mirror.pace }),
    });
  }

  async #answer(
    request: ApiRequest,
    match: Match | null,
    { reading, before: { learnt, signature } }: { reading: RestReading; before: LearntBefore },
  ): Promise<Reply> {
    const { ctx } = this.#parts;
    Object.assign(request.replyHeaders, serverHeaders(ctx.config, pathInApi(request.exchange).isEnterprise));
    const forwarded = await this.#asApp(request);
    if (forwarded) {
      request.metered.source = "forwarded";
      return forwardedReply(request.id, { ...forwarded, headers: { ...request.replyHeaders, ...forwarded.headers } });
    }
    const { call, operation, asked } = await this.#open(request, match, { reading, learnt });
    const withoutFigures = () => {
      if (reading.isUnknown && request.exchange.headers.authorization !== undefined) request.figures = null;
    };
    const answer = await answerTo({ ...this.#parts, markdown: this.#markdown }, call, {
      match: operation,
      asked,
    }).catch((error: unknown) => {
      withoutFigures();
      throw error;
    });
    if (answer.status === 404) withoutFigures();
    request.metered.source = sourceOf(answer);
    return await replyTo(this.#parts, { request, signature, call, answer, reading });
  }

  /** Forwards what an App asks about itself, once that is paid for. Null: this is no such question. */
  async #asApp({ exchange, id: requestId, bodies }: ApiRequest): Promise<Answer | null> {
    const { ctx, callers, quota } = this.#parts;
    const { method, headers, address, search } = exchange;
    const { path, isEnterprise } = pathInApi(exchange);
    if (!ctx.config.forwarding || headers.authorization === undefined) return null;
    const asApp = callers.asApp({ authorization: headers.authorization, address, path });
    if (!asApp || !isSafePath(path)) return null;
    const { figures, isSpent } = await quota.spend(asApp.payer, "core", 1);
    if (isSpent)
      throw quotaSpent({ kind: "anonymous", address }, { requestId, now: ctx.clock.now(), reset: figures?.reset });
    const asked = { method, path: search === "" ? path : `${path}?${search}`, headers, gone: exchange.gone };
    const { upstreamUrl } = ctx.config;
    const api = apiAddress(ctx.config, exchange, { isEnterprise });
    const body = await bodyText(exchange, { until: bodies });
    return await forward({ ...asked, body, api, upstreamUrl, log: ctx.log }, asApp.send);
  }

  /**
   * Reads, authenticates and pays for a request. `operation` is null for what is forwarded, if anything.
   * @throws ApiFault
   */
  async #open(
    request: ApiRequest,
    match: Match | null,
    { reading, learnt }: { reading: RestReading; learnt: RepositoryVersions | undefined },
  ): Promise<{ call: Call; operation: Match | null; asked: URLSearchParams }> {
    const { ctx, quota } = this.#parts;
    const { exchange, metered } = request;
    const { method, headers } = exchange;
    const caller = await request.caller().catch((error: unknown) => {
      throw reading.isUnknown && error instanceof ApiFault && error.status === 401 ? notFound() : error;
    });
    const isAnonymous = caller.kind === "anonymous";
    if (isAnonymous && ctx.config.anonymous === "off")
      throw new ApiFault(401, "Must authenticate to access this API.", { documentationUrl: REST_DOCS });
    if (match?.route.isFree) request.figures = await quota.figures(caller, "core");
    else await request.pay(caller);
    // What anonymous callers ask about their quota, the service answers in every version.
    if (!reading.isUnknown && !(isAnonymous && match?.route.isFree)) {
      reading.version = apiVersion(headers["x-github-api-version"]);
      reading.selected = reading.version;
    }
    if (!isAnonymous) Object.assign(request.replyHeaders, acceptedHeaders(caller, match?.route ?? null, reading.known));
    if (reading.known) reading.docs = reading.known.docs;
    Object.assign(request.replyHeaders, await doubtHeaders(ctx, accessOf(caller), headers));
    const accepted = readAccept(headers.accept);
    const isServices = accepted.isServicesAlone || (accepted.patch !== null && !match?.route.hasNoPatch);
    const isForwarded = ctx.config.forwarding && isRead(method) && mayForwardAs(caller) && isServices;
    const operation = isForwarded ? null : match;
    // Only upstream has to understand a request that is forwarded.
    if (operation || !ctx.config.forwarding) reading.media = mediaType(accepted, headers.accept);
    const { path, isEnterprise } = pathInApi(exchange);
    // Labels alone have names that may look like another path. Any other such path names nothing here.
    if (match?.params.name === undefined && !isSafePath(path)) throw new ApiFault(404, "Not Found");
    const sender = caller.kind === "user" ? `user ${caller.userId}` : exchange.address;
    const body = await bodyText(exchange, { until: request.bodies, sender });
    const asked = new URLSearchParams(exchange.search);
    const isFresh = asksFresh(asked, headers);
    // This parameter is ours, so it is neither forwarded nor repeated in `Link`.
    asked.delete("fresh");
    if (isFresh || match?.route.isFree || match?.route.isOurs) metered.price = 0;
    const query = operation && reading.known ? knownQuery(asked, reading.known.parameters) : asked;
    const onlyReads = isRead(method) && !isFresh;
    const call: Call = {
      ctx: onlyReads ? { ...ctx, db: ctx.readDb.until(exchange.gone) } : ctx,
      searchDb: ctx.searches.of(caller, exchange.gone),
      quota,
      caller,
      access: accessOf(caller),
      version: reading.version,
      requestId: request.id,
      media: reading.media,
      hasNextIds: hasNextIds(headers),
      met: new Set(),
      embedded: { changedAt: 0 },
      publicRights: new Map(),
      // A write, and a read that has upstream asked, changes the mirror.
      reading: new Reading(ctx.mirror.repositoryVersions, { learnt, isLasting: onlyReads }),
      isPart: false,
      isFresh: isFresh && isRead(method) && caller.kind === "user",
      method,
      api: apiAddress(ctx.config, exchange, { isEnterprise }),
      path,
      params: match?.params ?? {},
      query,
      headers,
      body,
      gone: exchange.gone,
    };
    return { call, operation, asked };
  }
}

function sourceOf({ stream, headers, isKept }: Answer): Source {
  if (!stream) return isKept ? "kept" : "mirror";
  const outcome = headers?.["X-Cache"];
  return outcome === undefined || outcome === "miss" ? "forwarded" : "cache";
}

/** The operation that answers. Null: we do not serve it. The service may have a word where we expect a number. */
function served(exchange: Exchange, matched: (() => Match) | null): Match | null {
  const match = matched === null ? null : matched();
  const { path } = pathInApi(exchange);
  return match !== null && endsInNumber(match, path) && isServiceWord(exchange.method, path) ? null : match;
}

/** Whether the path ends where we expect a number. */
function endsInNumber({ params }: Match, path: string): boolean {
  const last = path.slice(path.lastIndexOf("/") + 1);
  return params.id === last || params.number === last;
}

/**
 * What the operation takes: scopes, if the token is a classic one or an OAuth App's, beside those that it has, or else
 * permissions. Whether the service names permissions to Apps beside refusals is not known.
 * @param operation null: it is not served here, and what it takes is not known
 */
function acceptedHeaders(
  { scopes, by }: User,
  operation: Operation | null,
  known: KnownOperation | null,
): Record<string, string> {
  if (scopes === null) {
    const isApps = by.of === "upstream" && by.known.isApps;
    return isApps || operation?.run.of !== "repository"
      ? {}
      : acceptedPermissions([operation.run.takes], operation.method);
  }
  return {
    "X-OAuth-Scopes": scopes,
    "X-Accepted-OAuth-Scopes": operation && known ? acceptedScopes(operation, known) : "",
  };
}

/** The scopes that an operation accepts, as recorded of the service. They inform, and refuse nobody. */
function acceptedScopes({ run, method }: Operation, { docs }: KnownOperation): string {
  if (docs.endsWith("/orgs/orgs#get-an-organization")) return "admin:org, read:org, repo, user, write:org";
  if (!isRead(method)) return docs.endsWith("lock-an-issue") ? "public_repo, repo" : "";
  return run.of === "service" || /\/rest\/(pulls\/|issues\/comments#)/.test(docs) ? "" : "repo";
}

/** An operation's answer with all its headers; 304 where the caller has it already. */
async function replyTo(
  { ctx, quota, again }: { ctx: ApiContext; quota: CallerQuota; again: Pick<Again, "remember"> },
  { request, signature, call, answer, reading }: AnsweredCall,
): Promise<Reply> {
  const { exchange, id: requestId, bucket, figures, replyHeaders, metered } = request;
  const { caller, headers: sent } = call;
  const { pace } = ctx.mirror;
  const { status, page } = answer;
  const agent = exchange.headers["user-agent"];
  const lasting: Record<string, string> = {
    ...replyHeaders,
    ...(answer.stream ? {} : versionHeaders(reading.selected, call.media)),
    ...(await cacheHeaders(answer, caller, { request: sent, agent, pace, now: ctx.clock.now() })),
    ...answer.headers,
    ...(answer.link ? { Link: answer.link } : {}),
  };
  const headers = {
    ...freshnessHeaders(answer, { now: ctx.clock.now(), staleAfterMs: staleAfterMs(ctx.config) }),
    ...lasting,
  };
  // Upstream's own answer has its own validators, figures, version and media type.
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
  if (isRead(call.method) && status === 200 && isUnchanged(headers, sent)) {
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

/** The reply to a request that is refused, with all that is known of the request. */
async function refused(
  { exchange, id, replyHeaders, figures, bucket }: ApiRequest,
  fault: ApiFault,
  { reading, pace }: { reading: RestReading; pace: Pace },
): Promise<Reply> {
  const headers = {
    "Content-Type": JSON_TYPE,
    ...replyHeaders,
    ...versionHeaders(reading.selected, reading.media),
    ...quotaHeaders(figures, bucket),
    ...fault.headers,
  };
  const body = await laidOut(faultBody(fault, reading.docs), exchange.headers["user-agent"], pace);
  return dialectReply(id, { status: fault.status, headers, body });
}

/** How a page's bytes travel to this caller: in an encoding that is kept with them, or as they are. */
function keptForm(
  page: RenderedPage,
  { headers }: Exchange,
): { encoding: Encoding | null; bodyHeaders: Record<string, string> } {
  const encoding = encodingOf(page.bytes, headers["accept-encoding"]);
  return { encoding, bodyHeaders: { "Content-Type": JSON_TYPE, ...(encoding && { "Content-Encoding": encoding }) } };
}

function versionHeaders(selected: ApiVersion | null, media: MediaType): Record<string, string> {
  return {
    "X-GitHub-Media-Type": mediaTypeHeader(media),
    ...(selected && { "X-GitHub-Api-Version-Selected": selected }),
  };
}
