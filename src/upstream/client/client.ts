import { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import { type Json, rowsOf } from "../../json.ts";
import type { Stores } from "../../stores.ts";
import { RETRIES } from "../../waits/retries.ts";
import { Conditions, emptyPage, type PageConditions } from "../conditional/conditions.ts";
import { type KnownValidator, validatorPath } from "../conditional/validators.ts";
import { APP } from "../credentials/credentials.ts";
import { tokenDigest } from "../credentials/installation-tokens.ts";
import { Keyring } from "../credentials/keyring.ts";
import { Visibility } from "../credentials/visibility.ts";
import { pathBelow } from "../protocol/address.ts";
import { readAnswer } from "../protocol/answer.ts";
import { CredentialRejectedError } from "../protocol/errors.ts";
import type { Conditional, Opened } from "../protocol/opened.ts";
import { type Received, Transport, type TransportLimits } from "../protocol/transport.ts";
import type {
  GetOptions,
  GraphqlAnswer,
  GraphqlOptions,
  RawAnswer,
  ReadAnswer,
  Upstream,
  UpstreamOptions,
  WriteRequest,
} from "../protocol/upstream.ts";
import { WRITE_POINTS } from "../quota/limits.ts";
import { Quota } from "../quota/quota.ts";
import { Spending } from "../quota/spending.ts";
import { type AskingContext, askByCredentials, bucketOf, writersOf } from "./asking.ts";
import { askOnce } from "./attempts.ts";
import type { Attempt } from "./exchange.ts";
import { CONCURRENT_PER_PROCESS, Gate, MOST_OPENED } from "./gate.ts";
import { askGraphql } from "./graphql-asking.ts";
import { readPage } from "./heavy-pages.ts";
import { UpstreamMeter } from "./metering.ts";
import { Reach } from "./reach.ts";
import { rawAnswer, writeRequest } from "./write.ts";

type UpstreamContext = Pick<Stores, "config" | "db" | "redis" | "clock" | "random" | "log" | "metrics" | "tracing">;

export interface ClientLimits extends TransportLimits {
  /** The wait before the first repetition, on average; the second is twice as long. */
  repeatAfterMs: number;
}

const DEFAULT_LIMITS: ClientLimits = {
  connections: CONCURRENT_PER_PROCESS + MOST_OPENED,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 15_000,
  bodyTimeoutMs: 30_000,
  totalTimeoutMs: 90_000,
  maxBodyBytes: 64 * 1024 * 1024,
  repeatAfterMs: RETRIES.upstreamRead.firstMs,
};

/**
 * Opens the client. It connects when it first needs to.
 * @param options.isCommand an operator waits: requests are sent uncounted while Redis does not answer
 */
export function openUpstream(
  ctx: UpstreamContext,
  { isCommand = false, ...limits }: Partial<ClientLimits> & { isCommand?: boolean | undefined } = {},
): Upstream {
  return new UpstreamClient(ctx, isCommand, { ...DEFAULT_LIMITS, ...limits });
}

class UpstreamClient implements Upstream {
  readonly #ctx: UpstreamContext & AskingContext & { costs: LRUCache<string, number> };
  readonly #conditions: Conditions;
  readonly #spending: Spending;

  constructor(stores: UpstreamContext, isCommand: boolean, { repeatAfterMs, ...limits }: ClientLimits) {
    const keyring = new Keyring(stores, (path) => this.#postAsApp(path));
    this.#spending = new Spending(stores);
    this.#ctx = {
      ...stores,
      keyring,
      meter: new UpstreamMeter(stores.metrics, this.#spending),
      quota: new Quota(stores, { ledgerOf: keyring.ledgerOf, isCommand }),
      transport: new Transport(stores.config.upstreamUrl, limits, stores.tracing),
      reach: new Reach(stores),
      gate: new Gate(),
      repeatAfterMs,
      visibility: new Visibility(stores.clock),
      costs: new LRUCache({ max: 100 }),
    };
    this.#conditions = new Conditions(stores);
  }

  async get(address: string, options: GetOptions): Promise<ReadAnswer> {
    const path = pathBelow(this.#ctx.config.upstreamUrl, address);
    return await readPage(this.#ctx, (part, how) => this.#get(part, how), path, options);
  }

  async #get(path: string, options: GetOptions): Promise<ReadAnswer> {
    const conditions = options.conditional ? await this.#conditions.of(validatorPath(path, options)) : null;
    const attempt = await askByCredentials(this.#ctx, path, options, conditions);
    const { received, condition } = attempt;
    if (received.status !== 304 || !condition) return this.#read(path, options, attempt);
    if (condition.kind === "empty") {
      return this.#read(path, options, { ...attempt, received: emptyPage(condition, received) });
    }
    await this.#conditions.confirmed(condition, { credential: attempt.credential, madeFor: this.#madeFor(attempt) });
    const { validator } = condition;
    // The ETag does not cover the Link header: an unchanged full last page may have a successor by now.
    if (!validator?.isFull || validator.next !== null) return this.#read(path, options, attempt);
    const next = await this.#successorOf(path, options, validator);
    if (next === undefined) return this.#read(path, options, await askByCredentials(this.#ctx, path, options, null));
    return this.#read(path, options, { ...attempt, condition: { ...condition, validator: { ...validator, next } } });
  }

  async open(address: string, { headers, conditional, ...options }: UpstreamOptions): Promise<Opened> {
    const path = pathBelow(this.#ctx.config.upstreamUrl, address);
    const conditions = conditional ? conditionsBy(conditional) : null;
    const { received } = await askByCredentials(this.#ctx, path, { ...options, opening: headers }, conditions);
    const { status, headers: answered, text, body = Readable.from(text === "" ? [] : [Buffer.from(text)]) } = received;
    // The body was unpacked here, so its length and encoding headers are wrong.
    const { "content-encoding": _, "content-length": __, ...unpacked } = answered;
    return { status, headers: received.body ? answered : unpacked, body };
  }

  async #read(path: string, options: GetOptions, attempt: Attempt): Promise<ReadAnswer> {
    const { received, credential, seenAt, sent, condition } = attempt;
    const { accept, conditional, anew } = options;
    const key = validatorPath(path, options);
    const base = this.#ctx.config.upstreamUrl;
    const madeFor = this.#madeFor(attempt);
    const validator = condition?.validator ?? undefined;
    const answer = readAnswer({ base, path, key, accept, credential, madeFor, seenAt, validator }, received);
    if (!(conditional || anew) || answer.kind !== "ok" || !answer.validator) return answer;
    const kept = await this.#conditions.bodyOf(answer.validator, received, sent);
    return { ...answer, validator: { ...answer.validator, ...kept } };
  }

  /** A mark for the token string that a validator is valid for. Null for a credential whose string never changes. */
  #madeFor({ credential, sent }: Attempt): string | null {
    return this.#ctx.keyring.changes(credential) ? tokenDigest(sent.authorization) : null;
  }

  /** The page that now follows a full last page. Null: still none. Undefined: no free request can find out. */
  async #successorOf(path: string, options: GetOptions, validator: KnownValidator): Promise<string | null | undefined> {
    const question = successorQuestion(path);
    if (!question || options.accept !== undefined) return undefined;
    if (question.kind === "newest") {
      const lastRow = await this.#conditions.lastRow(validator);
      if (!lastRow) return undefined;
      const attempt = await askByCredentials(this.#ctx, question.path, options, lastRow.conditions);
      if (attempt.received.status === 304) return null;
      const newest = await this.#read(question.path, { ...options, conditional: false, anew: false }, attempt);
      return newest.kind === "ok" && firstId(newest.body) === lastRow.id ? null : undefined;
    }
    const answer = await this.#get(question.path, options);
    if (answer.kind === "unchanged") return question.path;
    if (answer.kind !== "ok" || !Array.isArray(answer.body)) return undefined;
    return answer.body.length > 0 ? question.path : null;
  }

  graphql(document: string, variables: object, options: GraphqlOptions): Promise<GraphqlAnswer> {
    return askGraphql(this.#ctx, document, variables, options);
  }

  async write(write: WriteRequest, { signal }: { signal?: AbortSignal } = {}): Promise<RawAnswer> {
    const path = pathBelow(this.#ctx.config.upstreamUrl, write.path);
    const { received, seenAt } = await askOnce(this.#ctx, {
      ...(await writersOf(this.#ctx, path)),
      request: writeRequest({ ...write, path }),
      demand: { bucket: bucketOf(path), api: "rest", cost: 1, isWrite: true, priority: "caller", signal },
    });
    return rawAnswer(received, seenAt);
  }

  /** Sends a POST as the App within another request. Answers whatever upstream says, except limits. */
  async #postAsApp(path: string): Promise<Received> {
    const { received, refusal } = await askOnce(this.#ctx, {
      credentials: [APP],
      isWithin: true,
      request: { method: "POST", path, headers: { "content-type": "application/json" }, body: "{}" },
      // GitHub docs: 5 points. The POST creates no visible content, so it need not wait in the line of writes.
      demand: { bucket: "core", api: "rest", cost: 1, isWrite: false, points: WRITE_POINTS, priority: "caller" },
    });
    if (refusal && !(refusal instanceof CredentialRejectedError)) throw refusal;
    return received;
  }

  async groups(repositoryIds: readonly number[]): Promise<number[][]> {
    return await this.#ctx.keyring.groups(repositoryIds);
  }

  credentialsChanged(): void {
    this.#ctx.keyring.forget();
  }

  async tryAgain(credential: string): Promise<void> {
    await this.#ctx.quota.accept(credential);
  }

  async close(): Promise<void> {
    await this.#spending.flush();
    await this.#ctx.transport.close(this.#ctx.config.shutdownMs / 2);
    await this.#ctx.reach.close();
  }
}

/** Conditions that the caller of the client makes for each credential's headers. */
function conditionsBy(conditional: Conditional): PageConditions {
  return {
    preferred: [],
    for: async (_credential, sent) => ({ headers: conditional(sent), kind: "computed", validator: null }),
  };
}

/** The id of a list's first row. Pure. */
function firstId(body: Json): Json | undefined {
  return rowsOf(body)[0]?.id;
}

/**
 * The free request that finds out whether a page follows a full last page by now. The page's own 304 does not say so,
 * because an ETag does not cover the Link header.
 *
 * - page: the list is paged by number, so the next page has an address. While there is no such page, it is an empty
 *   list.
 * - newest: only upstream can make the list's cursors, but the list is in order of creation. While the last row is the
 *   newest of all, no page follows.
 *
 * Null: no free request finds out, and the page has to be read again. Pure.
 */
function successorQuestion(path: string): { kind: "page" | "newest"; path: string } | null {
  const [route = "", text = ""] = path.split("?");
  const query = new URLSearchParams(text);
  if (query.get("sort") === "created" && query.get("direction") === "asc") {
    for (const name of ["page", "after", "before"]) query.delete(name);
    query.set("direction", "desc");
    query.set("per_page", "1");
    return { kind: "newest", path: `${route}?${query}` };
  }
  const isByCursor =
    ["after", "before", "cursor"].some((name) => query.has(name)) || /\/(issues|deliveries)$/.test(route);
  const page = Number(query.get("page") ?? 1);
  if (isByCursor || !Number.isInteger(page) || page < 1) return null;
  query.set("page", String(page + 1));
  return { kind: "page", path: `${route}?${query}` };
}
