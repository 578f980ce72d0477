import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { LRUCache } from "lru-cache";
import type { Standing } from "../mirror/revisions.ts";
import type { ApiContext } from "./call.ts";
import { type Caller, type Callers, type Credential, classOf } from "./caller.ts";
import type { Encoding } from "./compression.ts";
import { freshnessHeaders } from "./freshness.ts";
import { headLines, sendLines, takesLines } from "./head.ts";
import { type Page, type PageCache, standingOf } from "./page-cache.ts";
import type { Bucket, CallerQuota, QuotaFigures, Taken } from "./quota.ts";
import { isUnchanged } from "./reply.ts";
import { newRequestId } from "./request-id.ts";

/** How a request was answered that may come again as it is. */
export interface Way {
  caller: Caller;
  /** Names the page in the cache. */
  key: string;
  page: Page;
  bucket: Bucket;
  encoding: Encoding | null;
  /** All headers that are the same each time, those of the body (and of it alone) apart. */
  headers: Record<string, string>;
  bodyHeaders: Record<string, string>;
}

interface Remembered {
  /** Null: anonymous. */
  credential: Credential | null;
  callerClass: string;
  key: string;
  pageId: number;
  bucket: Bucket;
  encoding: Encoding | null;
  validators: Record<string, string>;
  lines: string;
  linesWithBody: string;
  /** What says how fresh it is, for this second. */
  freshness: { confirmedMs: number | null; second: number; lines: string };
}

const REMEMBERED = 10_000;

/**
 * Answers a request that was answered before, without what would come out the same: reading the request, finding the route,
 * making headers. The rest is done each time: whether the caller's token is (still) one, their quota, whether the page still
 * shows what there is, whether they have it already, and what of the headers moves on. Whatever is not as it was takes the
 * usual way, and is answered there.
 */
export class Shortcut {
  readonly #ctx: ApiContext;
  readonly #callers: Callers;
  readonly #quota: CallerQuota;
  readonly #pages: PageCache;
  readonly #ways = new LRUCache<string, Remembered>({ max: REMEMBERED });
  #isOpen = false;

  constructor(ctx: ApiContext, { callers, quota, pages }: { callers: Callers; quota: CallerQuota; pages: PageCache }) {
    this.#ctx = ctx;
    this.#callers = callers;
    this.#quota = quota;
    this.#pages = pages;
  }

  /** Goes in front of everything else that the app does with a request. When the app closes, nothing is answered here any more. */
  open(app: FastifyInstance): void {
    if (!takesLines || this.#ctx.config.pageCacheBytes === 0) return;
    const { server } = app;
    const usual = server.listeners("request") as ((request: IncomingMessage, response: ServerResponse) => void)[];
    const pass = (request: IncomingMessage, response: ServerResponse) => {
      for (const listener of usual) listener.call(server, request, response);
    };
    server.removeAllListeners("request");
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      if (!this.#take(request, response, pass)) pass(request, response);
    });
    this.#isOpen = true;
    app.addHook("preClose", async () => {
      this.#isOpen = false;
    });
  }

  /** Remembers how this request was answered with a page that is kept. */
  remember(request: IncomingMessage, { caller, key, page, bucket, encoding, headers, bodyHeaders }: Way): void {
    const asked = this.#isOpen ? read(request) : null;
    if (!asked) return;
    const { authorization } = request.headers;
    const credential = authorization === undefined ? null : this.#callers.credentialOf(authorization);
    if (authorization !== undefined && credential === null) return;
    const { ETag, "Last-Modified": lastModified } = headers;
    this.#ways.set(asked.signature, {
      credential,
      callerClass: classOf(caller),
      key,
      pageId: page.id,
      bucket,
      encoding,
      validators: { ...(ETag && { ETag }), ...(lastModified && { "Last-Modified": lastModified }) },
      lines: headLines(headers),
      linesWithBody: headLines({ ...headers, ...bodyHeaders }),
      freshness: { confirmedMs: 0, second: 0, lines: "" },
    });
  }

  #take(
    request: IncomingMessage,
    response: ServerResponse,
    pass: (request: IncomingMessage, response: ServerResponse) => void,
  ): boolean {
    const asked = this.#isOpen ? read(request) : null;
    const way = asked && this.#ways.get(asked.signature);
    if (!way || (asked.isForwarded && !this.#isDirect(way))) return false;
    const page = this.#pages.find(way.key);
    const body = page && (way.encoding === null ? page.bytes : page.encoded.get(way.encoding));
    if (!page || !body || page.id !== way.pageId) return false;
    const caller =
      way.credential === null
        ? { kind: "anonymous" as const, address: request.socket.remoteAddress ?? "", class: way.callerClass }
        : this.#callers.recall(way.credential);
    if (caller?.class !== way.callerClass) return false;
    const taken = this.#quota.take(caller, way.bucket, 1);
    if (!taken) return false;
    const usual = () => {
      this.#quota.undo(taken);
      pass(request, response);
    };
    this.#pages.revisions.ask(page.revisions.keys(), {
      resolve: (standings) => {
        const standing = standingOf(page, standings);
        if (standing) this.#answer(response, { way, body, standing, taken, validators: asked.validators });
        else usual();
      },
      // Whoever comes the usual way is told what is wrong.
      reject: usual,
    });
    return true;
  }

  #answer(
    response: ServerResponse,
    {
      way,
      body,
      standing,
      taken,
      validators,
    }: { way: Remembered; body: Buffer; standing: Standing; taken: Taken; validators: Validators },
  ): void {
    const own = `X-GitHub-Request-Id: ${newRequestId()}\r\n${this.#freshnessLines(way, standing)}`;
    if (isUnchanged(way.validators, validators)) {
      // GitHub docs: a 304 is free to those who are authorised.
      if (way.credential !== null) this.#quota.undo(taken);
      sendLines(response, 304, `${way.lines}${own}${quotaLines(this.#quota.figuresOf(taken), way.bucket)}`, null);
    } else {
      sendLines(
        response,
        200,
        `${way.linesWithBody}${own}${quotaLines(this.#quota.figuresOf(taken), way.bucket)}`,
        body,
      );
    }
  }

  #freshnessLines(way: Remembered, { confirmedAt }: Standing): string {
    const now = this.#ctx.clock.now();
    const second = Math.floor(now.getTime() / 1_000);
    const confirmedMs = confirmedAt?.getTime() ?? null;
    const known = way.freshness;
    if (known.second === second && known.confirmedMs === confirmedMs) return known.lines;
    const lines = headLines(freshnessHeaders({ confirmedAt }, { now, staleAfterMs: this.#ctx.config.staleAfterMs }));
    way.freshness = { confirmedMs, second, lines };
    return lines;
  }

  /** Whether what a proxy says of the caller can be left aside: nobody's word is taken, or nothing of the answer depends on it. */
  #isDirect({ credential }: Remembered): boolean {
    const { trustedProxies, publicUrl } = this.#ctx.config;
    return trustedProxies.length === 0 || (publicUrl !== null && credential !== null);
  }
}

type Validators = Readonly<Record<string, string | undefined>>;

/** What of a request decides its answer. */
interface Asked {
  /** Everything by which an answer differs from others, but for the validators. */
  signature: string;
  validators: Validators;
  /** A proxy says something of the caller. */
  isForwarded: boolean;
}

type Meaning = "own" | "validator" | "control" | "forwarded" | "unusual" | "nothing";

/** What headers mean here. "own": the answer depends on it. "unusual": it asks for what only the usual way knows. */
const NAMES: Record<Meaning, readonly string[]> = {
  own: ["Host", "Authorization", "Accept", "Accept-Encoding", "X-GitHub-Api-Version", "User-Agent", "Cookie"],
  validator: ["If-None-Match", "If-Modified-Since"],
  control: ["Cache-Control"],
  forwarded: ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"],
  unusual: ["Content-Length", "Transfer-Encoding", "Expect", "Upgrade", "X-No-Compression"],
  // Any other means nothing, too; these come with nearly every request.
  nothing: ["Connection", "Accept-Language", "Sec-Fetch-Mode"],
};

/** By the names as most clients send them. */
const MEANINGS = new Map(
  Object.entries(NAMES).flatMap(([meaning, names]) =>
    names.flatMap((sent) =>
      [sent, sent.toLowerCase()].map(
        (name) => [name, { name: sent.toLowerCase(), meaning: meaning as Meaning }] as const,
      ),
    ),
  ),
);

const NONE: Validators = {};

/**
 * Reads a request as far as a short answer needs it; null for anything but a plain read. The headers are looked at as they
 * were sent: making the object of them takes longer.
 */
function read({ method, httpVersionMinor, url, rawHeaders }: IncomingMessage): Asked | null {
  if (method !== "GET" || httpVersionMinor !== 1) return null;
  let signature = url as string;
  let validators = NONE;
  let isForwarded = false;
  let isControlled = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    const known = MEANINGS.get(sent) ?? MEANINGS.get(sent.toLowerCase());
    if (known === undefined) continue;
    const { name, meaning } = known;
    const value = rawHeaders[at + 1] as string;
    if (meaning === "own") signature += `\n${name}:${value}`;
    else if (meaning === "validator") {
      if (name in validators) return null;
      validators = { ...validators, [name]: value };
    } else if (meaning === "control") isControlled = true;
    else if (meaning === "forwarded") isForwarded = true;
    else if (meaning === "unusual") return null;
  }
  // It asks for what upstream says now, unless the caller has the page already.
  if (isControlled && validators === NONE) return null;
  return { signature, validators, isForwarded };
}

function quotaLines(figures: QuotaFigures | null, bucket: Bucket): string {
  if (!figures) return "";
  const { limit, remaining, reset, used } = figures;
  return `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${reset}\r\nX-RateLimit-Used: ${used}\r\nX-RateLimit-Resource: ${bucket}\r\n`;
}
