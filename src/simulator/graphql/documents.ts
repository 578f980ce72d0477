/** Reading the query text: parsing, validation as lenient as the service's, and errors in its words. */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  isEnumType,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from "graphql";

/**
 * The service merges fields with different enums. `gh` selects `state` of an issue and of a pull request under one
 * name. Only such conflicts are allowed.
 */
const mergeableFields: ValidationRule = (context) => {
  const schema = context.getSchema();
  const isEnum = (name: string | undefined) => isEnumType(schema.getType(name ?? ""));
  const lenient = Object.create(context, {
    reportError: {
      value: (error: GraphQLError) => {
        const conflicts = [
          ...error.message.matchAll(/they return conflicting types "\[?(\w+)[\]!]*" and "\[?(\w+)[\]!]*"/g),
        ];
        const onlyEnums = conflicts.length > 0 && conflicts.every((match) => isEnum(match[1]) && isEnum(match[2]));
        if (!onlyEnums || /are different fields|have differing arguments/.test(error.message))
          context.reportError(error);
      },
    },
  });
  return OverlappingFieldsCanBeMergedRule(lenient);
};

const RULES = specifiedRules.map((rule) => (rule === OverlappingFieldsCanBeMergedRule ? mergeableFields : rule));

export type Reading = { readonly document: DocumentNode } | { readonly errors: readonly GraphQLFormattedError[] };

/** Parsed and validated documents of one schema; clients send few texts many times. */
export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #readings = new Map<string, Reading>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  read(text: string): Reading {
    const known = this.#readings.get(text);
    if (known) return known;
    const reading = this.#readFresh(text);
    if (this.#readings.size >= 500) this.#readings.clear();
    this.#readings.set(text, reading);
    return reading;
  }

  #readFresh(text: string): Reading {
    try {
      const document = parse(text);
      const errors = validate(this.#schema, document, RULES, { hideSuggestions: true });
      return errors.length > 0 ? { errors: errors.map(inServiceWords) } : { document };
    } catch (error) {
      if (error instanceof GraphQLError)
        return { errors: [{ ...plain(error), message: error.message.replace("Syntax Error:", "Parse error:") }] };
      throw error;
    }
  }
}

const WORDINGS: readonly (readonly [RegExp, string, (...names: string[]) => string])[] = [
  [
    /^Cannot query field "(\w+)" on type "(\w+)"/,
    "undefinedField",
    (field, type) => `Field '${field}' doesn't exist on type '${type}'`,
  ],
  [
    /^Unknown argument "(\w+)" on field "\w+\.(\w+)"/,
    "argumentNotAccepted",
    (argument, field) => `Field '${field}' doesn't accept argument '${argument}'`,
  ],
  [/^Unknown type "(\w+)"/, "undefinedType", (type) => `No such type ${type}, so it can't be a fragment condition`],
  [
    /^Argument "\w+\.(\w+)\((\w+):\)" of type ".+" is required/,
    "missingRequiredArguments",
    (field, argument) => `Field '${field}' is missing required arguments: ${argument}`,
  ],
  [
    /^Variable "\$(\w+)" is not defined/,
    "variableNotDefined",
    (name) => `Variable $${name} is used by anonymous query but not declared`,
  ],
  [
    /^Variable "\$(\w+)" is never used/,
    "variableNotUsed",
    (name) => `Variable $${name} is declared by anonymous query but not used`,
  ],
  [
    /^Field "(\w+)" of type "(.+)" must have a selection/,
    "selectionMismatch",
    (field, type) => `Field must have selections (field '${field}' returns ${type} but has no selections.)`,
  ],
];

function inServiceWords(error: GraphQLError): GraphQLFormattedError {
  for (const [pattern, code, wording] of WORDINGS) {
    const match = pattern.exec(error.message);
    if (match) return { ...plain(error), extensions: { code }, message: wording(...match.slice(1)) };
  }
  return plain(error);
}

function plain(error: GraphQLError): GraphQLFormattedError {
  return { ...(error.locations ? { locations: error.locations } : {}), message: error.message };
}

/** `{type, path, extensions, locations, message}`; what has no type of the service's is left without. */
export function executionError(error: GraphQLError): object {
  const { type, ...extensions } = error.extensions;
  return {
    ...(type === undefined ? {} : { type }),
    ...(error.path ? { path: error.path } : {}),
    ...(Object.keys(extensions).length > 0 ? { extensions } : {}),
    ...(error.locations ? { locations: error.locations } : {}),
    message: error.message,
  };
}
