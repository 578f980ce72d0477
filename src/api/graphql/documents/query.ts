import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  getVariableValues,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";
import { type Fields, isObject } from "../../../json.ts";
import { searchesOf } from "../../../mirror/search/query.ts";
import type { Pace } from "../../../work/pace.ts";
import { ApiFault } from "../../dialect/fault.ts";
import { objectIn } from "../../dialect/sent.ts";
import { resourceLimit, typedError } from "../run/errors.ts";
import type { VariableValues } from "../run/plan.ts";
import { ALL_IS_HELD } from "../run/plans.ts";
import type { Documents, Reduced } from "./documents.ts";
import { variableErrors } from "./mistakes.ts";

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
  /** The fields of the document that are not held. */
  unheld: Reduced["unheld"];
}

interface QueryParts {
  schema: GraphQLSchema;
  documents: Documents;
  pace: Pace;
  caller: string;
}

/** The query in a body, or what is wrong with it. @throws ApiFault 400 if the body is no JSON object */
export async function parseQuery(text: string, parts: QueryParts): Promise<Query | readonly GraphQLError[]> {
  await giveWay(parts.pace);
  const asked = readRequest(text);
  if (asked instanceof GraphQLError) return [asked];
  if (hasTooMany(asked.variables)) return [resourceLimit()];
  await giveWay(parts.pace);
  const document = await parts.documents.read(asked.query, parts.caller);
  await giveWay(parts.pace);
  return "kind" in document ? await queryOf(asked, { document, unheld: ALL_IS_HELD }, parts) : document;
}

/**
 * What can be answered of a query that our schema refuses and the service's may not. Null: nothing.
 * @param text as for `parseQuery`, which has refused it
 * @param help what a caller can do who wants all of it
 */
export async function parseReduced(
  text: string,
  { help, ...parts }: QueryParts & { help: string },
): Promise<Query | null> {
  const asked = readRequest(text);
  if (asked instanceof GraphQLError) return null;
  const found = await parts.documents.reduced(asked.query, { caller: parts.caller, help });
  await giveWay(parts.pace);
  const query = found && (await queryOf(asked, found, parts));
  return query && "cost" in query && query.operation.operation === "query" ? query : null;
}

/** Each step may hold the event loop for long, so others get a turn in between. */
async function giveWay(pace: Pace): Promise<void> {
  if (pace.isOver()) await pace.turn();
}

/** The query of a valid document, or what is wrong with its operation and variables. */
async function queryOf(
  asked: GraphqlRequest,
  { document, unheld }: Reduced,
  { schema, pace }: QueryParts,
): Promise<Query | readonly GraphQLError[]> {
  const operation = getOperationAST(document, asked.operationName);
  if (!operation) return [new GraphQLError(noOperation(asked.operationName))];
  const { errors, variableValues: variables } = getVariableValues(
    schema,
    operation.variableDefinitions ?? [],
    asked.variables,
    { hideSuggestions: true },
  );
  if (errors) {
    const own = variableErrors(schema, operation.variableDefinitions ?? [], asked.variables);
    // A default that the document itself has wrong is no caller's value.
    return own.length > 0 ? own : errors;
  }
  await giveWay(pace);
  const cost = costOf(schema, document, operation, variables.coerced);
  if (!cost) return [resourceLimit()];
  await giveWay(pace);
  if (cost.nodeCount > MAX_NODES) return [tooManyNodes(cost)];
  const priced = pricedOnly(document, operation, variables.coerced);
  return { asked, document, operation, variables, cost, priced, unheld };
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

/** Whether the known part of a document stays within the bounds. The rest may ask for anything. Pure. */
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
  let body: Fields;
  try {
    body = objectIn(text);
  } catch (error) {
    if (error instanceof ApiFault && error.status === 413) return resourceLimit();
    throw error;
  }
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

const MAX_NODES = 500_000;
export const MAX_PAGE = 100;

/** The most searches of one operation: each reads an index of all texts. `gh` asks for three at once. */
const MAX_SEARCHES = 10;
/** The most filters by text: each looks into all rows of a list. */
const MAX_TEXT_FILTERS = 20;
/** How many searches and filters together cost nothing extra. A filter counts once for each parent, a long search several times. */
const FREE_SEARCHES = 5;

/** The arguments of each field that filter by a part of a text. No index serves them. */
const TEXT_FILTERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["issues", ["filterBy", "mentioned"]],
  ["labels", ["query"]],
  ["milestones", ["query"]],
  ["assignableUsers", ["query"]],
]);

export interface Cost {
  points: number;
  nodeCount: number;
}

type Variables = Readonly<Record<string, unknown>>;

/**
 * The cost of an operation. GitHub docs: add up the requests that each connection needs, if every parent returns as
 * many nodes as `first` or `last` asks for. Divide by 100, round, and charge at least 1. The same walk adds up the
 * nodes and finds the searches. Null: it asks for more than it may. Pure.
 * @param variables coerced, with defaults
 */
function costOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): Cost | null {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const root = schema.getRootType(operation.operation);
  let requests = 0;
  let nodeCount = 0;
  let [searches, textFilters, searched] = [0, 0, 0];
  const walk: Walk = { schema, fragments, variables, known: new Map() };
  const visit = (type: GraphQLCompositeType, sets: SelectionSetNode[], parents: number): void => {
    for (const { owner, fields } of mergedFields(walk, type, sets)) {
      const [field] = fields;
      const definition =
        field && (isObjectType(owner) || isInterfaceType(owner)) ? owner.getFields()[field.name.value] : undefined;
      const inner = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      const target = definition && getNamedType(definition.type);
      if (!field || !target || !isCompositeType(target)) continue;
      let count = parents;
      const isSearch = owner === root && field.name.value === "search";
      const isFiltered = filtersTexts(field, variables);
      if (isSearch) searches += 1;
      if (isFiltered) textFilters += 1;
      if (isSearch) searched += parents * searchesOf(String(argument(field, "query", variables) ?? ""));
      else if (isFiltered) searched += parents;
      if (target.name.endsWith("Connection")) {
        const size = askedNodes(field, variables);
        requests += parents;
        nodeCount += parents * size;
        count = parents * size;
      } else if (field.name.value === "nodes" && owner === root) {
        const ids = argument(field, "ids", variables);
        count = Array.isArray(ids) ? ids.length : 1;
      }
      visit(target, inner, count);
    }
  };
  if (root) visit(root, [operation.selectionSet], 1);
  if (searches > MAX_SEARCHES || textFilters > MAX_TEXT_FILTERS) return null;
  const points = Math.max(1, Math.round(requests / 100)) + Math.max(0, searched - FREE_SEARCHES);
  return { points, nodeCount };
}

function filtersTexts(field: FieldNode, variables: Variables): boolean {
  const [name = "", inner] = TEXT_FILTERS.get(field.name.value) ?? [];
  const given = field.arguments?.find((one) => one.name.value === name)?.value;
  if (inner === undefined) return isGiven(given, variables);
  if (given?.kind === Kind.OBJECT)
    return isGiven(given.fields.find((one) => one.name.value === inner)?.value, variables);
  const value = literal(given, variables);
  return typeof value === "object" && value !== null && inner in value;
}

function isGiven(node: ValueNode | undefined, variables: Variables): boolean {
  return (
    node !== undefined && node.kind !== Kind.NULL && !(node.kind === Kind.VARIABLE && literal(node, variables) == null)
  );
}

interface Walk {
  schema: GraphQLSchema;
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  variables: Variables;
  /** The fields that a selection selects of each type. A fragment's selection is met at each of its places. */
  known: Map<SelectionSetNode, Map<GraphQLCompositeType, readonly MergedField[]>>;
}

interface MergedField {
  owner: GraphQLCompositeType;
  fields: FieldNode[];
}

/** A field that is selected twice under one name and type, directly and by a fragment, is one field. */
function mergedFields(walk: Walk, type: GraphQLCompositeType, sets: SelectionSetNode[]): readonly MergedField[] {
  const { schema, fragments, variables } = walk;
  const [only] = sets;
  const known = sets.length === 1 && only ? walk.known.getOrInsertComputed(only, () => new Map()) : null;
  const before = known?.get(type);
  if (before) return before;
  const merged = new Map<string, MergedField>();
  const spread = new Set<string>();
  const collect = (owner: GraphQLCompositeType, set: SelectionSetNode): void => {
    for (const selection of set.selections) {
      if (isLeftOut(selection, variables)) continue;
      if (selection.kind === Kind.FIELD) {
        const name = `${owner.name}.${selection.alias?.value ?? selection.name.value}`;
        const known = merged.get(name);
        if (known) known.fields.push(selection);
        else merged.set(name, { owner, fields: [selection] });
        continue;
      }
      const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
      if (!fragment) continue;
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const name = `${owner.name}.${selection.name.value}`;
        if (spread.has(name)) continue;
        spread.add(name);
      }
      const condition = fragment.typeCondition ? schema.getType(fragment.typeCondition.name.value) : owner;
      if (isCompositeType(condition)) collect(condition, fragment.selectionSet);
    }
  };
  for (const set of sets) collect(type, set);
  const fields = [...merged.values()];
  known?.set(type, fields);
  return fields;
}

function isLeftOut({ directives }: Pick<FieldNode, "directives">, variables: Variables): boolean {
  return (directives ?? []).some(({ name, arguments: args }) => {
    const condition = literal(args?.find((one) => one.name.value === "if")?.value, variables);
    return (name.value === "skip" && condition === true) || (name.value === "include" && condition === false);
  });
}

function askedNodes(field: FieldNode, variables: Variables): number {
  for (const name of ["first", "last"]) {
    const value = argument(field, name, variables);
    if (typeof value === "number") return Math.min(Math.max(value, 0), MAX_PAGE);
  }
  return 0;
}

function argument(field: FieldNode, name: string, variables: Variables): unknown {
  return literal(field.arguments?.find((one) => one.name.value === name)?.value, variables);
}

function literal(node: ValueNode | undefined, variables: Variables): unknown {
  switch (node?.kind) {
    case Kind.VARIABLE:
      return variables[node.name.value];
    case Kind.INT:
      return Number(node.value);
    case Kind.BOOLEAN:
    case Kind.STRING:
      return node.value;
    case Kind.LIST:
      return node.values;
    default:
      return undefined;
  }
}
