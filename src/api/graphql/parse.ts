import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
} from "graphql";
import { isObject, type Json, parseSent, TooManyValuesError } from "../../json.ts";
import type { Pace } from "../../work/pace.ts";
import { ApiFault } from "../dialect/fault.ts";
import { resourceLimit, typedError } from "./errors.ts";
import { argument, type Cost, costOf, MAX_NODES } from "./run/cost.ts";
import type { Documents } from "./run/documents.ts";
import type { VariableValues } from "./run/plan.ts";

/** How many values the variables may hold: each is coerced, and may be compared with each row of a list. */
const MAX_ITEMS = 1_000;

/** What the body of a request asks. */
interface GraphqlRequest {
  query: string;
  variables: Record<string, unknown>;
  operationName: string | undefined;
}

/** A request's operation, valid and priced. */
export interface Query {
  asked: GraphqlRequest;
  document: DocumentNode;
  operation: OperationDefinitionNode;
  variables: VariableValues;
  cost: Cost;
  /** The document reduced to `rateLimit(dryRun: true)`. Such a query is priced and not run. Null: the query is run. */
  priced: DocumentNode | null;
}

/** The query in a body, or what is wrong with it. @throws ApiFault 400 if the body is no JSON object */
export async function parseQuery(
  text: string,
  { schema, documents, pace }: { schema: GraphQLSchema; documents: Documents; pace: Pace },
): Promise<Query | readonly GraphQLError[]> {
  // Each step may hold the event loop for long, so others get a turn in between.
  const giveWay = async () => {
    if (pace.isOver()) await pace.turn();
  };
  await giveWay();
  const asked = readRequest(text);
  if (asked instanceof GraphQLError) return [asked];
  if (hasTooMany(asked.variables)) return [resourceLimit()];
  await giveWay();
  const document = await documents.read(asked.query);
  await giveWay();
  if (!("kind" in document)) return document;
  const operation = getOperationAST(document, asked.operationName);
  if (!operation) return [new GraphQLError(noOperation(asked.operationName))];
  const { errors, variableValues: variables } = getVariableValues(
    schema,
    operation.variableDefinitions ?? [],
    asked.variables,
    { hideSuggestions: true },
  );
  if (errors) return errors;
  await giveWay();
  const cost = costOf(schema, document, operation, variables.coerced);
  if (!cost) return [resourceLimit()];
  await giveWay();
  if (cost.nodeCount > MAX_NODES) return [tooManyNodes(cost)];
  return { asked, document, operation, variables, cost, priced: pricedOnly(document, operation, variables.coerced) };
}

/** Whether the variables hold too many values, however deep in lists and objects. */
function hasTooMany(variables: Record<string, unknown>): boolean {
  const open: unknown[] = [variables];
  for (let count = 0; open.length > 0; count++) {
    if (count + open.length > MAX_ITEMS) return true;
    const value = open.pop();
    if (typeof value === "object" && value !== null) for (const inner of Object.values(value)) open.push(inner);
  }
  return false;
}

/** Whether the part of a document that we know stays within the bounds, whatever the rest asks for. Pure. */
export function isWithinBounds(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  const cost = costOf(schema, document, operation, variables);
  return cost !== null && cost.nodeCount <= MAX_NODES;
}

/** Reads the body of a request. @throws ApiFault 400 if the body is no JSON object */
export function readRequest(text: string): GraphqlRequest | GraphQLError {
  let body: Json;
  try {
    body = parseSent(text);
  } catch (cause) {
    if (cause instanceof TooManyValuesError) return resourceLimit();
    throw new ApiFault(400, "Problems parsing JSON", { cause });
  }
  if (!isObject(body)) throw new ApiFault(400, "Body should be a JSON object");
  const { query, variables, operationName } = body;
  if (typeof query !== "string" || query.trim() === "")
    return new GraphQLError("A query attribute must be specified and must be a string.");
  if (variables != null && !isObject(variables)) return new GraphQLError("Variables must be a JSON object.");
  return {
    query,
    variables: variables ?? {},
    operationName: typeof operationName === "string" && operationName !== "" ? operationName : undefined,
  };
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
