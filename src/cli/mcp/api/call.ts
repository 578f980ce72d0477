import { rootReasonOf } from "../../../failure.ts";
import { type Fields, type Json, parseStored } from "../../../json.ts";
import { VERSION } from "../../../version.ts";
import { type FeedLine, linesOf } from "../../follow/lines.ts";
import { documentIn, refusal, ToolFault } from "./faults.ts";
import { freshnessIn, freshnessOf, type PartFreshness } from "./freshness.ts";

/** A page of a hundred issues with the longest texts takes about half of it. */
const MOST_ANSWER_BYTES = 16 * 1024 * 1024;
/** The mirror itself ends a read earlier, unless upstream has to be asked. */
const READ_MS = 30_000;
/** Upstream's answer, and up to ten seconds until the mirror shows the write. */
const WRITE_MS = 60_000;

/** The mirror that is asked, and for whom. */
export interface AskedMirror {
  url: string;
  token: string;
  /** The addresses through which the caller came, as `X-Forwarded-For` lists them. Null: the caller is on this machine. */
  forwardedFor: string | null;
}

/** What is left out of the query is undefined. A list is written with commas. */
export type QueryValues = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** An answer, and whether its list goes on. */
export interface ListAnswer {
  document: Json;
  hasNext: boolean;
}

/** What of the tool's answer is asked for, and how an agent knows it: `issue`, `issue 7 of owner/name`. */
export interface AnswerPart {
  part: string;
  what: string;
}

/** One call of a tool: the requests that it makes, and how fresh the answers are. */
export class MirrorCall {
  readonly #mirror: AskedMirror;
  /** Aborts when the agent no longer waits. */
  readonly #gone: AbortSignal;
  readonly #parts: PartFreshness[] = [];

  constructor(mirror: AskedMirror, gone: AbortSignal) {
    this.#mirror = mirror;
    this.#gone = gone;
  }

  get freshness(): Fields {
    return freshnessOf(this.#parts);
  }

  /** @throws ToolFault */
  async get(of: AnswerPart, path: string, query: QueryValues = {}): Promise<ListAnswer> {
    const signal = AbortSignal.any([this.#gone, AbortSignal.timeout(READ_MS)]);
    const answer = await this.#send(`${path}${queryText(query)}`, { signal });
    return await this.#read(of, answer, { isWrite: false });
  }

  /** Writes once, and to the end: an agent that left may ask later what became of it. @throws ToolFault */
  async write(of: AnswerPart, method: "POST" | "PATCH", path: string, body: object): Promise<Json> {
    const headers = { "content-type": "application/json" };
    const signal = AbortSignal.timeout(WRITE_MS);
    const answer = await this.#send(path, { method, headers, body: JSON.stringify(body), signal });
    return (await this.#read(of, answer, { isWrite: true })).document;
  }

  /** The lines of the feed, until `enough` aborts. @throws ToolFault */
  async *lines(of: AnswerPart, query: QueryValues, enough: AbortSignal): AsyncGenerator<FeedLine> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new DOMException("It took too long", "TimeoutError")), READ_MS);
    try {
      const headers = { accept: "application/x-ndjson" };
      const signal = AbortSignal.any([this.#gone, enough, late.signal]);
      const answer = await this.#send(`/-/events${queryText(query)}`, { headers, signal });
      clearTimeout(timer);
      if (!answer.ok) throw refusal(answer, documentIn(await textIn(answer)), { ...of, isWrite: false });
      this.#parts.push(freshnessIn(of.part, answer.headers));
      yield* linesOf(answer);
    } catch (error) {
      if (enough.aborted) return;
      throw error instanceof ToolFault ? error : this.#unanswered(error, false);
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const { url, token, forwardedFor } = this.#mirror;
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    headers.set("user-agent", `tain-mcp/${VERSION}`);
    if (!headers.has("accept")) headers.set("accept", "application/vnd.github+json");
    if (forwardedFor !== null) headers.set("x-forwarded-for", forwardedFor);
    try {
      return await fetch(url + path, { ...init, headers });
    } catch (error) {
      throw this.#unanswered(error, init.method !== undefined);
    }
  }

  async #read(of: AnswerPart, answer: Response, { isWrite }: { isWrite: boolean }): Promise<ListAnswer> {
    let text: string;
    try {
      text = await textIn(answer);
    } catch (error) {
      throw error instanceof ToolFault ? error : this.#unanswered(error, isWrite);
    }
    if (!answer.ok) throw refusal(answer, documentIn(text), { ...of, isWrite });
    this.#parts.push(freshnessIn(of.part, answer.headers));
    try {
      return { document: parseStored<Json>(text), hasNext: /rel="next"/.test(answer.headers.get("link") ?? "") };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ToolFault("failed", `${this.#mirror.url} answers no JSON: is it a mirror's address?`, { cause: error });
    }
  }

  #unanswered(error: unknown, isWrite: boolean): ToolFault {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    const why = isLate ? "has not answered in time" : `cannot be reached (${rootReasonOf(error)})`;
    const then = isWrite ? " Read what was to be changed before you write again: it may have been done." : "";
    return new ToolFault("mirror_away", `The mirror at ${this.#mirror.url} ${why}.${then}`, { cause: error });
  }
}

/** The whole body. @throws ToolFault when it is too long; the connection's error */
async function textIn({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body ?? []) {
    size += piece.length;
    if (size > MOST_ANSWER_BYTES)
      throw new ToolFault("too_large", "The answer is too large: ask for fewer with per_page");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function queryText(query: QueryValues): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
