import { createHash } from "node:crypto";
import {
  type ASTNode,
  BREAK,
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLSchema,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  print,
  type SelectionSetNode,
  specifiedRules,
  TypeInfo,
  type ValidationRule,
  validate,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { LRUCache } from "lru-cache";
import { mostEntries } from "../../../work/bounded.ts";
import { CallersLine } from "../../../work/callers-line.ts";
import { Thread, TooMuchWorkError } from "../../../work/thread.ts";
import { placeRefused } from "../../dialect/fault.ts";
import { resourceLimit, typedError } from "../run/errors.ts";
import { type FieldCount, Plan, type Prepared, type UnheldField, type VariableValues } from "../run/plan.ts";
import { inServiceWords } from "./mistakes.ts";
import { type Packed, unpacked } from "./packed.ts";
import { type LackingDocument, reduced } from "./reduced.ts";
import { type ServiceNames, serviceNames } from "./service-only.ts";
import { syntaxInServiceWords } from "./syntax.ts";

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
interface Fault {
  message: string;
  locations: GraphQLError["locations"];
  path: GraphQLError["path"];
  extensions: GraphQLError["extensions"];
}

/** What the thread does with a text: it validates it whole, or makes and validates what the mirror may have of it. */
export interface DocumentTask {
  text: string;
  of: "whole" | "reduced";
}

/** What came of it: a whole document without faults is valid, and of a reduced one null is left if nothing is. */
export interface DocumentDone {
  faults: Fault[];
  reduced: Packed | null;
}

type Validation = Thread<DocumentTask, DocumentDone>;
type Threaded = Pick<Validation, "run">;
type ParsedDocument = DocumentNode | readonly GraphQLError[];

/** What the mirror has of a document. A `__typename` stands for each field that is not held. */
export interface Reduced {
  document: DocumentNode;
  unheld: ReadonlyMap<FieldNode, UnheldField>;
}

/** The thread that validates long documents of the schema that is served, and reduces them. */
export function openValidation(): Validation {
  return new Thread(new URL("./validation-thread.ts", import.meta.url), { budgetMs: 2_000 });
}

/** Long documents are validated one after the other, each for up to two seconds. Callers take turns. */
const TURNS = { most: 1, mostEach: 1, mostWaitingEach: 10, mostWaiting: 50, patienceMs: 10_000 };

/** Reads documents, and remembers those that are valid. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #validation: Threaded | null;
  readonly #turns = new CallersLine(TURNS);
  readonly #known = new LRUCache<string, DocumentNode>({
    maxSize: MAX_REMEMBERED_CHARACTERS,
    maxEntrySize: LONGEST_REMEMBERED,
    sizeCalculation: (_, text) => text.length,
  });
  readonly #reduced = new LRUCache<string, Reduced>({
    maxSize: LONGEST_REMEMBERED,
    // A short text may be long once it is reduced: see `reduced.ts`. A field takes a few characters, however short.
    sizeCalculation: ({ document }, text) => Math.max(text.length, 4 * sizeOf(document)),
  });
  /** Read once it is needed. */
  #service: ServiceNames | null = null;
  /** The texts that were too much to validate, by their digests. */
  readonly #tooMuch = new LRUCache<string, true>(mostEntries(10_000));
  /** The documents that are being read: many callers may send the same text at once. */
  readonly #underWay = new Map<string, Promise<ParsedDocument>>();

  /** @param validation the thread that validates long documents; null: this thread validates them */
  constructor(schema: GraphQLSchema, validation: Threaded | null = null) {
    this.#schema = schema;
    this.#validation = validation;
  }

  /**
   * The document, or what is wrong with it.
   * @param caller whose turn a long document takes
   * @throws ApiFault 403 or 503 with `Retry-After` for a long document that finds no turn
   */
  async read(text: string, caller: string): Promise<ParsedDocument> {
    const known = this.#known.get(text);
    if (known) return known;
    const validation = text.length > MAX_CHARACTERS_AT_ONCE ? this.#validation : null;
    const document = await (validation ? this.#readLong(text, validation, caller) : readDocument(this.#schema, text));
    if ("kind" in document) this.#known.set(text, document);
    return document;
  }

  /**
   * What the mirror can answer of a document that our schema refuses. Null: the service's schema refuses it too, or it
   * asks for too much.
   * @param help what a caller can do who wants all of it
   * @throws as `read`
   */
  async reduced(text: string, { caller, help }: { caller: string; help: string }): Promise<Reduced | null> {
    const known = this.#reduced.get(text);
    if (known) return known;
    const found = await this.#readReduced(text, caller);
    if (!found) return null;
    const left = withErrors(found, help);
    this.#reduced.set(text, left);
    return left;
  }

  async #readReduced(text: string, caller: string): Promise<LackingDocument | null> {
    this.#service ??= serviceNames();
    const parts = { schema: this.#schema, service: this.#service };
    const validation = this.#validation;
    if (!validation || text.length <= MAX_CHARACTERS_AT_ONCE) {
      const found = readReduced(text, { ...parts, most: validation ? MOST_NODES_AT_ONCE : MOST_NODES });
      if (typeof found === "object") return found;
      if (found === "refused" || !validation) return null;
    }
    const done = await this.#inTurn(`reduced ${text}`, caller, async () => {
      const { reduced: left } = await validation.run({ text, of: "reduced" });
      return { found: left && unpacked(left, text) };
    });
    return done?.found ?? null;
  }

  #readLong(text: string, validation: Threaded, caller: string): Promise<ParsedDocument> {
    const underWay = this.#underWay.get(text);
    if (underWay) return underWay;
    const reading = this.#validated(text, validation, caller).finally(() => this.#underWay.delete(text));
    this.#underWay.set(text, reading);
    return reading;
  }

  async #validated(text: string, validation: Threaded, caller: string): Promise<ParsedDocument> {
    const read = await this.#inTurn(`whole ${text}`, caller, async () => {
      const document = parsedDocument(text);
      if (!("kind" in document)) return document;
      const { faults } = await validation.run({ text, of: "whole" });
      return faults.length > 0 ? faults.map(errorOf) : document;
    });
    return read ?? [resourceLimit()];
  }

  /** Does long work in the caller's turn. Null: the thread took too long for it, now or before. */
  async #inTurn<Done>(name: string, caller: string, work: () => Promise<Done>): Promise<Done | null> {
    const digest = createHash("sha256").update(name).digest("base64");
    if (this.#tooMuch.has(digest)) return null;
    using _ = await this.#turns.enter(caller).catch(placeRefused);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TooMuchWorkError)) throw error;
      this.#tooMuch.set(digest, true);
      return null;
    }
  }
}

/** Each lack as the error that its fields are answered with. One error serves all fields that lack the same. */
function withErrors({ document, lacks }: LackingDocument, help: string): Reduced {
  const errors = new Map<string, GraphQLError>();
  const unheld = new Map<FieldNode, UnheldField>();
  for (const [node, { message, isRequired }] of lacks) {
    const error = errors.getOrInsertComputed(message, () => typedError("FORBIDDEN", `${message} ${help}`));
    unheld.set(node, { error, isRequired });
  }
  return { document, unheld };
}

function errorOf({ message, locations, path, extensions }: Fault): GraphQLError {
  return Object.assign(new GraphQLError(message, { extensions }), { locations, path });
}

/**
 * The most tokens of a document. GitHub was seen to take 600 aliases in one query, which leaves 30 tokens for each.
 * Parsing so many takes some 20 ms.
 */
const MAX_TOKENS = 20_000;

/** The deepest nesting. Queries of `gh` and of people stay below ten. Beyond this depth a query only repeats itself. */
const MAX_FIELD_DEPTH = 60;

/** The deepest nesting of anything: ten fragments around each field. Whoever walks a document calls itself so often. */
const MAX_NESTING = 10 * MAX_FIELD_DEPTH;

/**
 * The most fields and fragments of a document. Fragments count at each place where they are spread, so 3 KB of text
 * could ask for billions of fields. A walk over this many takes some 20 ms. Six hundred issues with thirty fields each
 * stay below.
 */
const MAX_SELECTIONS = 20_000;

/**
 * How many nodes are visited to reduce a document. One of `MAX_TOKENS` has up to twice as many. To visit and to validate
 * so many takes a tenth of a second, and those that this thread visits some 10 ms.
 */
export const MOST_NODES = 2 * MAX_TOKENS;
const MOST_NODES_AT_ONCE = 4_000;

/** The document, or its errors. A long text takes long. Pure. */
export function readDocument(schema: GraphQLSchema, text: string): DocumentNode | readonly GraphQLError[] {
  const document = parsedDocument(text);
  if (!("kind" in document)) return document;
  const faults = faultsIn(schema, document);
  return faults.length > 0 ? faults : document;
}

/**
 * What our schema may know of a document, valid. "refused": nothing, or the service's schema refuses it too. A long text
 * takes long. Pure.
 * @param most how many nodes may be visited
 */
export function readReduced(
  text: string,
  parts: { schema: GraphQLSchema; service: ServiceNames; most: number },
): LackingDocument | "refused" | "too large" {
  const whole = parsedDocument(text);
  if (!("kind" in whole) || isTooDeep(whole)) return "refused";
  const found = reduced(whole, parts);
  if (!found) return "too large";
  // What was made anew counts, too.
  const isWithin = !isNestedTooDeep(found.document) && sizeOf(found.document) <= MAX_SELECTIONS;
  return isWithin && faultsIn(parts.schema, found.document).length === 0 ? found : "refused";
}

/** The parsed document, or the error that says why there is none. The document's size is bounded. */
export function parsedDocument(text: string): DocumentNode | readonly GraphQLError[] {
  try {
    const document = parse(text, { maxTokens: MAX_TOKENS });
    if (isNestedTooDeep(document)) return [tooDeep()];
    return sizeOf(document) > MAX_SELECTIONS ? [resourceLimit()] : document;
  } catch (error) {
    return [parsingError(error)];
  }
}

/** A document's errors, by the rules of the language and by ours. */
function faultsIn(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
  try {
    const errors = validate(schema, document, rules, { hideSuggestions: true });
    if (errors.length > 0) return isTooDeep(document) ? errors : inServiceWords(schema, document, errors);
    if (isTooDeep(document)) return [tooDeep()];
    return pairsIn(document) > MAX_PAIRS ? [resourceLimit()] : conflictsIn(schema, document);
  } catch (error) {
    return [parsingError(error)];
  }
}

/** Turns a parser's error into ours. @throws the error, if it is a bug of ours */
function parsingError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return syntaxInServiceWords(error);
  // Thousands of nested brackets overflow the stack before anything can count them.
  if (error instanceof RangeError) return tooDeep();
  throw error;
}

/**
 * The most pairs of fields that have one name in one place, and so are compared. Comparing so many takes up to 30 ms.
 * Two hundred fragments that select the same field make as many.
 */
const MAX_PAIRS = 20_000;

/** How many pairs of fields have one name in one place. The document's depth and size are bounded already. Pure. */
function pairsIn({ definitions }: DocumentNode): number {
  const fragments = new Map<string, SelectionSetNode>();
  for (const one of definitions)
    if (one.kind === Kind.FRAGMENT_DEFINITION) fragments.set(one.name.value, one.selectionSet);
  let pairs = 0;
  const count = (sets: readonly SelectionSetNode[]): void => {
    const named = new Map<string, FieldNode[]>();
    const met = new Set<SelectionSetNode>();
    const collect = (set: SelectionSetNode | undefined): void => {
      if (!set || met.has(set)) return;
      met.add(set);
      for (const one of set.selections) {
        if (one.kind === Kind.FIELD) named.getOrInsertComputed(one.alias?.value ?? one.name.value, () => []).push(one);
        else collect(one.kind === Kind.INLINE_FRAGMENT ? one.selectionSet : fragments.get(one.name.value));
      }
    };
    for (const set of sets) collect(set);
    for (const fields of named.values()) {
      pairs += (fields.length * (fields.length - 1)) / 2;
      const inner = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (inner.length > 0 && pairs <= MAX_PAIRS) count(inner);
    }
  };
  for (const one of definitions) if (one.kind === Kind.OPERATION_DEFINITION) count([one.selectionSet]);
  return pairs;
}

/**
 * The service lets `state` of an issue and of a pull request stand side by side, though their types differ; clients
 * rely on it. Other conflicts are refused.
 */
function conflictsIn(schema: GraphQLSchema, document: DocumentNode): GraphQLError[] {
  const errors = validate(schema, document, [OverlappingFieldsCanBeMergedRule], { hideSuggestions: true });
  if (errors.length === 0) return [];
  const parents = new Map<ASTNode, GraphQLCompositeType | null | undefined>();
  const types = new TypeInfo(schema);
  const note = { Field: (node: FieldNode) => void parents.set(node, types.getParentType()) };
  visit(document, visitWithTypeInfo(types, note));
  return errors.filter((error) => !differInTypeAlone(error, parents));
}

/**
 * Whether fields of one name differ in nothing but their types. The rule names the fields of one side and then those of
 * the other, each before what it contains. Fields of two different objects never meet, so they may ask for different
 * things.
 */
function differInTypeAlone({ nodes = [] }: GraphQLError, parents: ReadonlyMap<ASTNode, unknown>): boolean {
  const half = nodes.length / 2;
  for (const [at, one] of nodes.slice(0, half).entries()) {
    const other = nodes[half + at];
    if (one.kind !== Kind.FIELD || other?.kind !== Kind.FIELD) return false;
    const [ones, others] = [parents.get(one), parents.get(other)];
    if (ones !== others && isObjectType(ones) && isObjectType(others)) return true;
    if (callOf(one) !== callOf(other)) return false;
  }
  return true;
}

function callOf({ name, arguments: given = [] }: FieldNode): string {
  return [name.value, ...given.map((argument) => print(argument)).sort()].join(" ");
}

function tooDeep(): GraphQLError {
  return new GraphQLError(`Query has fields nested deeper than ${MAX_FIELD_DEPTH} levels, which exceeds max depth.`);
}

/** Whether fields are nested too deep, also through fragments. A fragment that spreads itself is endlessly deep. */
export function isTooDeep(document: DocumentNode): boolean {
  return measured(document, FIELD_DEPTH) > MAX_FIELD_DEPTH;
}

function isNestedTooDeep(document: DocumentNode): boolean {
  return measured(document, NESTING) > MAX_NESTING;
}

/** How many fields and fragments a document selects, each fragment counted at each of its places. */
function sizeOf(document: DocumentNode): number {
  return measured(document, SIZE);
}

/** Makes one measure of a document. */
interface Measure {
  /** What a fragment measures more than its selection. A field measures 1 more. */
  ofFragment: number;
  /** The measure of what stands side by side. */
  ofAll: (measures: number[]) => number;
  /** The measure of a fragment that spreads itself. Where it is none, a rule refuses it later by name. */
  endless: number;
}

const largest = (measures: number[]) => Math.max(0, ...measures);
const SIZE: Measure = { ofFragment: 1, ofAll: (sizes) => sizes.reduce((sum, size) => sum + size, 0), endless: 0 };
const NESTING: Measure = { ofFragment: 1, ofAll: largest, endless: 0 };
const FIELD_DEPTH: Measure = { ofFragment: 0, ofAll: largest, endless: Number.POSITIVE_INFINITY };

/**
 * Measures all that a document has: its operations, and the fragments that none of them reaches, since those are walked
 * as well before they are refused. Each fragment is measured once.
 */
function measured(document: DocumentNode, { ofFragment, ofAll, endless }: Measure): number {
  const fragments = new Map<string, SelectionSetNode>();
  const known = new Map<string, number>();
  const measureOf = (name: string): number => {
    const before = known.get(name);
    if (before !== undefined) return before;
    known.set(name, endless);
    const found = measure(fragments.get(name));
    known.set(name, found);
    return found;
  };
  const measure = (set: SelectionSetNode | undefined): number =>
    ofAll(
      (set?.selections ?? []).map((one) => {
        if (one.kind === Kind.FIELD) return 1 + measure(one.selectionSet);
        return ofFragment + (one.kind === Kind.INLINE_FRAGMENT ? measure(one.selectionSet) : measureOf(one.name.value));
      }),
    );
  const operations: SelectionSetNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet);
    if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition.selectionSet);
  }
  const reached = operations.map(measure);
  const unreached = [...fragments.keys()].filter((name) => !known.has(name));
  return ofAll([...reached, ...unreached.map(measureOf)]);
}

const rules: readonly ValidationRule[] = specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule);

/** Fields that show which repositories there are. No revision tells of that. */
const UNBOUND: ReadonlySet<string> = new Set(["repositories"]);

/** Whether an operation can show only single repositories and their contents, so that its result may be kept. Pure. */
function isKeepable(definitions: readonly DefinitionNode[], operation: OperationDefinitionNode): boolean {
  if (operation.operation !== "query") return false;
  if (definitions.some((one) => one.kind === Kind.OPERATION_DEFINITION && one !== operation)) return false;
  if (!operation.selectionSet.selections.every((one) => one.kind === Kind.FIELD && one.name.value === "repository"))
    return false;
  let isBound = true;
  for (const definition of definitions)
    visit(definition, {
      Field: ({ name }) => {
        if (!UNBOUND.has(name.value)) return undefined;
        isBound = false;
        return BREAK;
      },
    });
  return isBound;
}

/** How many plans of one operation are kept, one for each choice of its `@skip` and `@include`. */
const MAX_CHOICES = 16;
/** How many fields all kept plans may have together, at some 400 bytes each. A short document may select 20,000. */
const MAX_PLANNED_FIELDS = 100_000;

/** Of a document that our schema knows whole. */
export const ALL_IS_HELD: ReadonlyMap<FieldNode, UnheldField> = new Map();

/** Keeps the plans of documents for as long as the documents are kept. */
export class Plans {
  readonly #schema: GraphQLSchema;
  #known = new WeakMap<OperationDefinitionNode, Planned>();
  /** Counts the fields of all plans that are kept. A plan grows when a type is first met. */
  #tally: FieldCount = { fields: 0 };
  #made = 0;

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** The plan of an operation. Null: the variables are wrong, and graphql-js says how. */
  of(
    definitions: readonly DefinitionNode[],
    operation: OperationDefinitionNode,
    variables: VariableValues,
    unheld: Reduced["unheld"] = ALL_IS_HELD,
  ): Plan | null {
    if (this.#tally.fields > MAX_PLANNED_FIELDS) {
      this.#known = new WeakMap();
      this.#tally = { fields: 0 };
    }
    let planned = this.#known.get(operation);
    if (!planned) {
      planned = prepare(definitions, operation, unheld);
      this.#known.set(operation, planned);
    }
    const rootType = this.#schema.getRootType(operation.operation);
    if (!rootType) return null;
    const chosen: Record<string, boolean> = {};
    let name = "";
    for (const variable of planned.conditions) {
      const value = variables.coerced[variable];
      // A default that was overruled can leave null here. graphql-js says what is wrong with that.
      if (typeof value !== "boolean") return null;
      chosen[variable] = value;
      name += value ? "1" : "0";
    }
    let plan = planned.plans.get(name);
    if (!plan) {
      plan = new Plan(this.#schema, rootType, operation, {
        name: String(this.#made++),
        prepared: planned,
        chosen,
        tally: this.#tally,
      });
      if (planned.plans.size < MAX_CHOICES) planned.plans.set(name, plan);
    }
    return plan;
  }
}

export interface Planned extends Prepared {
  /** The variables that `@skip` and `@include` depend on. */
  conditions: readonly string[];
  plans: Map<string, Plan>;
}

function prepare(
  definitions: readonly DefinitionNode[],
  operation: OperationDefinitionNode,
  unheld: Reduced["unheld"],
): Planned {
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null);
  for (const definition of definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
  const conditions = new Set<string>();
  const look = (node: OperationDefinitionNode | FragmentDefinitionNode) =>
    visit(node, {
      Directive: ({ name, arguments: args }) => {
        if (name.value !== "skip" && name.value !== "include") return;
        const value = args?.[0]?.value;
        if (value?.kind === Kind.VARIABLE) conditions.add(value.name.value);
      },
    });
  look(operation);
  for (const fragment of Object.values(fragments)) look(fragment);
  return {
    isKeepable: isKeepable(definitions, operation),
    conditions: [...conditions],
    fragments,
    unheld,
    plans: new Map(),
  };
}
