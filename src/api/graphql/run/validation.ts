import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  FieldsOnCorrectTypeRule,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLSchema,
  isObjectType,
  Kind,
  OverlappingFieldsCanBeMergedRule,
  parse,
  print,
  type SelectionSetNode,
  specifiedRules,
  TypeInfo,
  type ValidationContext,
  validate,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { resourceLimit } from "../errors.ts";

/**
 * The most tokens of a document. GitHub was seen to take 600 aliases in one query, which leaves 30 tokens for each.
 * Parsing so many takes some 20 ms.
 */
const MAX_TOKENS = 20_000;

/** The deepest nesting. Queries of `gh` and of people stay below ten. Beyond this depth a query only repeats itself. */
const MAX_DEPTH = 60;

/**
 * The most fields of an operation. Fragments count at each place where they are spread, so 3 KB of text could ask for
 * billions of fields. A walk over this many takes some 20 ms. Six hundred issues with thirty fields each stay below.
 */
const MAX_FIELDS = 20_000;

/** The document, or its errors. A long text takes long. Pure. */
export function readDocument(schema: GraphQLSchema, text: string): DocumentNode | readonly GraphQLError[] {
  const document = parsed(text);
  if (!("kind" in document)) return document;
  const faults = faultsIn(schema, document);
  return faults.length > 0 ? faults : document;
}

/** The parsed document, or the error that says why there is none. The document's size is bounded. */
export function parsed(text: string): DocumentNode | readonly GraphQLError[] {
  try {
    const document = parse(text, { maxTokens: MAX_TOKENS });
    return sizeOf(document) > MAX_FIELDS ? [resourceLimit()] : document;
  } catch (error) {
    return [refusal(error)];
  }
}

/** A document's errors, by the rules of the language and by ours. */
function faultsIn(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
  try {
    const errors = [...validate(schema, document, rules, { hideSuggestions: true }), ...conflictsIn(schema, document)];
    return errors.length === 0 && isTooDeep(document) ? [tooDeep()] : errors;
  } catch (error) {
    return [refusal(error)];
  }
}

/** Turns a parser's error into ours. @throws the error, if it is a bug of ours */
function refusal(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  // Thousands of nested brackets overflow the stack before anything can count them.
  if (error instanceof RangeError) return tooDeep();
  throw error;
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
  return new GraphQLError(`Query has fields nested deeper than ${MAX_DEPTH} levels, which exceeds max depth.`);
}

/** Whether fields are nested too deep, also through fragments. A fragment that spreads itself is endlessly deep. */
export function isTooDeep(document: DocumentNode): boolean {
  return measured(document, (depths) => Math.max(0, ...depths), Number.POSITIVE_INFINITY) > MAX_DEPTH;
}

/** How many fields an operation selects, each fragment counted at each of its places. */
function sizeOf(document: DocumentNode): number {
  return measured(document, (sizes) => sizes.reduce((sum, size) => sum + size, 0), 0);
}

/**
 * The largest measure among the operations. A field measures 1 more than its selection. Each fragment is measured once.
 * @param endless the measure of a fragment that spreads itself
 */
function measured(document: DocumentNode, ofAll: (measures: number[]) => number, endless: number): number {
  const fragments = new Map<string, SelectionSetNode>();
  const known = new Map<string, number>();
  const measure = (set: SelectionSetNode | undefined): number =>
    ofAll(
      (set?.selections ?? []).map((selection) => {
        if (selection.kind === Kind.FIELD) return 1 + measure(selection.selectionSet);
        if (selection.kind === Kind.INLINE_FRAGMENT) return measure(selection.selectionSet);
        const { value: name } = selection.name;
        const before = known.get(name);
        if (before !== undefined) return before;
        // A fragment that spreads itself ends here. A rule refuses it later by name.
        known.set(name, endless);
        const found = measure(fragments.get(name));
        known.set(name, found);
        return found;
      }),
    );
  const operations: SelectionSetNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet);
    if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition.selectionSet);
  }
  return Math.max(0, ...operations.map(measure));
}

/** Reports an unknown field in the service's words. */
function fieldExists(context: ValidationContext) {
  return {
    Field(node: FieldNode) {
      const type = context.getParentType();
      if (!type || context.getFieldDef()) return;
      const name = node.name.value;
      context.reportError(
        new GraphQLError(`Field '${name}' doesn't exist on type '${type.name}'`, {
          nodes: [node],
          extensions: { code: "undefinedField", typeName: type.name, fieldName: name },
        }),
      );
    },
  };
}

const rules = [
  ...specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule && rule !== FieldsOnCorrectTypeRule),
  fieldExists,
];
