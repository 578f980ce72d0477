/** Which documents are valid, by the rules of the language and by ours. */
import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isObjectType,
  Kind,
  OverlappingFieldsCanBeMergedRule,
  parse,
  print,
  specifiedRules,
  TypeInfo,
  type ValidationRule,
  validate,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { resourceLimit } from "../run/errors.ts";
import { conflictsInServiceWords } from "./conflicts.ts";
import { inServiceWords } from "./mistakes.ts";
import { type LackingDocument, reduced } from "./reduced.ts";
import type { ServiceNames } from "./service-only.ts";
import { hasTooManyPairs, isNestedTooDeep, isTooDeep, selectsTooMuch, tooDeep } from "./size.ts";
import { syntaxInServiceWords } from "./syntax.ts";

/**
 * The most tokens of a document. GitHub was seen to take 600 aliases in one query, which leaves 30 tokens for each.
 * Parsing so many takes some 20 ms.
 */
const MAX_TOKENS = 20_000;

/**
 * How many nodes are visited to reduce a document. One of `MAX_TOKENS` has up to twice as many. To visit and to validate
 * so many takes a tenth of a second, and those that this thread visits some 10 ms.
 */
export const MOST_NODES = 2 * MAX_TOKENS;
export const MOST_NODES_AT_ONCE = 4_000;

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
  const isWithin = !isNestedTooDeep(found.document) && !selectsTooMuch(found.document);
  return isWithin && faultsIn(parts.schema, found.document).length === 0 ? found : "refused";
}

/** The parsed document, or the error that says why there is none. The document's size is bounded. */
export function parsedDocument(text: string): DocumentNode | readonly GraphQLError[] {
  try {
    const document = parse(text, { maxTokens: MAX_TOKENS });
    if (isNestedTooDeep(document)) return [tooDeep()];
    return selectsTooMuch(document) ? [resourceLimit()] : document;
  } catch (error) {
    return [parsingError(error)];
  }
}

/** A document's errors, by the rules of the language and by ours. */
function faultsIn(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
  try {
    const errors = validate(schema, document, rules, { hideSuggestions: true });
    if (errors.length > 0) return inServiceWords(schema, document, errors);
    if (isTooDeep(document)) return [tooDeep()];
    return hasTooManyPairs(document) ? [resourceLimit()] : conflictsIn(schema, document);
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
  return conflictsInServiceWords(errors.filter((error) => !differInTypeAlone(error, parents)));
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

/** The parser takes empty brackets, and the service refuses them. `inServiceWords` knows these words. */
const selectsSomething: ValidationRule = (context) => ({
  OperationDefinition(node) {
    if (node.selectionSet.selections.length > 0) return;
    const message = `Operation of type "${context.getType()}" must have a selection`;
    context.reportError(new GraphQLError(message, { nodes: node }));
  },
  Field(node) {
    if (node.selectionSet?.selections.length !== 0 || !isCompositeType(getNamedType(context.getType()))) return;
    const message = `Field "${node.name.value}" of type "${context.getType()}" must have a selection`;
    context.reportError(new GraphQLError(message, { nodes: node }));
  },
});

const rules: readonly ValidationRule[] = [
  ...specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule),
  selectsSomething,
];
