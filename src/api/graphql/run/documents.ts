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
import { LRUCache } from "lru-cache";

/** Longer documents are not remembered. */
const MAX_REMEMBERED_CHARACTERS = 64 * 1024;
/** GitHub was seen to take 600 aliases in one query; this is several times that. */
const MAX_TOKENS = 30_000;

/** Queries of `gh` and of people stay below ten. Beyond this depth a query only repeats itself. */
const MAX_DEPTH = 60;

/** Reads documents, and remembers those that are valid. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #known = new LRUCache<string, DocumentNode>({ max: 500 });

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** The document, or what is wrong with it. */
  read(text: string): DocumentNode | readonly GraphQLError[] {
    const known = this.#known.get(text);
    if (known) return known;
    let document: DocumentNode;
    try {
      document = parse(text, { maxTokens: MAX_TOKENS });
      const errors = [
        ...validate(this.#schema, document, rules, { hideSuggestions: true }),
        ...this.#conflicts(document),
      ];
      if (errors.length > 0) return errors;
      if (depthOf(document) > MAX_DEPTH) return [tooDeep()];
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      // Brackets in brackets, thousands of them, fill the stack before anything can count them.
      if (error instanceof RangeError) return [tooDeep()];
      throw error;
    }
    if (text.length <= MAX_REMEMBERED_CHARACTERS) this.#known.set(text, document);
    return document;
  }

  /**
   * The service lets `state` of an issue and of a pull request stand side by side, though their types differ; clients rely
   * on it. Other conflicts are refused.
   */
  #conflicts(document: DocumentNode): GraphQLError[] {
    const errors = validate(this.#schema, document, [OverlappingFieldsCanBeMergedRule], { hideSuggestions: true });
    if (errors.length === 0) return [];
    const parents = new Map<ASTNode, GraphQLCompositeType | null | undefined>();
    const types = new TypeInfo(this.#schema);
    const note = { Field: (node: FieldNode) => void parents.set(node, types.getParentType()) };
    visit(document, visitWithTypeInfo(types, note));
    return errors.filter((error) => !differInTypeAlone(error, parents));
  }
}

/**
 * Whether fields of one name differ in nothing but their types. The rule names the fields of one side and then those of the
 * other, each before what it contains. Fields of two different objects never meet, so they may ask for different things.
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

/** How deep the fields of a valid document are nested, through fragments. */
function depthOf(document: DocumentNode): number {
  const fragments = new Map<string, SelectionSetNode>();
  const depths = new Map<string, number>();
  const depth = (set: SelectionSetNode | undefined): number =>
    Math.max(
      0,
      ...(set?.selections ?? []).map((selection) => {
        if (selection.kind === Kind.FIELD) return 1 + depth(selection.selectionSet);
        if (selection.kind === Kind.INLINE_FRAGMENT) return depth(selection.selectionSet);
        const { value: name } = selection.name;
        const known = depths.get(name) ?? depth(fragments.get(name));
        depths.set(name, known);
        return known;
      }),
    );
  const operations: SelectionSetNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet);
    if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition.selectionSet);
  }
  return Math.max(0, ...operations.map(depth));
}

/** An unknown field, in the service's words. */
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
