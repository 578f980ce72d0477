import { createHash } from "node:crypto";
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
} from "graphql";
import { LRUCache } from "lru-cache";
import { isObject, type Json, parseSent, TooManyValuesError } from "../../json.ts";
import { mostEntries } from "../../work/bounded.ts";
import type { Pace } from "../../work/pace.ts";
import { Threads, ThreadsBusyError, TooMuchWorkError } from "../../work/threads.ts";
import { ApiFault } from "../dialect/fault.ts";
import { resourceLimit, typedError } from "./errors.ts";
import { argument, type Cost, costOf, MAX_NODES } from "./run/cost.ts";
import type { VariableValues } from "./run/plan.ts";
import { parsed, readDocument } from "./run/validation.ts";

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

/**
 * The characters of all remembered documents together. A parsed document takes 100 to 400 times as much memory as its
 * text. The longest pause for collecting garbage grows with what stays in memory.
 */
const MAX_REMEMBERED_CHARACTERS = 256 * 1024;
/** The longest document that is remembered: a few longer ones would push out all others. */
const LONGEST_REMEMBERED = MAX_REMEMBERED_CHARACTERS / 8;
/** The longest document that is validated on this thread, in up to 10 ms. One of 20,000 tokens may take a second. */
const MAX_CHARACTERS_AT_ONCE = 4_000;

/** A mistake in a document, as the thread reports it. */
export interface Fault {
  message: string;
  locations: GraphQLError["locations"];
  extensions: GraphQLError["extensions"];
}

type Threaded = Pick<Threads<string, Fault[]>, "run">;
type ParsedDocument = DocumentNode | readonly GraphQLError[];

/** The thread that validates long documents of the schema that is served. */
export function openValidation(): Threads<string, Fault[]> {
  return new Threads(new URL("./run/validation-thread.ts", import.meta.url), {
    size: 1,
    mostWaiting: 50,
    budgetMs: 2_000,
  });
}

/** Reads documents, and remembers those that are valid. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #validation: Threaded | null;
  readonly #known = new LRUCache<string, DocumentNode>({
    maxSize: MAX_REMEMBERED_CHARACTERS,
    maxEntrySize: LONGEST_REMEMBERED,
    sizeCalculation: (_, text) => text.length,
  });
  /** The texts that were too much to validate, by their digests. */
  readonly #tooMuch = new LRUCache<string, true>(mostEntries(10_000));
  /** The documents that are being read: many callers may send the same text at once. */
  readonly #underWay = new Map<string, Promise<ParsedDocument>>();

  /** @param validation the threads that validate long documents; null: this thread validates them */
  constructor(schema: GraphQLSchema, validation: Threaded | null = null) {
    this.#schema = schema;
    this.#validation = validation;
  }

  /** The document, or what is wrong with it. */
  async read(text: string): Promise<ParsedDocument> {
    const known = this.#known.get(text);
    if (known) return known;
    const validation = text.length > MAX_CHARACTERS_AT_ONCE ? this.#validation : null;
    const document = await (validation ? this.#readLong(text, validation) : readDocument(this.#schema, text));
    if ("kind" in document) this.#known.set(text, document);
    return document;
  }

  #readLong(text: string, validation: Threaded): Promise<ParsedDocument> {
    const underWay = this.#underWay.get(text);
    if (underWay) return underWay;
    const reading = this.#validated(text, validation).finally(() => this.#underWay.delete(text));
    this.#underWay.set(text, reading);
    return reading;
  }

  async #validated(text: string, validation: Threaded): Promise<ParsedDocument> {
    const document = parsed(text);
    if (!("kind" in document)) return document;
    const digest = createHash("sha256").update(text).digest("base64");
    if (this.#tooMuch.has(digest)) return [resourceLimit()];
    try {
      const faults = await validation.run(text);
      return faults.length > 0 ? faults.map(errorOf) : document;
    } catch (error) {
      if (error instanceof TooMuchWorkError) this.#tooMuch.set(digest, true);
      else if (!(error instanceof ThreadsBusyError)) throw error;
      return [resourceLimit()];
    }
  }
}

function errorOf({ message, locations, extensions }: Fault): GraphQLError {
  return Object.assign(new GraphQLError(message, { extensions }), { locations });
}
