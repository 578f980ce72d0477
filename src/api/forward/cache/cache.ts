import type { IncomingHttpHeaders } from "node:http";
import type { Context } from "../../../context.ts";
import type { RequestHeaders } from "../../../http/reply.ts";
import { namesTag } from "../../../http/reply.ts";
import type { Conditional, Opened } from "../../../upstream/protocol/opened.ts";
import { collected } from "./body.ts";
import { type CacheableRead, type ForwardedAnswer, ForwardedAnswers, presentQuestion } from "./forwarded-answers.ts";
import { keptOf, MOST_KEPT_BYTES, upstreamTagOf, type WholeAnswer } from "./keeping.ts";
import { Proofs, type TokenViewer } from "./proofs.ts";

/** One read, and how to send it. */
export interface CacheRequest {
  method: string;
  /** The headers of the caller's request. */
  headers: RequestHeaders;
  /** Fires once the caller has gone away. */
  gone: AbortSignal;
  question: CacheableRead;
  viewer: TokenViewer;
  /** The mirrored repository of the question, if the caller sees it; null: none, or it cannot be told. */
  home: () => Promise<SeenRepository | null>;
  /** Whether the caller wants upstream to be asked now. */
  isFresh: boolean;
  send: (conditional: Conditional) => Promise<Opened>;
}

/** A mirrored repository, as it is now. */
export interface SeenRepository {
  id: number;
  fullName: string;
  isPrivate: boolean;
}

/** A complete answer. */
interface CachedAnswer extends WholeAnswer {
  /** "hit": upstream was not asked. "revalidated": it has just confirmed what was kept. "miss": it has answered. */
  outcome: "hit" | "revalidated" | "miss";
  /** Whole seconds since upstream last showed the answer to this token. */
  age: number;
}

/** `pieces`: the pieces of a body whose beginning was read already. */
type Fetched = CachedAnswer | { opened: Opened; pieces: AsyncIterable<Buffer> };

/**
 * Upstream's answers to forwarded reads, kept for all callers. A caller is shown a kept answer only after upstream has
 * shown the very same answer to their own token. Normally that is just now, by a 304 for the ETag that the answer has
 * for that token. If a sha names the whole answer, an earlier showing is enough, as long as the caller sees the
 * repository here.
 */
export class ForwardCache {
  readonly #ctx: Pick<Context, "config" | "clock">;
  readonly #kept: ForwardedAnswers;
  readonly #proofs: Proofs;
  /** Answers under way, by question and token. Null: it cannot be shared. They never fail. */
  readonly #underWay = new Map<string, { known: TokenViewer["known"]; found: Promise<CachedAnswer | null> }>();
  /** First requests under way, while nothing is kept, by question. They never fail. */
  readonly #firsts = new Map<string, Promise<ForwardedAnswer | null>>();

  constructor(ctx: Pick<Context, "config" | "db" | "clock" | "log" | "random">) {
    this.#ctx = ctx;
    this.#kept = new ForwardedAnswers(ctx);
    this.#proofs = new Proofs(ctx);
  }

  /** @throws as `send`; UpstreamUnavailableError when the answer breaks off; the signal's reason */
  async answer(asking: CacheRequest): Promise<Fetched> {
    const { method, headers, question, viewer, isFresh } = asking;
    const isPlain = method === "GET" && !isFresh && !headers["if-none-match"] && !headers["if-modified-since"];
    if (!isPlain) return await this.#find(asking, isPlain);
    const name = `${question.key} ${viewer.name}`;
    const other = this.#underWay.get(name);
    const shared = other?.known === viewer.known ? await other.found : null;
    if (shared) return shared;
    // The first answer could not be shared, so the next one is not waited for.
    if (other) return await this.#find(asking, isPlain);
    const { promise, resolve } = Promise.withResolvers<CachedAnswer | null>();
    this.#underWay.set(name, { known: viewer.known, found: promise });
    try {
      const found = await this.#find(asking, isPlain);
      resolve("outcome" in found ? found : null);
      return found;
    } finally {
      resolve(null);
      this.#underWay.delete(name);
    }
  }

  /** Waits for writes under way. */
  async close(): Promise<void> {
    await this.#kept.close();
  }

  async #find(asking: CacheRequest, isPlain: boolean): Promise<Fetched> {
    const { viewer, isFresh } = asking;
    const home = await asking.home();
    // A rename or a new visibility changes a document under the same sha or ETag. So both are part of the question.
    const question = home ? presentQuestion(asking.question, home) : asking.question;
    // Noted before the store is asked: a first request that ends meanwhile may be missing from the store's answer.
    const before = isPlain ? this.#firsts.get(question.key) : undefined;
    const known = await this.#kept.find(question, viewer.name);
    const first = known || !isPlain ? undefined : (before ?? this.#firsts.get(question.key));
    const other = (await first) ?? null;
    const kept = known ?? (other && [viewer.name, ""].includes(other.shownTo) ? other : null);
    const proof = kept && home && question.isImmutable && !isFresh ? this.#proofs.find(viewer, kept, home.id) : null;
    if (kept && proof) {
      this.#kept.confirmed(kept, null);
      const age = Math.max(0, Math.floor((this.#ctx.clock.now().getTime() - proof.at.getTime()) / 1_000));
      return { status: 200, headers: { ...kept.headers, etag: proof.etag }, body: kept.body, outcome: "hit", age };
    }
    const asked = { ...asking, question };
    if (kept || first || !isPlain) return (await this.#ask(asked, kept, home)).found;
    const { promise, resolve } = Promise.withResolvers<ForwardedAnswer | null>();
    this.#firsts.set(question.key, promise);
    try {
      const { made, found } = await this.#ask(asked, null, home);
      resolve(made);
      return found;
    } finally {
      resolve(null);
      this.#firsts.delete(question.key);
    }
  }

  async #ask(
    asking: CacheRequest,
    kept: ForwardedAnswer | null,
    home: SeenRepository | null,
  ): Promise<{ found: Fetched; made: ForwardedAnswer | null }> {
    const { method, question, viewer } = asking;
    const at = this.#ctx.clock.now();
    const provedIn = question.isImmutable && home ? home.id : null;
    let sent: Readonly<Record<string, string>> = {};
    let tag: string | null = null;
    const opened = await asking.send((headers) => {
      sent = headers;
      tag = kept && upstreamTagOf(kept, headers);
      // A caller that holds another answer than the kept one asks upstream about that one.
      const theirs = headers["if-none-match"];
      if (tag !== null && theirs !== undefined && !namesTag(theirs, tag)) tag = null;
      return tag === null ? {} : { "if-none-match": tag };
    });
    const { status, headers, body } = opened;
    const asItArrives = { found: { opened, pieces: body }, made: null };
    if (status === 304) {
      if (!kept || tag === null) return asItArrives;
      body.resume();
      if (provedIn !== null) this.#proofs.note(viewer, kept, provedIn, { etag: tag, at });
      this.#kept.confirmed(kept, viewer.known === null ? provedIn : null);
      const all = confirmedHeaders(kept.headers, headers, tag);
      return { found: { status: 200, headers: all, body: kept.body, outcome: "revalidated", age: 0 }, made: null };
    }
    if (method === "HEAD" || Number(headers["content-length"] ?? 0) > MOST_KEPT_BYTES) return asItArrives;
    const read = await collected(body, MOST_KEPT_BYTES, { of: method, gone: asking.gone });
    if ("pieces" in read) return { found: { opened, pieces: read.pieces }, made: null };
    const whole: CachedAnswer = { status, headers, body: read.whole, outcome: "miss", age: 0 };
    const recomputes = this.#ctx.config.validatorBodiesBytes > 0;
    const made = keptOf(question, whole, { sent, viewer: viewer.name, at, recomputes, isHomeKnown: home !== null });
    if (!made) return { found: whole, made };
    const isMirrors = viewer.known === null && provedIn !== null;
    const keeping = { ...made, mirrors: isMirrors ? { repositoryId: provedIn, at } : null };
    this.#kept.keep(keeping, question);
    if (provedIn !== null) this.#proofs.note(viewer, keeping, provedIn, { etag: headers.etag ?? "", at });
    return { found: whole, made: keeping };
  }
}

/** The headers of a 304 are newer, except those about the body. */
function confirmedHeaders(kept: IncomingHttpHeaders, fresh: IncomingHttpHeaders, etag: string): IncomingHttpHeaders {
  const { "content-length": _, "content-type": __, ...rest } = fresh;
  return { ...kept, ...rest, etag };
}
