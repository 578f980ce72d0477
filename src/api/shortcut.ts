import type { IncomingMessage, ServerResponse } from "node:http";
import { LRUCache } from "lru-cache";
import type { Kept } from "../mirror/unchanged/kept.ts";
import type { Standing, Standings, StandingsReader } from "../mirror/unchanged/standings.ts";
import type { Way } from "../operations/front.ts";
import type { ApiContext } from "./call.ts";
import { type Caller, type Callers, type Credential, classOf } from "./callers/caller.ts";
import type { Bucket, CallerQuota, QuotaFigures, Taken } from "./callers/quota.ts";
import type { Encoding } from "./compression.ts";
import { freshnessHeaders } from "./dialect/freshness.ts";
import { isUnchanged } from "./dialect/reply.ts";
import { newRequestId } from "./dialect/request-id.ts";
import { headLines, sendLines } from "./head.ts";
import { homeOf, type Page } from "./page.ts";

/** How a request was answered that may come again as it is. */
export interface Known {
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
  pageId: symbol;
  bucket: Bucket;
  encoding: Encoding | null;
  validators: Record<string, string>;
  lines: string;
  linesWithBody: string;
  /** What says how fresh it is, for this second. */
  freshness: { confirmedMs: number | null; second: number; lines: string };
}

/** Of what pages may take, so much again. */
const PART = 1 / 8;
/** Of one that is remembered, beside its texts. */
const OVERHEAD_BYTES = 500;

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
  readonly #pages: Kept<Page>;
  readonly #standings: StandingsReader;
  readonly #ways: LRUCache<string, Remembered>;
  readonly #isOn: boolean;
  readonly #learnt = new WeakMap<IncomingMessage, Standings>();

  constructor(
    ctx: ApiContext,
    {
      callers,
      quota,
      pages,
      standings,
    }: { callers: Callers; quota: CallerQuota; pages: Kept<Page>; standings: StandingsReader },
  ) {
    this.#ctx = ctx;
    this.#callers = callers;
    this.#quota = quota;
    this.#pages = pages;
    this.#standings = standings;
    this.#isOn = ctx.config.pageCacheBytes > 0;
    this.#ways = new LRUCache({
      maxSize: Math.max(1, Math.floor(ctx.config.pageCacheBytes * PART)),
      sizeCalculation: ({ lines, linesWithBody }, signature) =>
        signature.length + lines.length + linesWithBody.length + OVERHEAD_BYTES,
    });
  }

  /** Remembers how this request was answered with a page that is kept. */
  remember(request: IncomingMessage, { caller, key, page, bucket, encoding, headers, bodyHeaders }: Known): void {
    const asked = this.#isOn ? read(request) : null;
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

  /** How repositories stood after this request had come, as far as it was asked before it was passed on. */
  learnt(request: IncomingMessage): Standings | undefined {
    return this.#learnt.get(request);
  }

  /** Answers the request, or passes it on. */
  take(request: IncomingMessage, response: ServerResponse, way: Way): void {
    if (!this.#begin(request, response, way)) way.pass(request, response);
  }

  #begin(request: IncomingMessage, response: ServerResponse, { pass, isClosing }: Way): boolean {
    const asked = this.#isOn ? read(request) : null;
    const way = asked && this.#ways.get(asked.signature);
    if (!way || (asked.isForwarded && !this.#isDirect(way))) return false;
    const known = this.#pages.recall(way.key);
    if (!known || known.value.id !== way.pageId) return false;
    const page = known.value;
    const body = way.encoding === null ? page.bytes : page.encoded.get(way.encoding);
    if (!body) return false;
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
    // Whoever comes the usual way is told what is wrong.
    this.#standings.now(known.shown).then((standings) => {
      const standing = this.#pages.current(way.key, standings) === page ? homeOf(page, standings) : null;
      if (!standing) {
        this.#learnt.set(request, standings);
        return usual();
      }
      try {
        // The app has been told to close meanwhile, which a connection that stays would hold up.
        if (isClosing()) response.shouldKeepAlive = false;
        this.#answer(response, { way, body, standing, taken, validators: asked.validators });
      } catch (error) {
        // Others wait for the same word.
        this.#ctx.log.error({ err: error, path: request.url?.split("?")[0] }, "A request failed");
        response.destroy();
      }
    }, usual);
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

const NONE: Validators = {};

/**
 * Reads a request as far as a short answer needs it; null for anything but a plain read. The headers are looked at as they
 * were sent: the object that Node.js makes of them takes longer than all of this.
 */
function read({ method, httpVersionMinor, url, rawHeaders }: IncomingMessage): Asked | null {
  if (method !== "GET" || httpVersionMinor !== 1) return null;
  let authorization: string | undefined;
  let others = "";
  let validators = NONE;
  let isForwarded = false;
  let isControlled = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    switch (meaningOf(name)) {
      case "authorization":
        if (authorization !== undefined) return null;
        authorization = value;
        break;
      case "own":
        others += `${name}:${value}\n`;
        break;
      case "validator":
        if (name.toLowerCase() in validators) return null;
        validators = { ...validators, [name.toLowerCase()]: value };
        break;
      case "control":
        isControlled = true;
        break;
      case "forwarded":
        isForwarded = true;
        break;
      case "unusual":
        return null;
      default:
    }
  }
  // It asks for what upstream says now, unless the caller has the page already.
  if (isControlled && validators === NONE) return null;
  return { signature: `${url}\n${authorization}\n${others}`, validators, isForwarded };
}

/** What a header means here, by its name as it was sent; undefined: nothing. */
function meaningOf(name: string): Meaning | undefined {
  return LENGTHS.has(name.length) ? (MEANINGS.get(name) ?? MEANINGS.get(name.toLowerCase())) : undefined;
}

/** "own": the answer depends on it. "unusual": it asks for what only the usual way knows. */
type Meaning = "authorization" | "own" | "validator" | "control" | "forwarded" | "unusual" | "nothing";

const NAMES: Record<Meaning, readonly string[]> = {
  authorization: ["Authorization"],
  own: ["Host", "Accept", "Accept-Encoding", "X-GitHub-Api-Version", "User-Agent", "Cookie"],
  validator: ["If-None-Match", "If-Modified-Since"],
  control: ["Cache-Control"],
  forwarded: ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"],
  unusual: ["Content-Length", "Transfer-Encoding", "Expect", "Upgrade", "X-No-Compression"],
  // Like all others; but this one comes with nearly every request.
  nothing: ["Connection"],
};

/** By the names as most clients send them. */
const MEANINGS = new Map(
  Object.entries(NAMES).flatMap(([meaning, names]) =>
    names.flatMap((name) => [name, name.toLowerCase()].map((sent) => [sent, meaning as Meaning] as const)),
  ),
);
const LENGTHS = new Set([...MEANINGS.keys()].map((name) => name.length));

/** What `quotaHeaders` answers, as lines. */
function quotaLines(figures: QuotaFigures | null, bucket: Bucket): string {
  if (figures === null) return "";
  const { limit, remaining, reset, used } = figures;
  return `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${reset}\r\nX-RateLimit-Used: ${used}\r\nX-RateLimit-Resource: ${bucket}\r\n`;
}
