import { execute, type GraphQLError, getIntrospectionQuery, printSchema } from "graphql";
import { isPostgresCancelled, isPostgresOutage } from "../../../db/outage.ts";
import { staleAfterMs } from "../../config.ts";
import { HttpError } from "../../http/errors.ts";
import type { Exchange } from "../../http/exchange.ts";
import { encodingOf, freshnessHeaders, isRead, JSON_TYPE, type Reply } from "../../http/reply.ts";
import type { Confirmation } from "../../mirror/read/repositories.ts";
import { type Kept, Reading, type RepositoryVersions } from "../../mirror/unchanged/unchanged.ts";
import { ElsewhereError, isForElsewhere } from "../../operations/elsewhere.ts";
import { Line, roomFor } from "../../work/line.ts";
import { sendable } from "../../work/pace.ts";
import { eitherOf, TimeLimit } from "../../work/signals.ts";
import { encoded, ownBytes } from "../call/kept-bodies.ts";
import type { RequestFigures } from "../call/metering.ts";
import { type ApiRequest, answerRequest, type PipelineParts } from "../call/pipeline.ts";
import { accessOf, classOf, mayBeForwarded, type User } from "../callers/permissions.ts";
import { payerName, quotaHeaders } from "../callers/quota.ts";
import { ApiFault, faultBody, retryAt } from "../dialect/fault.ts";
import { hasNextIds } from "../dialect/node-id.ts";
import { doubtHeaders, prefers } from "../dialect/preferences.ts";
import { apiAddress, commonHeaders, dialectReply, graphqlText, PART, serverHeaders } from "../dialect/protocol.ts";
import { forwardedReply } from "../forward/forwarding.ts";
import type { ChangeStreams } from "../streams/change-streams.ts";
import type { StreamPlaces } from "../streams/places.ts";
import { GraphqlCall } from "./call/call.ts";
import { type IssueTexts, openCounts, openIssueTexts } from "./call/kept-lists.ts";
import { Documents, openValidation } from "./documents/documents.ts";
import { mayLack } from "./documents/mistakes.ts";
import { parseQuery, parseReduced, type Query } from "./documents/query.ts";
import { forwardWhole } from "./forward/forward.ts";
import { type Side, Sides } from "./forward/side.ts";
import { notAskedOfUpstream, perhapsUpstreams, type WholeDocument, wholeDocument } from "./forward/unknown.ts";
import { type KeptResult, KeptResults } from "./kept-results.ts";
import { helpBeyond } from "./run/errors.ts";
import { executePlan } from "./run/execution.ts";
import type { Plan } from "./run/plan.ts";
import { Plans } from "./run/plans.ts";
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

/** What a GET asks. GitHub's guides ask for the schema so, as JSON or, by this media type, as a text in JSON. */
const INTROSPECTION = JSON.stringify({ query: getIntrospectionQuery() });
const IDL = /\bapplication\/vnd\.github\.v4\.idl\b/;

/** How much longer a write may take: it may stand in line, be sent, and wait for upstream's replicas. */
const MUTATION_MS = 120_000;

export interface GraphqlParts extends PipelineParts {
  /** How long a query may take. */
  timeoutMs: number;
  /** How long a stream stays open. */
  lifetimeMs: number;
  /** How long the reader of a stream may leave unread what was written. */
  unreadMs: number;
  changes: ChangeStreams;
  places: StreamPlaces;
}

/** What a caller asks, and the rights with which they ask. */
interface CallersQuery {
  request: ApiRequest;
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

/** Answers `POST /graphql`, and `GET /graphql` with the schema. */
export class Graphql {
  readonly #parts: GraphqlParts;
  readonly #schema = apiSchema();
  /** The schema as a text, in JSON. It takes a while to print, and does not change. */
  #idl: string | null = null;
  readonly #validation = openValidation();
  readonly #documents = new Documents(this.#schema, this.#validation);
  readonly #plans = new Plans(this.#schema);
  readonly #results: KeptResults;
  readonly #texts: Kept<IssueTexts>;
  readonly #counts = openCounts();
  readonly #missing: MissingValues;
  readonly #streams: Streams;
  readonly #sides: Sides;

  constructor(parts: GraphqlParts) {
    this.#parts = parts;
    const keptBytes = parts.ctx.config.pageCacheBytes / 2;
    this.#results = new KeptResults(keptBytes);
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

  /** @param read the body, where it was read before. @throws ElsewhereError for what a replica does not answer */
  async handle(exchange: Exchange, read?: string): Promise<Reply> {
    return await answerRequest(this.#parts, exchange, {
      route: "/graphql",
      bucket: "graphql",
      answer: (request) => this.#answer(request, read),
      refuse: (request, fault) => reply(request, fault.status, faultBody(fault, GRAPHQL_DOCS), fault.headers),
    });
  }

  async #answer(request: ApiRequest, read: string | undefined): Promise<Reply> {
    const { ctx, quota } = this.#parts;
    const { exchange } = request;
    // A document may only ask, though it is posted.
    request.endsWithCaller = true;
    const isEnterprise = exchange.path.startsWith("/api/");
    Object.assign(request.replyHeaders, serverHeaders(ctx.config, isEnterprise));
    const caller = await request.user(authenticationMissing);
    const api = apiAddress(ctx.config, exchange, { isEnterprise });
    Object.assign(request.replyHeaders, await doubtHeaders(ctx, accessOf(caller), exchange.headers));
    request.figures = await quota.figures(caller, "graphql");
    // Whoever has nothing left cannot pay for an answer, nor for a refusal, so not even the body is read for them.
    if (request.figures?.remaining === 0) return this.#spentReply(request, caller);
    if (isRead(exchange.method) && IDL.test(exchange.headers.accept ?? "")) {
      if (await request.spend(caller, 1)) return this.#spentReply(request, caller);
      this.#idl ??= JSON.stringify({ data: printSchema(this.#schema) });
      return reply(request, 200, this.#idl);
    }
    const text = isRead(exchange.method) ? INTROSPECTION : (read ?? (await textOf(request, caller)));
    // The caller is part of the key, since some fields show who asks.
    const form = hasNextIds(exchange.headers) ? "next" : "";
    const key = `${caller.userId} ${classOf(caller)} ${form} ${api}\n${text}`;
    const reading = new Reading(ctx.mirror.repositoryVersions);
    const known = await this.#results.get(key, reading);
    if (known) return await this.#again(request, caller, known);
    const question: CallersQuery = { request, caller, api, text, key, reading, before: reading.soFar() };

    const query = await parseQuery(text, this.#queryParts(caller)).catch(async (error: unknown) => {
      if (error instanceof ApiFault) await request.spend(caller, 1);
      throw error;
    });
    if (!("cost" in query)) return await this.#answerUnknown(question, query);
    if (ctx.db.isReadOnly && query.operation.operation !== "query")
      throw new ElsewhereError("Who reads from a replica alone neither writes nor tells of changes");
    const side = mayBeForwarded(ctx, caller) ? await this.#sides.of(query, caller) : "ours";
    if (side === "upstream's") return await this.#forward(question, wholeDocument(query), query.cost.points);
    return await this.#answerHere(question, query, { side, paid: 0 });
  }

  #queryParts(caller: User) {
    const { pace } = this.#parts.ctx.mirror;
    return { schema: this.#schema, documents: this.#documents, pace, caller: payerName(caller) };
  }

  /** The kept result of the same question. */
  async #again(
    request: ApiRequest,
    caller: User,
    { kept, confirmation }: { kept: KeptResult; confirmation: Confirmation },
  ): Promise<Reply> {
    if (await request.spend(caller, kept.points)) return this.#spentReply(request, caller);
    Object.assign(request.metered, { source: "kept", price: kept.points } satisfies Partial<RequestFigures>);
    Object.assign(request.replyHeaders, this.#freshness(confirmation, kept.isPart));
    const encoding = encodingOf(kept.bytes, request.exchange.headers["accept-encoding"]);
    if (encoding === null) return reply(request, 200, kept.bytes);
    return reply(request, 200, await encoded(kept, encoding), { "Content-Encoding": encoding });
  }

  /** Answers a document that our schema refuses, since upstream's schema may allow it. */
  async #answerUnknown(question: CallersQuery, errors: readonly GraphQLError[]): Promise<Reply> {
    const { ctx } = this.#parts;
    const { request, caller, text } = question;
    const isForwarded = mayBeForwarded(ctx, caller);
    const upstreams = isForwarded ? perhapsUpstreams(this.#schema, text, errors) : null;
    if (upstreams) return await this.#forward(question, upstreams, 1);
    // The refusal took work, and it takes more to find what is held.
    if (await request.spend(caller, 1)) return this.#spentReply(request, caller);
    const lacking = !isForwarded && errors.some(mayLack) ? perhapsUpstreams(this.#schema, text, errors) : null;
    if (!lacking) return this.#reply(request, { errors });
    // Another mirror asks differently once it is told that a field does not exist.
    const isPartUseful = lacking.operation.operation === "query" && !prefers(request.exchange.headers, "settled");
    const held = isPartUseful ? await this.#heldOf(question) : null;
    if (held) return await this.#answerHere(question, held, { side: "ours", paid: 1 });
    return this.#reply(request, { errors: [...errors, notAskedOfUpstream(ctx.config)] });
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
    question: CallersQuery,
    query: Query,
    { side, paid }: { side: Side; paid: number },
  ): Promise<Reply> {
    const { timeoutMs } = this.#parts;
    const { request, caller } = question;
    const { exchange } = request;
    const kind = query.operation.operation;
    if (kind === "subscription" && !acceptsEventStream(exchange.headers))
      return this.#reply(request, { errors: [eventStreamOnly()] });
    const unpaid = query.priced === null ? query.cost.points - paid : 0;
    if (unpaid > 0 && (await request.spend(caller, unpaid))) return this.#spentReply(request, caller);
    if (kind === "query") request.metered.price = query.cost.points;
    // A write that is cut short may still take effect. Its own time limits end in an answer that says what is known.
    request.endsWithCaller = kind !== "mutation";
    const limit =
      kind === "mutation" ? new TimeLimit(timeoutMs + MUTATION_MS, null) : new TimeLimit(timeoutMs, exchange.gone);
    const beyond = side === "either" && kind === "query" ? new AbortController() : null;
    const signal = beyond ? eitherOf(limit.signal, beyond.signal) : limit.signal;
    const callFor = this.#callsOf(question, query, { signal, beyond });
    try {
      if (kind === "subscription") return await this.#subscribe(question, query, callFor);
      const answer = await this.#run(question, query, { call: callFor(caller, request.figures), signal });
      if (answer) return answer;
    } catch (error) {
      if (limit.isOver) return this.#late(request);
      if (!beyond?.signal.aborted || limit.signal.aborted) throw error;
    } finally {
      limit.lift();
    }
    return await this.#forward(question, wholeDocument(query), 0);
  }

  /** @param beyond aborted once the query turns out to be upstream's to answer; null: the mirror answers it */
  #callsOf(
    { request: { exchange, id: requestId }, api, reading }: CallersQuery,
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
  async #forward({ request, caller, api, text }: CallersQuery, whole: WholeDocument, points: number): Promise<Reply> {
    if (this.#parts.ctx.db.isReadOnly) throw new ElsewhereError("The replica does not hold all that was asked for");
    if (points > 0 && (await request.spend(caller, points))) return this.#spentReply(request, caller);
    const { exchange, id: requestId } = request;
    const { headers, gone } = exchange;
    request.metered.source = "forwarded";
    const answer = await forwardWhole(this.#parts.ctx, caller, whole, { headers, body: text, api, gone, requestId });
    return forwardedReply(requestId, answer);
  }

  #freshness(confirmed: Partial<Confirmation>, isPart: boolean): Record<string, string> {
    const { clock, config } = this.#parts.ctx;
    const fresh = freshnessHeaders(confirmed, { now: clock.now(), staleAfterMs: staleAfterMs(config) });
    return isPart ? { ...fresh, ...PART } : fresh;
  }

  #spentReply(request: ApiRequest, { userId }: User): Reply {
    return reply(request, 200, quotaSpentText(userId), retryAt(request.figures?.reset, this.#parts.ctx.clock.now()));
  }

  /** Runs the operation here. Null: upstream has to answer it. */
  async #run(
    { request, key, before }: CallersQuery,
    query: Query,
    { call, signal }: { call: GraphqlCall; signal: AbortSignal },
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
    this.#missing.note(result.errors, request.id);
    Object.assign(request.replyHeaders, this.#freshness((await call.confirmation(confirmed)) ?? {}, call.isPart));
    const body = await sendable(resultText(result, call.extensions), pace);
    const { met, isPart } = call;
    if (met && plan && result.errors.length === 0 && plan.isKeepable) {
      const shown = [...call.shownRepositories];
      const make = () => ({ bytes: ownBytes(body), encoded: new Map(), points: cost.points, shown, isPart });
      this.#results.keep(key, make, { met, shown, before });
    }
    return this.#reply(request, result, body);
  }

  async #subscribe({ request, caller }: CallersQuery, query: Query, callFor: Subscriber["callFor"]): Promise<Reply> {
    const { id: requestId, figures, bucket } = request;
    const identify = () => request.user(authenticationMissing);
    const stream = await this.#streams.open(query, { caller, callFor, identify, requestId });
    if (typeof stream !== "function") return this.#reply(request, stream);
    const headers = { ...commonHeaders(requestId), ...quotaHeaders(figures, bucket), ...EVENT_STREAM };
    return { status: 200, headers, body: null, stream };
  }

  /** The reply to a query that ran out of time: none of its results are known. */
  #late(request: ApiRequest): Reply {
    const { ctx, timeoutMs } = this.#parts;
    const { id: requestId } = request;
    ctx.log.warn({ requestId, timeoutMs }, "A GraphQL query ran out of time");
    const guess = " This may be the result of a timeout, or it could be a bug of the mirror's.";
    return reply(request, 502, wentWrongText(requestId, ctx.clock.now(), guess));
  }

  /** The reply that shows a query's result. @throws a bug of ours, or Postgres' refusal */
  #reply(request: ApiRequest, result: Result, body: string | Buffer = resultText(result)): Reply {
    const bug = bugIn(result.errors);
    if (!bug) return reply(request, 200, body);
    const { ctx } = this.#parts;
    const isForOthers = ctx.db.isReadOnly ? isForElsewhere : isPostgresOutage;
    if (bug.originalError instanceof ApiFault || isForOthers(bug.originalError)) throw bug.originalError;
    if (isPostgresCancelled(bug.originalError)) return this.#late(request);
    const { id: requestId } = request;
    ctx.log.error({ err: bug.originalError ?? bug, requestId, path: bug.path?.join(".") }, "A GraphQL query failed");
    return reply(request, 502, wentWrongText(requestId, ctx.clock.now()));
  }
}

function authenticationMissing(): ApiFault {
  return new ApiFault(401, "This endpoint requires you to be authenticated.", {
    documentationUrl: `${GRAPHQL_DOCS}/guides/forming-calls-with-graphql#authenticating-with-graphql`,
  });
}

/** The request's body. What it costs is known only from it, so one that cannot be taken costs a point. */
async function textOf(request: ApiRequest, caller: User): Promise<string> {
  try {
    return await graphqlText(request.exchange, { until: request.bodies, sender: `user ${caller.userId}` });
  } catch (error) {
    // That there was no room is not the caller's fault.
    if (error instanceof HttpError && error.status < 500) await request.spend(caller, 1);
    throw error;
  }
}

function reply(
  { id, replyHeaders, figures, bucket }: ApiRequest,
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Reply {
  const media = { "Content-Type": JSON_TYPE, "X-GitHub-Media-Type": "github.v4; format=json" };
  const all = { ...replyHeaders, ...media, ...headers, ...quotaHeaders(figures, bucket) };
  return dialectReply(id, { status, headers: all, body });
}
