/** `POST /graphql`: from the request's body to the answer, its price and its faults. Knows nothing of HTTP sockets. */
import { setTimeout as wait } from "node:timers/promises";
import {
  type DocumentNode,
  execute,
  type FieldNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "graphql";
import type { GraphqlFaults } from "../faults/faults.ts";
import { type Call, type Caller, TimedOutError, typedError } from "../graphql/call.ts";
import { type Cost, NODE_LIMIT, priceOperation } from "../graphql/cost.ts";
import { Documents, executionError, variableErrors } from "../graphql/documents.ts";
import { buildSimulatorSchema } from "../graphql/schema.ts";
import { callerOf, type Quota } from "../quota/quota.ts";
import type { View } from "../views/view.ts";
import { allows, wasGiven } from "../world/access.ts";
import { isJsonObject } from "../world/json.ts";
import { calledBy, hasScopes, isIntegration, type Token } from "../world/tokens.ts";
import type { World } from "../world/world.ts";

export interface GraphqlRequest {
  /** "bad": a credential that the service does not know. */
  readonly token: Token | "none" | "bad";
  readonly body: string;
  /** Addresses, form of node ids, and what the token may see. */
  readonly view: View;
}

export interface GraphqlAnswer {
  readonly status: number;
  /** To be sent as JSON. */
  readonly body: unknown;
  /** Points that were charged. */
  readonly points: number;
  readonly limited: "primary" | "secondary" | null;
  /** Only with a refusal for a secondary limit. */
  readonly retryAfterSeconds?: number;
}

const DOCS = "https://docs.github.com/graphql";

/**
 * GitHub docs: 60 seconds of processor time in 60 seconds. Here nodes are counted, so that it does not depend on the
 * machine.
 */
const WORK_MS = 60_000;
/** About 11 points were seen to go for a time-out, the query's own included. */
const TIMEOUT_POINTS = 10;

export class Graphql {
  /** What goes wrong on purpose; replaced as a whole, `{}` for nothing. */
  faults: GraphqlFaults = {};
  readonly #world: World;
  readonly #quota: Quota;
  readonly #schema: GraphQLSchema;
  readonly #documents: Documents;
  /** What each caller's queries of the present minute took, by the caller's key. */
  readonly #worked = new Map<string, { since: number; work: number }>();

  /** @param wholeSchema the service's, as SDL; null: the part of it that is modelled */
  constructor(world: World, quota: Quota, wholeSchema: string | null = null) {
    this.#world = world;
    this.#quota = quota;
    this.#schema = buildSimulatorSchema(wholeSchema);
    this.#documents = new Documents(this.#schema);
  }

  async answer(request: GraphqlRequest): Promise<GraphqlAnswer> {
    const { token } = request;
    if (token === "bad") return refusal(401, "Bad credentials", DOCS);
    if (token === "none") {
      return refusal(
        401,
        "This endpoint requires you to be authenticated.",
        `${DOCS}/guides/forming-calls-with-graphql#authenticating-with-graphql`,
      );
    }
    if (token.grant && token.grant.installation.suspendedAt !== null)
      return refusal(403, "This installation has been suspended", DOCS);
    const asked = readBody(request.body);
    if ("status" in asked) return asked;
    const spender = callerOf(token, "");
    if (this.#quota.state(spender, "graphql").remaining <= 0) return exhausted(spender.name);

    const lacking = this.faults.lacks?.find(({ field }) => new RegExp(`\\b${field}\\b`).test(asked.query));
    if (lacking) return failed([{ message: `Field '${lacking.field}' doesn't exist on type '${lacking.type}'` }]);
    const reading = this.#documents.read(asked.query);
    if ("errors" in reading) return failed(reading.errors);
    const operation = getOperationAST(reading.document, asked.operationName);
    if (!operation) return failed([{ message: noOperation(asked.operationName) }]);
    const coerced = getVariableValues(this.#schema, operation.variableDefinitions ?? [], asked.variables, {
      hideSuggestions: true,
    });
    if (coerced.errors) return failed(variableErrors(this.#schema, operation, asked.variables));
    const scopeless = withoutScope(this.#schema, reading.document, token);
    if (scopeless) return failed([executionError(scopeless)]);
    const { chargeCounts } = this.#quota;
    const variables = coerced.variableValues.coerced;
    const cost = priceOperation(this.#schema, reading.document, operation, variables, { chargeCounts });
    if (cost.nodeCount > NODE_LIMIT) return failed([executionError(tooManyNodes(cost))]);

    const isMutation = operation.operation === "mutation";
    const secondary = this.#quota.secondary(spender, {
      api: "graphql",
      points: isMutation ? 5 : 1,
      createsContent: isMutation && createsContent(operation),
    });
    if (secondary)
      return secondarilyRefused(secondary.limit === "content", this.#quota.status, secondary.retryAfterSeconds);

    const worked = this.#workOf(spender.key);
    if (worked.work > (this.faults.workPerMinute ?? Number.POSITIVE_INFINITY)) {
      const waitMs = worked.since + WORK_MS - this.#world.clock.now();
      return secondarilyRefused(false, this.#quota.status, Math.ceil(waitMs / 1_000));
    }

    const dryRun = dryRunOf(reading.document, operation, variables);
    const points = dryRun ? 0 : cost.points;
    if (points > 0 && !this.#quota.charge(spender, "graphql", points)) return exhausted(spender.name);
    const state = this.#quota.state(spender, "graphql");
    const call: Call = {
      world: this.#world,
      caller: callerFor(this.#world, token, request.view),
      viewer: this.#world.user(token.userId),
      faults: this.faults,
      view: request.view,
      cost,
      points: { limit: state.limit, used: state.used, remaining: state.remaining, resetAt: state.reset },
      work: 0,
      nested: new Map(),
      oldIds: new Map(),
    };
    const result = await execute({
      schema: this.#schema,
      document: dryRun ?? reading.document,
      operationName: asked.operationName ?? null,
      variableValues: asked.variables,
      contextValue: call,
      hideSuggestions: true,
    });
    worked.work += call.work;
    const errors = result.errors ?? [];
    if (errors.some((error) => error.originalError instanceof TimedOutError)) {
      if (this.faults.timeoutMs !== undefined) await wait(this.faults.timeoutMs);
      const extra = this.faults.timeoutPoints ?? TIMEOUT_POINTS;
      this.#quota.charge(spender, "graphql", extra);
      return timedOut(this.#world, points + extra);
    }
    const bug = errors.find((error) => isBug(error));
    if (bug) throw new Error(`The GraphQL endpoint failed: ${bug.message}`, { cause: bug.originalError });
    const data = result.data === undefined ? {} : { data: result.data };
    const warnings = [...call.oldIds].map(([legacy_global_id, next_global_id]) => ({
      type: "DEPRECATION",
      message: `The id ${legacy_global_id} is deprecated. Update your cache to use the next_global_id from the data payload.`,
      data: { legacy_global_id, next_global_id },
      link: "https://docs.github.com",
    }));
    const body = {
      ...data,
      ...(errors.length > 0 ? { errors: errors.map(executionError) } : {}),
      ...(warnings.length > 0 ? { extensions: { warnings } } : {}),
    };
    return { status: 200, body, points, limited: null };
  }

  #workOf(key: string): { since: number; work: number } {
    const now = this.#world.clock.now();
    const known = this.#worked.get(key);
    if (known && now < known.since + WORK_MS) return known;
    const begun = { since: now, work: 0 };
    this.#worked.set(key, begun);
    return begun;
  }
}

/** Errors of ours have a type or come from graphql itself; anything else thrown in a resolver is a bug. */
function isBug(error: GraphQLError): boolean {
  const { originalError } = error;
  return originalError !== undefined && originalError !== null && originalError.name !== "GraphQLError";
}

function callerFor(world: World, token: Token, view: View): Caller {
  const isApp = isIntegration(token);
  return {
    token,
    kind: calledBy(token),
    isApp,
    // An App's permissions decide what it may do there, not a role.
    roleOf: (repository) => (isApp && wasGiven(token, repository) ? "admin" : view.roleOf(repository)),
    wasGiven: (repository) => wasGiven(token, repository),
    may: (repository, needed) => allows(world, token, repository, needed),
  };
}

/** A document that shows `email` of a User takes a scope: without it, it is refused whole. */
function withoutScope(schema: GraphQLSchema, document: DocumentNode, token: Token): GraphQLError | null {
  const scopes = ["user", "user:email", "read:user"];
  if (!hasScopes(token) || token.scopes.some((scope) => scopes.includes(scope))) return null;
  const types = new TypeInfo(schema);
  let isAsked = false;
  const Field = ({ name }: FieldNode) => {
    if (name.value === "email" && types.getParentType()?.name === "User") isAsked = true;
  };
  visit(document, visitWithTypeInfo(types, { Field }));
  if (!isAsked) return null;
  const message = `Your token has not been granted the required scopes to execute this query. The 'email' field requires one of the following scopes: ['user:email', 'read:user'], but your token has only been granted the: [${token.scopes.map((scope) => `'${scope}'`).join(", ")}] scopes. Please modify your token's scopes at: https://github.com/settings/tokens.`;
  return typedError("INSUFFICIENT_SCOPES", message);
}

interface Asked {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName: string | undefined;
}

function readBody(text: string): Asked | GraphqlAnswer {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return refusal(400, "Problems parsing JSON", DOCS);
    throw error;
  }
  if (!isJsonObject(body)) return refusal(400, "Body should be a JSON object", DOCS);
  const { query, variables, operationName } = body;
  if (typeof query !== "string" || query === "")
    return failed([{ message: "A query attribute must be specified and must be a string." }]);
  if (variables != null && !isJsonObject(variables)) return failed([{ message: "Variables must be a JSON object." }]);
  return {
    query,
    variables: variables ?? {},
    operationName: typeof operationName === "string" && operationName !== "" ? operationName : undefined,
  };
}

function noOperation(name: string | undefined): string {
  return name === undefined ? "An operation name is required" : `No operation named "${name}"`;
}

function tooManyNodes(cost: Cost): GraphQLError {
  const number = (value: number) => value.toLocaleString("en-US");
  const message = `This query requests up to ${number(cost.nodeCount)} possible nodes which exceeds the maximum limit of ${number(NODE_LIMIT)}.`;
  return typedError("MAX_NODE_LIMIT_EXCEEDED", message);
}

function createsContent(operation: OperationDefinitionNode): boolean {
  return operation.selectionSet.selections.some(
    (selection) => selection.kind === Kind.FIELD && /^(create|add)/.test(selection.name.value),
  );
}

/** With `rateLimit(dryRun: true)` the query is priced and not run: what is left to execute is that field. */
function dryRunOf(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): DocumentNode | undefined {
  const isDry = (selection: SelectionNode): boolean => {
    if (selection.kind !== Kind.FIELD || selection.name.value !== "rateLimit") return false;
    const value = selection.arguments?.find((argument) => argument.name.value === "dryRun")?.value;
    if (value?.kind === Kind.VARIABLE) return variables[value.name.value] === true;
    return value?.kind === Kind.BOOLEAN && value.value;
  };
  const kept = operation.selectionSet.selections.filter(isDry);
  if (operation.operation !== "query" || kept.length === 0) return undefined;
  const reduced = { ...operation, selectionSet: { ...operation.selectionSet, selections: kept } };
  return {
    ...document,
    definitions: document.definitions.map((definition) => (definition === operation ? reduced : definition)),
  };
}

// --- Answers other than data

function refusal(status: number, message: string, documentationUrl: string): GraphqlAnswer {
  return {
    status,
    body: { message, documentation_url: documentationUrl, status: String(status) },
    points: 0,
    limited: null,
  };
}

function failed(errors: readonly object[]): GraphqlAnswer {
  return { status: 200, body: { errors }, points: 0, limited: null };
}

function exhausted(name: string): GraphqlAnswer {
  const error = {
    type: "RATE_LIMIT",
    code: "graphql_rate_limit",
    message: `API rate limit already exceeded for ${name}.`,
  };
  return { status: 200, body: { errors: [error] }, points: 0, limited: "primary" };
}

function secondarilyRefused(content: boolean, status: number, retryAfterSeconds: number): GraphqlAnswer {
  const message = content
    ? "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later."
    : "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
  const documentationUrl =
    "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits";
  return { ...refusal(status, message, documentationUrl), limited: "secondary", retryAfterSeconds };
}

function timedOut(world: World, points: number): GraphqlAnswer {
  const at = new Date(world.clock.now()).toISOString().replace(/\.\d+Z$/, "+00:00");
  const reference = `${world.random.hex(4)}:${world.random.hex(6)}:${world.random.hex(7)}`.toUpperCase();
  const message = `Something went wrong while executing your query on ${at}. This may be the result of a timeout, or it could be a GitHub bug. Please include \`${reference}\` when reporting this issue.`;
  return { status: 502, body: { data: null, errors: [{ message }] }, points, limited: null };
}
