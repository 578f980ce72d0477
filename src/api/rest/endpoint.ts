import type { FastifyRequest } from "fastify";
import type { Kept } from "../../mirror/unchanged/kept.ts";
import { Reading } from "../../mirror/unchanged/reading.ts";
import type { StandingsReader } from "../../mirror/unchanged/standings.ts";
import { type Answer, type ApiContext, type Call, isRead } from "../call.ts";
import { type Caller, type Callers, sightOf } from "../callers/caller.ts";
import type { Bucket, CallerQuota, QuotaFigures } from "../callers/quota.ts";
import { type Encoding, encodingOf } from "../compression.ts";
import { apiAddress, enterprisePrefix } from "../dialect/addresses.ts";
import { inForm } from "../dialect/body-form.ts";
import { ApiFault, faultBody } from "../dialect/fault.ts";
import { freshnessHeaders } from "../dialect/freshness.ts";
import { MarkdownRenderer } from "../dialect/markdown.ts";
import { type MediaType, mediaType } from "../dialect/media-type.ts";
import {
  agentMissing,
  cacheHeaders,
  commonHeaders,
  hasAgent,
  isLaidOut,
  isUnchanged,
  jsonType,
  laidOut,
  type Outgoing,
  quotaHeaders,
  versionHeaders,
} from "../dialect/reply.ts";
import { newRequestId } from "../dialect/request-id.ts";
import { type ApiVersion, apiVersion, apiVersions } from "../dialect/version.ts";
import { passThrough } from "../forward/pass-through.ts";
import { encoded, type Page } from "../page.ts";
import type { Match, Router } from "../router.ts";
import type { Shortcut } from "../shortcut.ts";
import { keptOrRendered, keyOf } from "./kept-pages.ts";
import { run } from "./run.ts";

const DOCS = "https://docs.github.com/rest";

const PREFLIGHT = {
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Match, If-Unmodified-Since, X-GitHub-OTP, X-Requested-With",
  "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE",
  "Access-Control-Max-Age": "86400",
};

/** What of a request its answer is made of, whoever has read it. */
type Asked = Pick<FastifyRequest, "method" | "url" | "headers" | "ip" | "protocol" | "host" | "body" | "raw">;

/** Where a request's address leads. */
interface Target {
  /** Below the API's address. */
  path: string;
  search: string;
  isEnterprise: boolean;
  /** Null: we serve no such route. */
  match: Match | null;
}

export interface RestParts {
  ctx: ApiContext;
  callers: Callers;
  quota: CallerQuota;
  pages: Kept<Page>;
  standings: StandingsReader;
  shortcut: Shortcut;
  operations: Router;
}

/** Reads where a request leads, and answers it. Whatever is wrong with a request is an answer, too; an error is our own. */
export interface RestEndpoint {
  find(method: string, url: string): Target;
  answer(asked: Asked, target: Target): Promise<Outgoing>;
}

export function openRest({ ctx, callers, quota, pages, standings, shortcut, operations }: RestParts): RestEndpoint {
  const markdown = new MarkdownRenderer();

  return { find, answer };

  function find(method: string, url: string): Target {
    const at = url.indexOf("?");
    const whole = at < 0 ? url : url.slice(0, at);
    const isEnterprise = whole === enterprisePrefix || whole.startsWith(`${enterprisePrefix}/`);
    const path = isEnterprise ? whole.slice(enterprisePrefix.length) || "/" : whole;
    return { path, search: at < 0 ? "" : url.slice(at + 1), isEnterprise, match: operations.match(method, path) };
  }

  async function answer(asked: Asked, { path, search, isEnterprise, match }: Target): Promise<Outgoing> {
    const { method, headers } = asked;
    const requestId = newRequestId();
    if (method === "OPTIONS") return { status: 204, body: null, headers: PREFLIGHT, requestId };
    if (!hasAgent(headers)) return agentMissing(requestId);
    // What is known so far; a fault is answered with as much of it as there is.
    let version: ApiVersion = apiVersions[1];
    let caller: Caller | null = null;
    let figures: QuotaFigures | null = null;
    let docs = DOCS;
    let media: MediaType = { form: null, patch: null };
    let bucket: Bucket = "core";
    try {
      version = apiVersion(headers["x-github-api-version"]);
      caller = await identify(asked, (left) => {
        figures = left;
      });
      if (match) docs = match.route.docs;
      bucket = match?.route.bucket ?? "core";
      if (match?.route.isFree) figures = await quota.figures(caller, "core");
      else {
        const spending = await quota.spend(caller, bucket, 1);
        figures = spending.figures;
        if (spending.isSpent) throw quotaSpent(caller, requestId, ctx.clock.now());
      }
      // What is only passed on is upstream's to understand.
      if (match || !ctx.config.passThrough) media = mediaType(headers.accept);
      const query = new URLSearchParams(search);
      const isFresh = query.get("fresh") === "true" || wantsNoCache(headers);
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
        reading: new Reading(standings, {
          learnt: shortcut.learnt(asked.raw),
          // A write, and a read that has upstream asked, changes the mirror.
          isLasting: isRead(method) && !isFresh,
        }),
        isFresh: isFresh && isRead(method) && caller.kind === "user",
        method,
        api: apiAddress(ctx.config, { protocol: asked.protocol, host: asked.host, isEnterprise }),
        path,
        params: match?.params ?? {},
        query,
        headers,
        body: typeof asked.body === "string" ? asked.body : "",
      };
      const found = match
        ? await keptOrRendered(pages, call, match, async () => formed(await run(call, match), media))
        : ctx.config.passThrough
          ? await passThrough(call)
          : null;
      if (!found) throw notMirrored(method);
      return await outgoing(asked, call, found, figures, bucket);
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      const all = {
        "Content-Type": jsonType,
        ...versionHeaders(version, media),
        ...quotaHeaders(figures, bucket),
        ...error.headers,
      };
      const body = laidOut(faultBody(error, docs), headers["user-agent"]);
      return { status: error.status, body, headers: all, requestId };
    }
  }

  /** Whoever shows a credential that is none spends as the stranger that they are. */
  async function identify(asked: Asked, strangersFigures: (figures: QuotaFigures | null) => void): Promise<Caller> {
    const { authorization } = asked.headers;
    try {
      return await callers.identify({ authorization, address: asked.ip });
    } catch (error) {
      if (error instanceof ApiFault)
        strangersFigures((await quota.spend({ kind: "anonymous", address: asked.ip }, "core", 1)).figures);
      throw error;
    }
  }

  /** Our JSON with the bodies in the form that was asked for. */
  function formed(answer: Answer, { form }: MediaType): Answer {
    if (form === null || !isOurJson(answer)) return answer;
    return { ...answer, body: inForm(answer.body.toString(), form, markdown) };
  }

  async function outgoing(
    asked: Asked,
    call: Call,
    answer: Answer,
    figures: QuotaFigures | null,
    bucket: Bucket,
  ): Promise<Outgoing> {
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
    const agent = asked.headers["user-agent"];
    if (page && call.method === "GET" && !isLaidOut(agent)) {
      encoding = request["x-no-compression"] === undefined ? encodingOf(page.bytes, request["accept-encoding"]) : null;
      const bodyHeaders = { "Content-Type": jsonType, ...(encoding && { "Content-Encoding": encoding }) };
      const common = commonHeaders(requestId);
      delete common["X-GitHub-Request-Id"];
      shortcut.remember(asked.raw, {
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
      return { status: 304, body: null, headers: { ...headers, ...quotaHeaders(left, bucket) }, requestId };
    }
    if (page) {
      if (encoding) headers["Content-Encoding"] = encoding;
      const body = encoding ? await encoded(page, encoding) : laidOut(page.bytes, agent);
      const all = { ...quotaHeaders(figures, bucket), ...headers, "Content-Type": jsonType };
      return { status: answer.status, body, headers: all, requestId };
    }
    if (answer.body !== null) headers["Content-Type"] = answer.contentType ?? jsonType;
    const body = isOurJson(answer) ? laidOut(answer.body, agent) : answer.body;
    // Upstream's own 304 is as free as ours, and its own figures, where it sends some, are those that count.
    const left = answer.status === 304 && caller.kind === "user" ? quota.refund(caller, bucket, 1) : figures;
    return { status: answer.status, body, headers: { ...quotaHeaders(left, bucket), ...headers }, requestId };
  }
}

/** Another media type is text, or upstream's own answer, which stays as it is. */
function isOurJson(answer: Answer): answer is Answer & { body: string | Buffer } {
  return answer.body !== null && answer.contentType === undefined;
}

/** `fetch` adds this header by itself to whatever has a validator, so there it is nobody's wish. */
function wantsNoCache(headers: Asked["headers"]): boolean {
  if (headers["if-none-match"] !== undefined || headers["if-modified-since"] !== undefined) return false;
  return (headers["cache-control"] ?? "").split(",").some((part) => part.trim().toLowerCase() === "no-cache");
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
