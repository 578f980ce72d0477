import {
  type DocumentNode,
  FieldsOnCorrectTypeRule,
  GraphQLError,
  type GraphQLSchema,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  type ValidationContext,
  validate,
} from "graphql";
import { LRUCache } from "lru-cache";

/** Longer documents are not remembered. */
const MAX_REMEMBERED_CHARACTERS = 64 * 1024;
/** GitHub was seen to take 600 aliases in one query; this is several times that. */
const MAX_TOKENS = 30_000;

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
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
    const errors = [
      ...validate(this.#schema, document, rules, { hideSuggestions: true }),
      ...this.#conflicts(document),
    ];
    if (errors.length > 0) return errors;
    if (text.length <= MAX_REMEMBERED_CHARACTERS) this.#known.set(text, document);
    return document;
  }

  /**
   * The service lets `state` of an issue and of a pull request stand side by side, though their types differ; clients rely
   * on it. Other conflicts are refused.
   */
  #conflicts(document: DocumentNode): GraphQLError[] {
    const errors = validate(this.#schema, document, [OverlappingFieldsCanBeMergedRule], { hideSuggestions: true });
    return errors.filter(({ message }) => !message.includes("return conflicting types"));
  }
}

/** An unknown field, in the service's words. */
function fieldExists(context: ValidationContext) {
  return {
    Field(node: { name: { value: string } }) {
      const type = context.getParentType();
      if (!type || context.getFieldDef()) return;
      const name = node.name.value;
      context.reportError(
        new GraphQLError(`Field '${name}' doesn't exist on type '${type.name}'`, {
          nodes: [node as never],
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
