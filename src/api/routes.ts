import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isPostgresOutage } from "../../db/outage.ts";
import {
  findOldestConfirmation,
  findRenamedRepository,
  findRepositoryById,
  findRepositoryByName,
  type MirroredRepository,
} from "../mirror/find-repositories.ts";
import { apiAddress, enterprisePrefix } from "./addresses.ts";
import { inForm } from "./body-form.ts";
import type { Answer, ApiContext, Call, RepositoryCall } from "./call.ts";
import { type Caller, Callers, sightOf } from "./caller.ts";
import { compressAnswers, type Encoding, encodingOf } from "./compression.ts";
import { registerDescription } from "./description/routes.ts";
import { ApiFault, faultBody, notFound } from "./fault.ts";
import { freshnessHeaders, refreshShown } from "./freshness.ts";
import { ChangeStreams } from "./graphql/change-streams.ts";
import { openGraphql } from "./graphql/endpoint.ts";
import { MarkdownRenderer } from "./markdown.ts";
import { type MediaType, mediaType } from "./media-type.ts";
import { storeOutage } from "./outage.ts";
import { encoded, keyOf, PageCache } from "./page-cache.ts";
import { passThrough } from "./pass-through.ts";
import { type Bucket, CallerQuota, type QuotaFigures } from "./quota.ts";
import {
  cacheHeaders,
  commonHeaders,
  isLaidOut,
  isUnchanged,
  jsonType,
  laidOut,
  quotaHeaders,
  send,
  versionHeaders,
} from "./reply.ts";
import { newRequestId } from "./request-id.ts";
import { restOperations } from "./rest/operations.ts";
import { numberParam } from "./rest/page.ts";
import type { Match } from "./router.ts";
import { Shortcut } from "./shortcut.ts";
import { type ApiVersion, apiVersion, apiVersions } from "./version.ts";

const DOCS = "https://docs.github.com/rest";

/** GitHub takes bodies of 65,536 characters; GraphQL variables may hold several. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

const METHODS = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"];

const AGENT_MISSING = `Request forbidden by administrative rules. Please make sure your request has a User-Agent header (${DOCS}/overview/resources-in-the-rest-api#user-agent-required). Check https://developer.github.com for other possible causes.\n`;

const PREFLIGHT = {
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Match, If-Unmodified-Since, X-GitHub-OTP, X-Requested-With",
  "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE",
  "Access-Control-Max-Age": "86400",
};

/**
 * Serves the dialect at `/` and at `/api/v3`, GraphQL at `/graphql` and `/api/graphql`: every path that no other route of
 * the app has taken. Closing the app gives callers' leased quota back. GitHub gives up on a query after 10 s; so do we.
 */
export async function registerApi(
  app: FastifyInstance,
  ctx: ApiContext,
  { graphqlTimeoutMs = 10_000 } = {},
): Promise<void> {
  const callers = new Callers(ctx);
  const quota = new CallerQuota(ctx);
  const changes = new ChangeStreams(ctx);
  const graphql = openGraphql({ ctx, callers, quota, timeoutMs: graphqlTimeoutMs, changes });
  const pages = new PageCache(ctx);
  const shortcut = new Shortcut(ctx, { callers, quota, pages });
  shortcut.open(app);
  const operations = restOperations();
  const markdown = new MarkdownRenderer();

  await app.register(async (api) => {
    // A stream would hold the server open until its caller goes.
    api.addHook("preClose", async () => changes[Symbol.asyncDispose]());
    api.addHook("onClose", async () => {
      await quota.close();
      await callers.close();
      await pages[Symbol.asyncDispose]();
    });
    await compressAnswers(api);
    // Bodies stay as they were sent: they are passed on, or read by the operation that knows what they are.
    api.removeAllContentTypeParsers();
    api.addContentTypeParser("*", { parseAs: "string", bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
      done(null, body),
    );
    api.setErrorHandler((error, request, reply) => {
      const requestId = newRequestId();
      const headers = { "Content-Type": jsonType };
      if (isPostgresOutage(error)) {
        ctx.log.error({ err: error, requestId, path: request.url.split("?")[0] }, "The database cannot be reached");
        const outage = storeOutage(error);
        return send(reply, outage.status, faultBody(outage, DOCS), { ...headers, ...outage.headers }, requestId);
      }
      const status = (error as { statusCode?: number }).statusCode ?? 500;
      if (status >= 500) ctx.log.error({ err: error, requestId, path: request.url.split("?")[0] }, "A request failed");
      const message = status >= 500 ? "Server Error" : status === 413 ? "Request body is too large" : "Bad Request";
      return send(reply, status, faultBody(new ApiFault(status, message), DOCS), headers, requestId);
    });
    registerDescription(api, ctx, { operations, newRequestId });
    api.route({
      method: METHODS,
      url: "/*",
      handler: async (request, reply) => {
        const path = request.url.split("?", 1)[0] ?? "/";
        const isGraphql = path === "/graphql" || path === "/api/graphql";
        if (isGraphql && request.method === "POST") return answerGraphql(request, reply);
        return answerRest(request, reply);
      },
    });
  });

  async function answerGraphql(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const requestId = newRequestId();
    if (!hasAgent(request)) return agentMissing(reply, requestId);
    return graphql(request, reply, requestId);
  }

  async function answerRest(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const requestId = newRequestId();
    if (request.method === "OPTIONS") return send(reply, 204, null, PREFLIGHT, requestId);
    if (!hasAgent(request)) return agentMissing(reply, requestId);
    // What is known so far; a fault is answered with as much of it as there is.
    let version: ApiVersion = apiVersions[1];
    let caller: Caller | null = null;
    let figures: QuotaFigures | null = null;
    let docs = DOCS;
    let media: MediaType = { form: null, patch: null };
    let bucket: Bucket = "core";
    try {
      version = apiVersion(request.headers["x-github-api-version"]);
      caller = await identify(request, (left) => {
        figures = left;
      });
      const { path, query, isEnterprise } = target(request.url);
      const match = operations.match(request.method, path);
      if (match) docs = match.route.docs;
      bucket = match?.route.bucket ?? "core";
      if (match?.route.isFree) figures = await quota.figures(caller, "core");
      else {
        const spending = await quota.spend(caller, bucket, 1);
        figures = spending.figures;
        if (spending.isSpent) throw quotaSpent(caller, requestId, ctx.clock.now());
      }
      // What is only passed on is upstream's to understand.
      if (match || !ctx.config.passThrough) media = mediaType(request.headers.accept);
      const isFresh = query.get("fresh") === "true" || wantsNoCache(request.headers);
      // It is ours, and no part of what `Link` repeats.
      query.delete("fresh");
      const call: Call = {
        ctx,
        quota,
        caller,
        sight: sightOf(caller),
        version,
        requestId,
        media,
        met: new Set(),
        isFresh: isFresh && isRead(request.method) && caller.kind === "user",
        method: request.method,
        api: apiAddress(ctx.config, { protocol: request.protocol, host: request.host, isEnterprise }),
        path,
        params: match?.params ?? {},
        query,
        headers: request.headers,
        body: typeof request.body === "string" ? request.body : "",
      };
      const answer = match
        ? await pages.answer(call, match, async () => formed(await run(call, match), media))
        : ctx.config.passThrough
          ? await passThrough(call)
          : null;
      if (!answer) throw notMirrored(request.method);
      return await deliver(reply, call, answer, figures, bucket);
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      const headers = {
        "Content-Type": jsonType,
        ...versionHeaders(version, media),
        ...quotaHeaders(figures, bucket),
        ...error.headers,
      };
      const body = laidOut(faultBody(error, docs), request.headers["user-agent"]);
      return send(reply, error.status, body, headers, requestId);
    }
  }

  /** Whoever shows a credential that is none spends as the stranger that they are. */
  async function identify(
    request: FastifyRequest,
    strangersFigures: (figures: QuotaFigures | null) => void,
  ): Promise<Caller> {
    const { authorization } = request.headers;
    try {
      return await callers.identify({ authorization, address: request.ip });
    } catch (error) {
      if (error instanceof ApiFault)
        strangersFigures((await quota.spend({ kind: "anonymous", address: request.ip }, "core", 1)).figures);
      throw error;
    }
  }

  function formed(answer: Answer, { form }: MediaType): Answer {
    return isOurJson(answer) ? { ...answer, body: inForm(answer.body, form, markdown) } : answer;
  }

  async function deliver(
    reply: FastifyReply,
    call: Call,
    answer: Answer,
    figures: QuotaFigures | null,
    bucket: Bucket,
  ): Promise<FastifyReply> {
    const { caller, version, media, requestId, headers: request } = call;
    const { page } = answer;
    const lasting: Record<string, string> = {
      ...versionHeaders(version, media),
      ...cacheHeaders(answer, caller, request),
      ...answer.headers,
      ...(answer.link ? { Link: answer.link } : {}),
    };
    const headers = {
      ...freshnessHeaders(answer, { now: ctx.clock.now(), staleAfterMs: ctx.config.staleAfterMs }),
      ...lasting,
    };
    let encoding: Encoding | null = null;
    const agent = reply.request.headers["user-agent"];
    if (page && call.method === "GET" && !isLaidOut(agent)) {
      encoding = request["x-no-compression"] === undefined ? encodingOf(page.bytes, request["accept-encoding"]) : null;
      const bodyHeaders = { "Content-Type": jsonType, ...(encoding && { "Content-Encoding": encoding }) };
      const common = commonHeaders(requestId);
      delete common["X-GitHub-Request-Id"];
      shortcut.remember(reply.request.raw, {
        caller,
        key: keyOf(call),
        page,
        bucket,
        encoding,
        headers: { ...common, ...lasting },
        bodyHeaders,
      });
    }
    if (isRead(call.method) && answer.status === 200 && isUnchanged(headers, request)) {
      // GitHub docs: a 304 is free to those who are authorised.
      const left = caller.kind === "user" ? quota.refund(caller, bucket, 1) : figures;
      return send(reply, 304, null, { ...headers, ...quotaHeaders(left, bucket) }, requestId);
    }
    if (page) {
      if (encoding) headers["Content-Encoding"] = encoding;
      const bytes = encoding ? await encoded(page, encoding) : laidOut(page.bytes, agent);
      const all = { ...quotaHeaders(figures, bucket), ...headers, "Content-Type": jsonType };
      return send(reply, answer.status, bytes, all, requestId);
    }
    if (answer.body !== null) headers["Content-Type"] = answer.contentType ?? jsonType;
    const body = isOurJson(answer) ? laidOut(answer.body, agent) : answer.body;
    // Upstream's own 304 is as free as ours, and its own figures, where it sends some, are those that count.
    const left = answer.status === 304 && caller.kind === "user" ? quota.refund(caller, bucket, 1) : figures;
    return send(reply, answer.status, body, { ...quotaHeaders(left, bucket), ...headers }, requestId);
  }
}

/** Another media type is text, or upstream's own answer, which stays as it is. */
function isOurJson(answer: Answer): answer is Answer & { body: string } {
  return answer.body !== null && answer.contentType === undefined;
}

function hasAgent({ headers }: FastifyRequest): boolean {
  return (headers["user-agent"] ?? "").trim() !== "";
}

function agentMissing(reply: FastifyReply, requestId: string): FastifyReply {
  return send(reply, 403, AGENT_MISSING, { "Content-Type": "text/html; charset=utf-8" }, requestId);
}

/** What says nothing of upstream. */
const OWN = new Set(["/", "/meta", "/versions", "/zen", "/rate_limit"]);

async function run(call: Call, { route, repository: named }: Match): Promise<Answer> {
  if (route.run.of === "service") {
    const answer = await route.run.with(call);
    if (OWN.has(call.path) || answer.confirmedAt !== undefined || answer.status > 299) return answer;
    const notFresh = call.isFresh ? { notFresh: "this answer cannot be refreshed by itself" } : {};
    return { ...answer, ...notFresh, confirmedAt: await findOldestConfirmation(call.ctx.db, call.sight) };
  }
  if (!named) throw new Error(`A route below a repository was matched without one: ${call.path}`);
  const found = await findNamed(call, named);
  if (found === null) throw notFound();
  call.met.add(found.repository.id);
  const path = `/repositories/${found.repository.id}${named.rest}`;
  if (found.isMoved) return moved(call, path);
  const below: RepositoryCall = { ...call, repository: found.repository, path };
  const refreshed = call.isFresh ? await refreshShown(below, named.rest) : {};
  const answer = await route.run.with(below);
  return { confirmedAt: found.repository.confirmedAt, ...refreshed, ...answer };
}

function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** `fetch` adds this header by itself to whatever has a validator, so there it is nobody's wish. */
function wantsNoCache(headers: FastifyRequest["headers"]): boolean {
  if (headers["if-none-match"] !== undefined || headers["if-modified-since"] !== undefined) return false;
  return (headers["cache-control"] ?? "").split(",").some((part) => part.trim().toLowerCase() === "no-cache");
}

async function findNamed(
  { ctx: { db }, sight }: Call,
  { fullName, id }: { fullName: string | null; id: string | null },
): Promise<{ repository: MirroredRepository; isMoved: boolean } | null> {
  if (fullName === null) {
    const number = numberParam(id ?? undefined);
    const repository = number === null ? null : await findRepositoryById(db, number, sight);
    return repository && { repository, isMoved: false };
  }
  const repository = await findRepositoryByName(db, fullName, sight);
  if (repository) return { repository, isMoved: false };
  const renamed = await findRenamedRepository(db, fullName, sight);
  return renamed && { repository: renamed, isMoved: true };
}

/** Reads may be repeated anywhere; a write must be repeated as the write that it is. */
function moved({ method, api, query }: Call, path: string): Answer {
  const location = `${api}${path}${query.size > 0 ? `?${query}` : ""}`;
  const body = JSON.stringify({
    message: isRead(method) ? "Moved Permanently" : "Temporary Redirect",
    url: location,
    documentation_url: "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects",
  });
  return { status: isRead(method) ? 301 : 307, body, headers: { Location: location } };
}

function target(url: string): { path: string; query: URLSearchParams; isEnterprise: boolean } {
  const at = url.indexOf("?");
  const whole = at < 0 ? url : url.slice(0, at);
  const isEnterprise = whole === enterprisePrefix || whole.startsWith(`${enterprisePrefix}/`);
  const path = isEnterprise ? whole.slice(enterprisePrefix.length) || "/" : whole;
  return { path, query: new URLSearchParams(at < 0 ? "" : url.slice(at + 1)), isEnterprise };
}

/** The same for every repository, seen or unseen: it depends on the path's form alone. */
function notMirrored(method: string): ApiFault {
  return new ApiFault(404, `Not Found: this mirror does not serve ${method} on this route`, { documentationUrl: DOCS });
}

function quotaSpent(caller: Caller, requestId: string, now: Date): ApiFault {
  const time = `${now.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const message =
    caller.kind === "user"
      ? `API rate limit exceeded for user ID ${caller.userId}. If you reach out to GitHub Support for help, please include the request ID ${requestId} and timestamp ${time}. For more on scraping GitHub and how it may affect your rights, please review our Terms of Service (https://docs.github.com/en/site-policy/github-terms/github-terms-of-service)`
      : `API rate limit exceeded for ${caller.address}. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)`;
  return new ApiFault(403, message, {
    documentationUrl: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api",
  });
}
