import type { IncomingHttpHeaders } from "node:http";
import { execute, type GraphQLError } from "graphql";
import { isPostgresCancelled, isPostgresOutage } from "../../../db/outage.ts";
import { PEOPLE } from "../../../db/revisions.ts";
import { HttpError } from "../../http/errors.ts";
import { encodingOf, freshnessHeaders, JSON_TYPE, type Reply } from "../../http/reply.ts";
import type { Exchange } from "../../http/server.ts";
import { type Confirmation, joinConfirmations } from "../../mirror/read/repositories.ts";
import { Kept, Reading, type RepositoryVersions } from "../../mirror/unchanged/unchanged.ts";
import { AtCentreError, isForCentre } from "../../operations/at-centre.ts";
import { Line, roomFor } from "../../work/line.ts";
import { sendable } from "../../work/pace.ts";
import { eitherOf, TimeLimit } from "../../work/signals.ts";
import type { ApiContext } from "../call/call.ts";
import { COMPRESSED, encoded, type KeptBody, ownBytes } from "../call/kept-bodies.ts";
import type { ApiMeter, RequestFigures } from "../call/metering.ts";
import type { Callers } from "../callers/caller.ts";
import { accessOf, classOf, mayBeForwarded, type User } from "../callers/permissions.ts";
import { type CallerQuota, payerName, type QuotaFigures, quotaHeaders } from "../callers/quota.ts";
import { ApiFault, faultBody, retryAt } from "../dialect/fault.ts";
import { doubtHeaders, prefers } from "../dialect/preferences.ts";
import {
  agentMissing,
  apiAddress,
  commonHeaders,
  dialectReply,
  graphqlText,
  hasAgent,
  PART,
  type RequestIds,
  serverHeaders,
} from "../dialect/protocol.ts";
import { forwardedReply } from "../forward/forwarding.ts";
import type { ChangeStreams } from "../streams/change-streams.ts";
import type { StreamPlaces } from "../streams/places.ts";
import { GraphqlCall } from "./call/call.ts";
import { type IssueTexts, openCounts, openIssueTexts } from "./call/kept-lists.ts";
import { Documents, openValidation, Plans } from "./documents/documents.ts";
import { mayLack } from "./documents/mistakes.ts";
import { parseQuery, parseReduced, type Query } from "./documents/query.ts";
import { forwardWhole } from "./forward/forward.ts";
import { type Side, Sides } from "./forward/side.ts";
import { notAskedOfUpstream, perhapsUpstreams, type WholeDocument, wholeDocument } from "./forward/unknown.ts";
import { helpBeyond } from "./run/errors.ts";
import { executePlan } from "./run/execution.ts";
import type { Plan } from "./run/plan.ts";
import {
  bugIn,
  MissingValues,
  quotaSpentText,
  type Result,
  resultOf,
  resultText,
  wentWrongText,
} from "./run/result.ts";
import { apiSchema } from "./schema.ts";
import { acceptsEventStream, EVENT_STREAM, eventStreamOnly } from "./subscribe/events.ts";
import { Streams, type Subscriber } from "./subscribe/streams.ts";

const GRAPHQL_DOCS = "https://docs.github.com/graphql";

/** How much longer a write may take: it may stand in line, be sent, and wait for upstream's replicas. */
const MUTATION_MS = 120_000;

export interface GraphqlParts {
  ctx: ApiContext;
  meter: ApiMeter;
  callers: Callers;
  quota: CallerQuota;
  /** How long a query may take. */
  timeoutMs: number;
  /** How long the reader of a stream may leave unread what was written. */
  unreadMs: number;
  changes: ChangeStreams;
  places: StreamPlaces;
  requestIds: RequestIds;
}

/** What is known of a request so far. */
interface GraphqlProgress {
  exchange: Exchange;
  requestId: string;
  metered: RequestFigures;
  /** The headers that say which server this is. */
  server: Record<string, string>;
  figures: QuotaFigures | null;
  freshness: Record<string, string>;
  limit: TimeLimit | null;
}

/** What a caller asks, and the rights with which they ask. */
interface CallersQuery {
  caller: User;
  api: string;
  /** The request's body. */
  text: string;
  /** The key of the kept result. */
  key: string;
  reading: Reading;
  /** How the repositories stood before the first row was read. */
  before: RepositoryVersions;
}

/** Answers `POST /graphql`. */
export class Graphql {
  readonly #parts: GraphqlParts;
  readonly #schema = apiSchema();
  readonly #validation = openValidation();
  readonly #documents = new Documents(this.#schema, this.#validation);
  readonly #plans = new Plans(this.#schema);
  readonly #results: Kept<KeptResult>;
  readonly #texts: Kept<IssueTexts>;
  readonly #counts = openCounts();
  readonly #missing: MissingValues;
  readonly #streams: Streams;
  readonly #sides: Sides;

  constructor(parts: GraphqlParts) {
    this.#parts = parts;
    const keptBytes = parts.ctx.config.pageCacheBytes / 2;
    this.#results = new Kept({ maxBytes: keptBytes, bytesOf: ({ bytes }) => bytes.length * COMPRESSED });
    this.#texts = openIssueTexts(keptBytes);
    this.#missing = new MissingValues(parts.ctx);
    this.#sides = new Sides(parts.ctx, this.#schema);
    this.#streams = new Streams(parts.ctx, {
      ...parts,
      schema: this.#schema,
      plans: this.#plans,
      missing: this.#missing,
    });
  }

  /** Ends the threads that validate documents. */
  close(): Promise<void> {
    return this.#validation.close();
  }

  /** @param read the body, where it was read before. @throws AtCentreError for what an edge does not answer */
  async handle(exchange: Exchange, read?: string): Promise<Reply> {
    const { meter } = this.#parts;
    const metered = meter.begin("/graphql", exchange.method, exchange.headers["user-agent"]);
    return await meter.around(exchange, metered, () => this.#handle(exchange, metered, read));
  }

  async #handle(exchange: Exchange, metered: RequestFigures, read: string | undefined): Promise<Reply> {
    const { ctx, requestIds } = this.#parts;
    const requestId = requestIds.next();
    if (!hasAgent(exchange.headers)) return agentMissing(requestId);
    const server = serverHeaders(ctx.config, exchange.path.startsWith("/api/"));
    const nothing = { figures: null, freshness: {}, limit: null };
    const progress: GraphqlProgress = { exchange, requestId, metered, server, ...nothing };
    using bodies = new DisposableStack();
    try {
      return await this.#answer(progress, { read, bodies });
    } catch (error) {
      if (progress.limit?.isOver) return this.#late(progress);
      // The caller has gone, so nobody reads this reply.
      if (exchange.gone.aborted) return reply(progress, 502, wentWrongText(requestId, ctx.clock.now()));
      if (!(error instanceof ApiFault)) throw error;
      return reply(progress, error.status, faultBody(error, GRAPHQL_DOCS), error.headers);
    } finally {
      progress.limit?.lift();
    }
  }

  async #answer(
    progress: GraphqlProgress,
    { read, bodies }: { read: string | undefined; bodies: DisposableStack },
  ): Promise<Reply> {
    const { ctx, quota } = this.#parts;
    const { exchange } = progress;
    const caller = await this.#identify(exchange);
    this.#parts.meter.identified(progress.metered, caller);
    const api = apiAddress(ctx.config, exchange, { isEnterprise: exchange.path.startsWith("/api/") });
    Object.assign(progress.server, await doubtHeaders(ctx, accessOf(caller), exchange.headers));
    progress.figures = await quota.figures(caller, "graphql");
    // Whoever has nothing left cannot pay for an answer, nor for a refusal, so not even the body is read for them.
    if (progress.figures?.remaining === 0) return this.#spentReply(progress, caller);
    const text = read ?? (await this.#text(progress, caller, bodies));
    // The caller is part of the key, since some fields show who asks.
    const form = hasNextIds(exchange.headers) ? "next" : "";
    const key = `${caller.userId} ${classOf(caller)} ${form} ${api}\n${text}`;
    const reading = new Reading(ctx.mirror.repositoryVersions);
    const again = await this.#again(progress, { key, caller, reading });
    if (again) return again;
    const question: CallersQuery = { caller, api, text, key, reading, before: reading.soFar() };

    const query = await parseQuery(text, this.#queryParts(caller)).catch(async (error: unknown) => {
      if (error instanceof ApiFault) await this.#spend(progress, caller, 1);
      throw error;
    });
    if (!("cost" in query)) return await this.#answerUnknown(progress, question, query);
    if (ctx.config.edgeOf !== null && query.operation.operation !== "query")
      throw new AtCentreError("An edge neither writes nor tells of changes");
    const side = mayBeForwarded(ctx, caller) ? await this.#sides.of(query, caller) : "ours";
    if (side === "upstream's") return await this.#forward(progress, question, wholeDocument(query), query.cost.points);
    return await this.#answerHere(progress, question, query, { side, paid: 0 });
  }

  #queryParts(caller: User) {
    const { pace } = this.#parts.ctx.mirror;
    return { schema: this.#schema, documents: this.#documents, pace, caller: payerName(caller) };
  }

  /** The request's body. What it costs is known only from it, so one that cannot be taken costs a point. */
  async #text(progress: GraphqlProgress, caller: User, bodies: DisposableStack): Promise<string> {
    try {
      return await graphqlText(progress.exchange, { until: bodies, sender: `user ${caller.userId}` });
    } catch (error) {
      // That there was no room is not the caller's fault.
      if (error instanceof HttpError && error.status < 500) await this.#spend(progress, caller, 1);
      throw error;
    }
  }

  /** Answers a document that our schema refuses, since upstream's schema may allow it. */
  async #answerUnknown(
    progress: GraphqlProgress,
    question: CallersQuery,
    errors: readonly GraphQLError[],
  ): Promise<Reply> {
    const { ctx } = this.#parts;
    const { caller, text } = question;
    const isForwarded = mayBeForwarded(ctx, caller);
    const upstreams = isForwarded ? perhapsUpstreams(this.#schema, text, errors) : null;
    if (upstreams) return await this.#forward(progress, question, upstreams, 1);
    // The refusal took work, and it takes more to find what is held.
    if (await this.#spend(progress, caller, 1)) return this.#spentReply(progress, caller);
    const lacking = !isForwarded && errors.some(mayLack) ? perhapsUpstreams(this.#schema, text, errors) : null;
    if (!lacking) return this.#reply(progress, { errors });
    // Another mirror asks differently once it is told that a field does not exist.
    const isPartUseful = lacking.operation.operation === "query" && !prefers(progress.exchange.headers, "settled");
    const held = isPartUseful ? await this.#heldOf(question) : null;
    if (held) return await this.#answerHere(progress, question, held, { side: "ours", paid: 1 });
    return this.#reply(progress, { errors: [...errors, notAskedOfUpstream(ctx.config)] });
  }

  /** The query without the fields that only the service has. Null: nothing of it can be answered. */
  async #heldOf({ caller, text }: CallersQuery): Promise<Query | null> {
    const help = helpBeyond(this.#parts.ctx.config);
    const query = await parseReduced(text, { ...this.#queryParts(caller), help });
    return query && (query.priced || this.#planOf(query)) ? query : null;
  }

  #planOf({ document, operation, variables, unheld }: Query): Plan | null {
    return this.#plans.of(document.definitions, operation, variables, unheld);
  }

  /** @param paid the points that were spent for the query so far */
  async #answerHere(
    progress: GraphqlProgress,
    question: CallersQuery,
    query: Query,
    { side, paid }: { side: Side; paid: number },
  ): Promise<Reply> {
    const { timeoutMs } = this.#parts;
    const { exchange } = progress;
    const { caller } = question;
    const kind = query.operation.operation;
    if (kind === "subscription" && !acceptsEventStream(exchange.headers))
      return this.#reply(progress, { errors: [eventStreamOnly()] });
    const unpaid = query.priced === null ? query.cost.points - paid : 0;
    if (unpaid > 0 && (await this.#spend(progress, caller, unpaid))) return this.#spentReply(progress, caller);
    if (kind === "query") progress.metered.price = query.cost.points;
    // A write that is cut short may still take effect. Its own time limits end in an answer that says what is known.
    const limit =
      kind === "mutation" ? new TimeLimit(timeoutMs + MUTATION_MS, null) : new TimeLimit(timeoutMs, exchange.gone);
    progress.limit = limit;
    const beyond = side === "either" && kind === "query" ? new AbortController() : null;
    const signal = beyond ? eitherOf(limit.signal, beyond.signal) : limit.signal;
    const callFor = this.#callsOf(progress, question, query, { signal, beyond });
    if (kind === "subscription") return await this.#subscribe(progress, query, { caller, callFor });
    const call = callFor(caller, progress.figures);
    const answer = await this.#run(progress, query, { call, signal, question }).catch((error: unknown) => {
      if (beyond?.signal.aborted && !limit.signal.aborted) return null;
      throw error;
    });
    return answer ?? (await this.#forward(progress, question, wholeDocument(query), 0));
  }

  /** @param beyond aborted once the query turns out to be upstream's to answer; null: the mirror answers it */
  #callsOf(
    { exchange, requestId }: GraphqlProgress,
    { api, reading }: CallersQuery,
    { operation, cost }: Query,
    { signal, beyond }: { signal: AbortSignal; beyond: AbortController | null },
  ): Subscriber["callFor"] {
    const { ctx, changes } = this.#parts;
    const isQuery = operation.operation === "query";
    // Whatever a document asks for, half of the connections are there for others.
    const statements = new Line(roomFor(Math.ceil(ctx.config.readConnections / 2)));
    // Only a query's statements end with it.
    const until = isQuery ? signal : new AbortController().signal;
    return (caller, figures) =>
      new GraphqlCall({
        ctx,
        db: ctx.readDb.until(until, () => statements.enter(null, until)),
        searchDb: ctx.searches.of(caller, signal),
        caller,
        access: accessOf(caller),
        api,
        cost,
        figures,
        requestId,
        changes,
        beyond,
        isForMirror: prefers(exchange.headers, "settled"),
        hasNextIds: hasNextIds(exchange.headers),
        counts: this.#counts,
        texts: this.#texts,
        // A mutation has to show what it has written, and a subscription what it reports.
        reading: isQuery ? reading : new Reading(ctx.mirror.repositoryVersions, { isLasting: false }),
      });
  }

  /** Upstream's answer to the whole document. @param points what the document costs here */
  async #forward(
    progress: GraphqlProgress,
    { caller, api, text }: CallersQuery,
    whole: WholeDocument,
    points: number,
  ): Promise<Reply> {
    const { exchange, requestId } = progress;
    if (this.#parts.ctx.config.edgeOf !== null)
      throw new AtCentreError("The replica does not hold all that was asked for");
    progress.limit?.lift();
    progress.limit = null;
    if (points > 0 && (await this.#spend(progress, caller, points))) return this.#spentReply(progress, caller);
    const { headers, gone } = exchange;
    progress.metered.source = "forwarded";
    const answer = await forwardWhole(this.#parts.ctx, caller, whole, { headers, body: text, api, gone, requestId });
    return forwardedReply(requestId, answer);
  }

  /** The caller. @throws ApiFault 401 for anybody without a credential */
  async #identify({ headers: { authorization }, address }: Exchange): Promise<User> {
    const caller = authorization && (await this.#parts.callers.identify({ authorization, address }));
    if (caller && caller.kind === "user") return caller;
    throw new ApiFault(401, "This endpoint requires you to be authenticated.", {
      documentationUrl: `${GRAPHQL_DOCS}/guides/forming-calls-with-graphql#authenticating-with-graphql`,
    });
  }

  /** The kept result of the same question, if nothing has changed since. Null: the question has to be answered anew. */
  async #again(
    progress: GraphqlProgress,
    { key, caller, reading }: { key: string; caller: User; reading: Reading },
  ): Promise<Reply | null> {
    const kept = await this.#results.get(key, reading);
    const confirmation = kept && confirmationOfKept(kept, reading.soFar());
    if (!kept || !confirmation) return null;
    if (await this.#spend(progress, caller, kept.points)) return this.#spentReply(progress, caller);
    Object.assign(progress.metered, { source: "kept", price: kept.points } satisfies Partial<RequestFigures>);
    progress.freshness = this.#freshness(confirmation, kept.isPart);
    const encoding = encodingOf(kept.bytes, progress.exchange.headers["accept-encoding"]);
    if (encoding === null) return reply(progress, 200, kept.bytes);
    return reply(progress, 200, await encoded(kept, encoding), { "Content-Encoding": encoding });
  }

  #freshness(confirmed: Partial<Confirmation>, isPart: boolean): Record<string, string> {
    const { clock, config } = this.#parts.ctx;
    const fresh = freshnessHeaders(confirmed, { now: clock.now(), staleAfterMs: config.staleAfterMs });
    return isPart ? { ...fresh, ...PART } : fresh;
  }

  #spentReply(progress: GraphqlProgress, { userId }: User): Reply {
    const headers = retryAt(progress.figures?.reset, this.#parts.ctx.clock.now());
    return reply(progress, 200, quotaSpentText(userId), headers);
  }

  /** Whether the points exceed the caller's quota. */
  async #spend(progress: GraphqlProgress, caller: User, points: number): Promise<boolean> {
    const { figures, isSpent } = await this.#parts.quota.spend(caller, "graphql", points);
    progress.figures = figures;
    return isSpent;
  }

  /** Runs the operation here. Null: upstream has to answer it. */
  async #run(
    progress: GraphqlProgress,
    query: Query,
    { call, signal, question: { key, before } }: { call: GraphqlCall; signal: AbortSignal; question: CallersQuery },
  ): Promise<Reply | null> {
    const { ctx } = this.#parts;
    const { pace } = ctx.mirror;
    const { asked, document, operation, variables, cost, priced } = query;
    const plan = priced ? null : this.#planOf(query);
    if (pace.isOver()) await pace.turn();
    const confirmed = await call.confirmedBefore(operation);
    const result = plan
      ? await executePlan({ plan, variables, context: call, signal, pace })
      : resultOf(
          await execute({
            schema: this.#schema,
            document: priced ?? document,
            variableValues: asked.variables,
            operationName: asked.operationName ?? null,
            contextValue: call,
            hideSuggestions: true,
            abortSignal: signal,
          }),
        );
    if (call.beyond?.signal.aborted) return null;
    this.#missing.note(result.errors, progress.requestId);
    progress.freshness = this.#freshness((await call.confirmation(confirmed)) ?? {}, call.isPart);
    const body = await sendable(resultText(result, call.extensions), pace);
    if (call.met && plan && result.errors.length === 0 && plan.isKeepable) {
      const shown = [...call.shownRepositories];
      const { isPart } = call;
      const make = () => ({ bytes: ownBytes(body), encoded: new Map(), points: cost.points, shown, isPart });
      this.#results.keep(key, make, { shown: [...new Set([PEOPLE, ...call.met, ...shown])], before });
    }
    return this.#reply(progress, result, body);
  }

  async #subscribe(
    progress: GraphqlProgress,
    query: Query,
    { caller, callFor }: Pick<Subscriber, "caller" | "callFor">,
  ): Promise<Reply> {
    const { requestId, figures, exchange } = progress;
    const identify = () => this.#identify(exchange);
    const stream = await this.#streams.open(query, { caller, callFor, identify, requestId });
    if (typeof stream !== "function") return this.#reply(progress, stream);
    const headers = { ...commonHeaders(requestId), ...quotaHeaders(figures, "graphql"), ...EVENT_STREAM };
    return { status: 200, headers, body: null, stream };
  }

  /** The reply to a query that ran out of time: none of its results are known. */
  #late(progress: GraphqlProgress): Reply {
    const { ctx, timeoutMs } = this.#parts;
    const { requestId } = progress;
    ctx.log.warn({ requestId, timeoutMs }, "A GraphQL query ran out of time");
    const guess = " This may be the result of a timeout, or it could be a bug of the mirror's.";
    return reply(progress, 502, wentWrongText(requestId, ctx.clock.now(), guess));
  }

  /** The reply that shows a query's result. @throws a bug of ours, or Postgres' refusal */
  #reply(progress: GraphqlProgress, result: Result, body: string | Buffer = resultText(result)): Reply {
    const bug = bugIn(result.errors);
    if (!bug) return reply(progress, 200, body);
    const { ctx } = this.#parts;
    const isForOthers = ctx.config.edgeOf === null ? isPostgresOutage : isForCentre;
    if (bug.originalError instanceof ApiFault || isForOthers(bug.originalError)) throw bug.originalError;
    if (isPostgresCancelled(bug.originalError)) return this.#late(progress);
    const { requestId } = progress;
    ctx.log.error({ err: bug.originalError ?? bug, requestId, path: bug.path?.join(".") }, "A GraphQL query failed");
    return reply(progress, 502, wentWrongText(requestId, ctx.clock.now()));
  }
}

/** GitHub docs: with 1 each id has the newer form. Without it, or with 0, an id is shown as upstream showed it. */
function hasNextIds({ "x-github-next-global-id": form }: IncomingHttpHeaders): boolean {
  return form === "1";
}

function reply(
  { requestId, server, figures, freshness }: GraphqlProgress,
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Reply {
  const media = { "Content-Type": JSON_TYPE, "X-GitHub-Media-Type": "github.v4; format=json" };
  const all = { ...server, ...media, ...freshness, ...headers, ...quotaHeaders(figures, "graphql") };
  return dialectReply(requestId, { status, headers: all, body });
}

/** A result without errors, which may be given again while nothing that it depends on has changed. */
interface KeptResult extends KeptBody {
  /** The points that the result costs each caller. */
  points: number;
  /** The repositories whose resources the result shows. */
  shown: readonly number[];
  isPart: boolean;
}

/** Upstream's confirmation of the shown repositories; undefined: one of them may no longer be shown. */
function confirmationOfKept({ shown }: KeptResult, repositoryVersions: RepositoryVersions): Confirmation | undefined {
  const shownNow = shown.flatMap((id) => repositoryVersions.get(id) ?? []).filter(({ isMirrored }) => isMirrored);
  return shownNow.length === shown.length ? joinConfirmations(shownNow) : undefined;
}
