import type { FastifyReply, FastifyRequest } from "fastify";
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  Kind,
  mapSourceToResponseEvent,
  type OperationDefinitionNode,
  validateSubscriptionArgs,
} from "graphql";
import { isPostgresOutage } from "../../../../db/outage.ts";
import { PEOPLE } from "../../../../db/revisions.ts";
import { findConfirmation } from "../../../mirror/read/repositories.ts";
import { Reading } from "../../../mirror/unchanged/reading.ts";
import type { StandingsReader } from "../../../mirror/unchanged/standings.ts";
import type { ApiContext } from "../../call.ts";
import { type Callers, sightOf } from "../../callers/caller.ts";
import type { CallerQuota, QuotaFigures } from "../../callers/quota.ts";
import { encodingOf } from "../../compression.ts";
import { apiAddress } from "../../dialect/addresses.ts";
import { ApiFault, faultBody } from "../../dialect/fault.ts";
import { freshnessHeaders } from "../../dialect/freshness.ts";
import { commonHeaders, jsonType, quotaHeaders, send } from "../../dialect/reply.ts";
import { ownBytes } from "../../own-bytes.ts";
import { encoded } from "../../page.ts";
import { GraphqlCall } from "../call.ts";
import { shownError, typedError } from "../errors.ts";
import { apiSchema } from "../schema.ts";
import type { ChangeStreams } from "../subscribe/change-streams.ts";
import { acceptsEventStream, streamResults } from "../subscribe/subscriptions.ts";
import { argument, type Cost, costOf, MAX_NODES } from "./cost.ts";
import { Documents } from "./documents.ts";
import { type Executed, executePlan } from "./execution.ts";
import { answerKey, confirmationOfKept, isKeepable, openAnswers } from "./kept-answers.ts";
import { Memory } from "./memory.ts";
import { Plans } from "./plan.ts";

const DOCS = "https://docs.github.com/graphql";

/** Longer than a write may stand in line, be sent, and wait for upstream's replicas. */
const MUTATION_MS = 120_000;

export interface GraphqlParts {
  ctx: ApiContext;
  callers: Callers;
  quota: CallerQuota;
  /** How long a query may take. */
  timeoutMs: number;
  changes: ChangeStreams;
  standings: StandingsReader;
}

/** Answers `POST /graphql`. The request's body is its text. */
export function openGraphql({ ctx, callers, quota, timeoutMs, changes, standings }: GraphqlParts) {
  const schema = apiSchema();
  const documents = new Documents(schema);
  const plans = new Plans(schema);
  // Half for whole answers, and half for what issues are written as.
  const keptBytes = ctx.config.pageCacheBytes / 2;
  const memory = new Memory(standings, keptBytes);
  const answers = openAnswers(keptBytes);

  return async (request: FastifyRequest, reply: FastifyReply, requestId: string): Promise<FastifyReply> => {
    let figures: QuotaFigures | null = null;
    let deadline: AbortSignal | undefined;
    let freshness: Record<string, string> = {};
    const respond = (status: number, body: string | Buffer, headers: Record<string, string> = {}) =>
      send(
        reply,
        status,
        body,
        {
          "Content-Type": jsonType,
          "X-GitHub-Media-Type": "github.v4; format=json",
          ...freshness,
          ...headers,
          ...quotaHeaders(figures, "graphql"),
        },
        requestId,
      );
    const answer = ({ data, errors }: Written) => {
      const bug = errors.find(isBug);
      if (!bug) return respond(200, resultText(data, errors));
      if (isPostgresOutage(bug.originalError)) throw bug.originalError;
      ctx.log.error({ err: bug.originalError ?? bug, requestId, path: bug.path?.join(".") }, "A GraphQL query failed");
      return respond(502, wentWrong(requestId, ctx.clock.now()));
    };
    try {
      const { authorization } = request.headers;
      if (authorization === undefined) throw notAuthenticated();
      const caller = await callers.identify({ authorization, address: request.ip });
      if (caller.kind === "anonymous") throw notAuthenticated();
      const api = apiAddress(ctx.config, {
        protocol: request.protocol,
        host: request.host,
        isEnterprise: request.url.startsWith("/api/"),
      });
      figures = await quota.figures(caller, "graphql");
      const body = typeof request.body === "string" ? request.body : "";
      const key = answerKey(body, { api, caller });
      const reading = new Reading(standings);
      const kept = await answers.get(key, reading);
      const before = reading.soFar();
      const confirmedAt = kept && confirmationOfKept(kept, before);
      if (kept && confirmedAt !== undefined) {
        const spending = await quota.spend(caller, "graphql", kept.points);
        figures = spending.figures;
        if (spending.isSpent) return respond(200, quotaSpent(caller.userId));
        freshness = freshnessHeaders({ confirmedAt }, { now: ctx.clock.now(), staleAfterMs: ctx.config.staleAfterMs });
        const encoding = encodingOf(kept.bytes, request.headers["accept-encoding"]);
        if (encoding === null || request.headers["x-no-compression"] !== undefined) return respond(200, kept.bytes);
        return respond(200, await encoded(kept, encoding), { "Content-Encoding": encoding });
      }
      const asked = readRequest(body);
      if (asked instanceof GraphQLError) return respond(200, failure([asked]));

      const document = documents.read(asked.query);
      if (!("kind" in document)) return respond(200, failure(document));
      const operation = getOperationAST(document, asked.operationName);
      if (!operation) return respond(200, failure([new GraphQLError(noOperation(asked.operationName))]));
      const coerced = getVariableValues(schema, operation.variableDefinitions ?? [], asked.variables, {
        hideSuggestions: true,
      });
      if (coerced.errors) return respond(200, failure(coerced.errors));
      const variables = coerced.variableValues.coerced;
      const cost = costOf(schema, document, operation, variables);
      if (cost.nodeCount > MAX_NODES) return respond(200, failure([tooManyNodes(cost)]));

      if (operation.operation === "subscription" && !acceptsEventStream(request))
        return respond(
          200,
          failure([
            new GraphQLError("Subscriptions are served as server-sent events: send `Accept: text/event-stream`."),
          ]),
        );

      const priced = pricedOnly(document, operation, variables);
      if (!priced) {
        const spending = await quota.spend(caller, "graphql", cost.points);
        figures = spending.figures;
        if (spending.isSpent) return respond(200, quotaSpent(caller.userId));
      }
      const newCall = () =>
        new GraphqlCall({
          ctx,
          caller,
          sight: sightOf(caller),
          api,
          cost,
          figures,
          requestId,
          changes,
          memory: operation.operation === "query" ? memory : null,
        });
      if (operation.operation === "subscription") {
        const events = await openEvents({ schema, document, asked, newCall });
        if (!(Symbol.asyncIterator in events)) return answer(written(events));
        const failed = (error: unknown) => {
          ctx.log.error({ err: error, requestId }, "A subscription failed");
          return wentWrong(requestId, ctx.clock.now());
        };
        await streamResults(reply, events, {
          headers: { ...commonHeaders(requestId), ...quotaHeaders(figures, "graphql") },
          format: (result) => {
            const bug = result.errors?.find(isBug);
            if (bug) return failed(bug.originalError ?? bug);
            const { data, errors } = written(result);
            return resultText(data, errors);
          },
          onFailure: failed,
        });
        return reply;
      }
      // A write that is broken off here may have taken effect; its own limits end in an answer that says what is known.
      deadline = AbortSignal.timeout(operation.operation === "mutation" ? timeoutMs + MUTATION_MS : timeoutMs);
      const call = newCall();
      const plan = priced ? null : plans.of(document.definitions, operation, coerced.variableValues);
      const executed = plan
        ? await executePlan({ plan, variables: coerced.variableValues, context: call, signal: deadline })
        : written(
            await execute({
              schema,
              document: priced ?? document,
              variableValues: asked.variables,
              operationName: asked.operationName ?? null,
              contextValue: call,
              hideSuggestions: true,
              abortSignal: deadline,
            }),
          );
      freshness = await freshnessOf(ctx, call);
      const { met, shownRepositories } = call;
      if (met && plan && executed.errors.length === 0 && isKeepable(document, operation)) {
        const text = resultText(executed.data, executed.errors);
        const shown = [...shownRepositories];
        const make = () => ({ bytes: ownBytes(text), encoded: new Map(), points: cost.points, shown });
        answers.keep(key, make, { shown: [...new Set([PEOPLE, ...met, ...shown])], before });
        return respond(200, text);
      }
      return answer(executed);
    } catch (error) {
      if (deadline?.aborted) {
        ctx.log.warn({ requestId, timeoutMs }, "A GraphQL query ran out of time");
        return respond(
          502,
          wentWrong(
            requestId,
            ctx.clock.now(),
            " This may be the result of a timeout, or it could be a bug of the mirror's.",
          ),
        );
      }
      if (!(error instanceof ApiFault)) throw error;
      return respond(error.status, faultBody(error, DOCS));
    }
  };
}

async function freshnessOf(ctx: ApiContext, call: GraphqlCall): Promise<Record<string, string>> {
  if (call.shownRepositories.size === 0) return {};
  return freshnessHeaders(await confirmationOf(ctx, call), {
    now: ctx.clock.now(),
    staleAfterMs: ctx.config.staleAfterMs,
  });
}

/** When upstream confirmed the repository of which that is longest ago. */
async function confirmationOf(
  ctx: ApiContext,
  { shownRepositories, confirmations }: GraphqlCall,
): Promise<{ confirmedAt?: Date | null }> {
  const known = [...shownRepositories].map((id) => confirmations.get(id));
  if (!known.includes(undefined)) {
    const times = known.filter((one) => one != null).map((one) => one.getTime());
    return { confirmedAt: known.includes(null) ? null : new Date(Math.min(...times)) };
  }
  const confirmedAt = await findConfirmation(ctx.db, [...shownRepositories]);
  return confirmedAt === undefined ? {} : { confirmedAt };
}

/** The events of a subscription, or why there are none. What an event shows is loaded anew for each. */
async function openEvents({
  schema,
  document,
  asked,
  newCall,
}: {
  schema: GraphQLSchema;
  document: DocumentNode;
  asked: Asked;
  newCall: () => GraphqlCall;
}): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
  const prepared = validateSubscriptionArgs({
    schema,
    document,
    variableValues: asked.variables,
    operationName: asked.operationName ?? null,
    contextValue: newCall(),
    hideSuggestions: true,
  });
  if (!("schema" in prepared)) return { errors: prepared };
  const source = await createSourceEventStream(prepared);
  if (!(Symbol.asyncIterator in source)) return source;
  return mapSourceToResponseEvent(prepared, source, (event) =>
    executeSubscriptionEvent({ ...event, operation: prepared.operation, contextValue: newCall() }),
  );
}

/** Without data where nothing was executed. */
type Written = Partial<Executed> & Pick<Executed, "errors">;

function written({ data, errors = [] }: ExecutionResult): Written {
  return { ...(data === undefined ? {} : { data: JSON.stringify(data) }), errors };
}

function resultText(data: string | undefined, errors: readonly GraphQLError[]): string {
  const shown = errors.length > 0 ? `"errors":${JSON.stringify(errors.map(shownError))}` : "";
  return data === undefined ? `{${shown}}` : `{"data":${data}${shown && `,${shown}`}}`;
}

interface Asked {
  query: string;
  variables: Record<string, unknown>;
  operationName: string | undefined;
}

/** @throws ApiFault 400 for what is no JSON object */
function readRequest(text: string): Asked | GraphQLError {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new ApiFault(400, "Problems parsing JSON", { cause });
  }
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new ApiFault(400, "Body should be a JSON object");
  const { query, variables, operationName } = body as Record<string, unknown>;
  if (typeof query !== "string" || query.trim() === "")
    return new GraphQLError("A query attribute must be specified and must be a string.");
  if (variables != null && (typeof variables !== "object" || Array.isArray(variables)))
    return new GraphQLError("Variables must be a JSON object.");
  return {
    query,
    variables: (variables ?? {}) as Record<string, unknown>,
    operationName: typeof operationName === "string" && operationName !== "" ? operationName : undefined,
  };
}

function notAuthenticated(): ApiFault {
  return new ApiFault(401, "This endpoint requires you to be authenticated.", {
    documentationUrl: `${DOCS}/guides/forming-calls-with-graphql#authenticating-with-graphql`,
  });
}

function noOperation(name: string | undefined): string {
  return name === undefined ? "An operation name is required" : `No operation named "${name}"`;
}

function tooManyNodes({ nodeCount }: Cost): GraphQLError {
  const shown = (value: number) => value.toLocaleString("en-US");
  return typedError(
    "MAX_NODE_LIMIT_EXCEEDED",
    `This query requests up to ${shown(nodeCount)} possible nodes which exceeds the maximum limit of ${shown(MAX_NODES)}.`,
  );
}

/** With `rateLimit(dryRun: true)` a query is priced and not run: only that field is left of it. */
function pricedOnly(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): DocumentNode | null {
  if (operation.operation !== "query") return null;
  const selections = operation.selectionSet.selections.filter(
    (one) => one.kind === Kind.FIELD && one.name.value === "rateLimit" && argument(one, "dryRun", variables) === true,
  );
  if (selections.length === 0) return null;
  const reduced = { ...operation, selectionSet: { ...operation.selectionSet, selections } };
  return { ...document, definitions: document.definitions.map((one) => (one === operation ? reduced : one)) };
}

/** Ours are GraphQL errors from the start; what a resolver threw otherwise is nothing that a caller should read. */
function isBug({ originalError }: GraphQLError): boolean {
  return originalError != null && originalError.name !== "GraphQLError";
}

function failure(errors: readonly GraphQLError[]): string {
  return JSON.stringify({ errors: errors.map(shownError) });
}

function quotaSpent(userId: number): string {
  return JSON.stringify({
    errors: [
      {
        // The service sends this form and another (`RATE_LIMIT`); octokit's plugin for limits knows this one.
        type: "RATE_LIMITED",
        message: `API rate limit exceeded for user ID ${userId}.`,
      },
    ],
  });
}

function wentWrong(requestId: string, now: Date, guess = ""): string {
  const at = now.toISOString().replace(/\.\d+Z$/, "+00:00");
  return JSON.stringify({
    data: null,
    errors: [
      {
        message: `Something went wrong while executing your query on ${at}.${guess} Please include \`${requestId}\` when reporting this issue.`,
      },
    ],
  });
}
