import { LRUCache } from "lru-cache";
import { staleAfterMs } from "../../config.ts";
import { levelOf } from "../../failure.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type Encoding, freshnessHeaders, isUnchanged, type Reply, wantsNoCache } from "../../http/reply.ts";
import {
  Kept,
  type Recalled,
  type RepositoryVersion,
  type RepositoryVersions,
} from "../../mirror/unchanged/unchanged.ts";
import type { Callers, Credential } from "../callers/caller.ts";
import { type Caller, classOf } from "../callers/permissions.ts";
import {
  type Bucket,
  type CallerQuota,
  quotaHeaders,
  type Recognised,
  type Stranger,
  type TakenQuota,
} from "../callers/quota.ts";
import type { RequestIds } from "../dialect/protocol.ts";
import type { ApiContext, RenderedPage } from "./call.ts";
import { COMPRESSED } from "./kept-bodies.ts";
import type { ApiMeter, RequestFigures } from "./metering.ts";
import type { RestDoor } from "./operation.ts";
import type { PipelineParts } from "./pipeline.ts";

/** A request and how it was answered. The same request may come again. */
export interface AnsweredRequest {
  exchange: Exchange;
  metered: RequestFigures;
  caller: Caller;
  page: RenderedPage;
  bucket: Bucket;
  encoding: Encoding | null;
  /** All headers that are the same each time, but those of the body. */
  headers: Record<string, string>;
  bodyHeaders: Record<string, string>;
}

/** What was learnt of a request that could not be answered as before. */
export interface LearntBefore {
  /** The repositories' versions, taken after the request had come. Undefined: they were not asked for. */
  learnt: RepositoryVersions | undefined;
  /** Its name for `Again.remember`. Null: its answer may not be kept. */
  signature: string | null;
}

interface RememberedRequest {
  /** Null: anonymous. */
  credential: Credential | null;
  callerClass: string;
  scopes: string | null;
  key: string;
  pageId: symbol;
  bucket: Bucket;
  encoding: Encoding | null;
  validators: Record<string, string>;
  headers: Record<string, string>;
  bodyHeaders: Record<string, string>;
  bytes: number;
  /** The figures of a repeated answer, and its counters by status; null: it was not repeated yet. */
  metered: RequestFigures;
  counters: Record<200 | 304, (() => void) | null>;
  /** The latest head, by status; null: it was not repeated yet. */
  heads: Record<200 | 304, KnownHead | null>;
}

/** A head of this second. The request's id and the quota change with each answer. */
interface KnownHead {
  second: number;
  confirmedMs: number | null;
  missing: string | null;
  headers: Record<string, string>;
}

/** A remembered request that may be answered, once it is known that its page is unchanged. */
interface Ready {
  remembered: RememberedRequest;
  page: Recalled<RenderedPage>;
  body: Buffer;
  taken: TakenQuota;
}

/** Answers a request the usual way. */
interface UsualWay {
  handle(exchange: Exchange, matched: Parameters<RestDoor>[1], before: LearntBefore): Promise<Reply>;
}

/** The part of the memory for pages that is added for requests. */
const REQUESTS_PART = 1 / 8;
/** The size of a remembered request beside its texts. */
const REQUEST_BYTES = 500;

/**
 * Answers a request that was answered before, without repeating the work that would give the same result: reading
 * the request, finding the repository, making headers. It checks each time the caller's token, their quota, whether the
 * page is unchanged and whether the caller has it. It also renews the headers that change. If any part of the request
 * differs, the request is answered the usual way.
 */
export class Again {
  readonly #ctx: ApiContext;
  readonly #callers: Callers;
  readonly #quota: CallerQuota;
  readonly #pages: Kept<RenderedPage>;
  readonly #requestIds: RequestIds;
  readonly #meter: ApiMeter;
  readonly #remembered: LRUCache<string, RememberedRequest> | null;

  constructor({ ctx, callers, quota, requestIds, meter }: PipelineParts, pages: Kept<RenderedPage>) {
    this.#ctx = ctx;
    this.#callers = callers;
    this.#quota = quota;
    this.#pages = pages;
    this.#requestIds = requestIds;
    this.#meter = meter;
    const maxSize = Math.floor(ctx.config.pageCacheBytes * REQUESTS_PART);
    const sizeCalculation = ({ bytes }: RememberedRequest, signature: string) =>
      signature.length + bytes + REQUEST_BYTES;
    this.#remembered = maxSize === 0 ? null : new LRUCache({ maxSize, sizeCalculation });
  }

  /** Remembers how a request with this signature was answered with a page that is kept. */
  remember(
    signature: string,
    { exchange, metered, caller, page, bucket, encoding, headers, bodyHeaders }: AnsweredRequest,
  ): void {
    const { authorization } = exchange.headers;
    const credential = authorization === undefined ? null : this.#callers.credentialOf(authorization);
    if (authorization !== undefined && credential === null) return;
    const { ETag, "Last-Modified": lastModified } = headers;
    // The page gets its date once the second of its last change has passed.
    if (page.lastModified && lastModified === undefined) return;
    this.#remembered?.set(signature, {
      credential,
      callerClass: classOf(caller),
      scopes: caller.kind === "user" ? caller.scopes : null,
      key: page.key,
      pageId: page.id,
      bucket,
      encoding,
      validators: { ...(ETag && { ETag }), ...(lastModified && { "Last-Modified": lastModified }) },
      headers,
      bodyHeaders,
      bytes: Object.entries(headers).flat().join("").length * 2,
      metered: { ...metered, source: "kept" },
      counters: { 200: null, 304: null },
      heads: { 200: null, 304: null },
    });
  }

  /** The door of REST: a request that comes again is answered as before, if that still holds. Only others go to `rest`. */
  before(rest: UsualWay): RestDoor {
    return (exchange, matched) => this.#answer(exchange, (before) => rest.handle(exchange, matched, before));
  }

  #answer(exchange: Exchange, usual: (before: LearntBefore) => Promise<Reply>): Promise<Reply> {
    const signature = this.#signatureOf(exchange);
    const ready = signature === null ? null : this.#begin(exchange, signature);
    if (!ready) return usual({ learnt: undefined, signature });
    const { page, taken } = ready;
    return this.#ctx.mirror.repositoryVersions.now(page.basis.shown).then(
      (repositoryVersions) => {
        const home = this.#pages.stands(page, repositoryVersions) ? shownVersion(page.value, repositoryVersions) : null;
        if (home) return this.#reply(exchange, ready, home);
        this.#quota.undo(taken);
        return usual({ learnt: repositoryVersions, signature });
      },
      (error: unknown) => {
        // The usual way says what is wrong, unless the mistake is ours and here alone.
        this.#ctx.log[levelOf(error, "debug")]({ err: error }, "A kept page could not be confirmed");
        this.#quota.undo(taken);
        return usual({ learnt: undefined, signature });
      },
    );
  }

  #begin(exchange: Exchange, signature: string): Ready | null {
    const remembered = this.#remembered?.get(signature);
    if (!remembered) return null;
    const page = this.#pages.recall(remembered.key);
    if (page?.value.id !== remembered.pageId) return null;
    const body = remembered.encoding === null ? page.value.bytes : page.value.encoded.get(remembered.encoding);
    const caller = body && this.#callerOf(remembered, page.value, exchange);
    const taken = caller && this.#quota.take(caller, remembered.bucket, 1);
    return taken ? { remembered, page, body, taken } : null;
  }

  #callerOf(
    { credential, callerClass, scopes }: RememberedRequest,
    { right }: RenderedPage,
    exchange: Exchange,
  ): Recognised | Stranger | null {
    if (credential === null) return { kind: "anonymous", address: exchange.address };
    if (right && this.#callers.recallPublicRight(credential, right.repositoryId) !== right.level) return null;
    const caller = this.#callers.recall(credential);
    return caller?.class === callerClass && caller.scopes === scopes ? caller : null;
  }

  #reply(exchange: Exchange, { remembered, body, taken }: Ready, home: RepositoryVersion): Reply {
    const unchanged = isUnchanged(remembered.validators, exchange.headers);
    // GitHub docs: a 304 is free to those who are authorised.
    if (unchanged && remembered.credential !== null) this.#quota.undo(taken);
    const status = unchanged ? 304 : 200;
    remembered.counters[status] ??= this.#meter.counter(remembered.metered, status);
    remembered.counters[status]();
    const headers = {
      ...this.#head(remembered, status, home),
      "X-GitHub-Request-Id": this.#requestIds.next(),
      ...quotaHeaders(this.#quota.windowFigures(taken), remembered.bucket),
    };
    return { status, headers, body: unchanged ? null : body };
  }

  /** The head of this second, without the headers that change with each answer. */
  #head(remembered: RememberedRequest, status: 200 | 304, home: RepositoryVersion): Record<string, string> {
    const now = this.#ctx.clock.now();
    const second = Math.floor(now.getTime() / 1_000);
    const confirmedMs = home.confirmedAt?.getTime() ?? null;
    const known = remembered.heads[status];
    const isOfNow = known?.second === second && known.confirmedMs === confirmedMs && known.missing === home.missing;
    if (isOfNow) return known.headers;
    const headers = {
      ...remembered.headers,
      ...(status === 200 && remembered.bodyHeaders),
      ...freshnessHeaders(home, { now, staleAfterMs: staleAfterMs(this.#ctx.config) }),
    };
    remembered.heads[status] = { second, confirmedMs, missing: home.missing, headers };
    return headers;
  }

  /**
   * All parts of a request that decide its answer, except the validators. Null if the request reads nothing that may be
   * kept.
   */
  #signatureOf(exchange: Exchange): string | null {
    const { method, requestTarget, headers } = exchange;
    if (this.#remembered === null || method !== "GET" || wantsNoCache(headers) || headers.prefer !== undefined)
      return null;
    const from = this.#ctx.config.publicUrl === null ? `${exchange.protocol} ${exchange.host}` : "";
    return `${requestTarget}\n${headers.authorization}\n${from}\n${headers.accept}\n${headers["accept-encoding"]}\n${headers["user-agent"]}\n${headers["x-github-api-version"]}\n${headers["x-github-next-global-id"]}\n${headers.cookie}`;
  }
}

/** A page's headers, maps and tags. */
const PAGE_BYTES = 1_000;

/** @param maxBytes 0: no pages are kept */
export function openPages(maxBytes: number): Kept<RenderedPage> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes.length * COMPRESSED + PAGE_BYTES });
}

/** How the page's repository stands; null: the page may not be shown. */
export function shownVersion(
  { repositoryId, confirmedAt }: RenderedPage,
  repositoryVersions: RepositoryVersions,
): RepositoryVersion | null {
  const home = repositoryVersions.get(repositoryId);
  return home?.isMirrored ? (confirmedAt ? { ...home, confirmedAt } : home) : null;
}
