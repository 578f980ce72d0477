/** Reading the query text: parsing, validation as lenient as the service's, and errors in its words. */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLFormattedError,
  type GraphQLInputType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  type OperationDefinitionNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  print,
  specifiedRules,
  typeFromAST,
  type ValidationRule,
  validate,
} from "graphql";
import { isJsonObject } from "../world/json.ts";

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
    /^Variable "\$(\w+)" is not defined(?: by operation "(\w+)")?/,
    "variableNotDefined",
    (name, operation) => `Variable $${name} is used by ${operation ?? "anonymous query"} but not declared`,
  ],
  [
    /^Variable "\$(\w+)" is never used(?: in operation "(\w+)")?/,
    "variableNotUsed",
    (name, operation) => `Variable $${name} is declared by ${operation ?? "anonymous query"} but not used`,
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

interface VariableProblem {
  readonly path: readonly (string | number)[];
  readonly explanation: string;
}

/** What the service says of variables that are not of their types: one error each. The public threads show it. */
export function variableErrors(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  values: Readonly<Record<string, unknown>>,
): object[] {
  return variableDefinitions.flatMap((definition) => {
    const name = definition.variable.name.value;
    const type = typeFromAST(schema, definition.type);
    if (!isInputType(type) || (!(name in values) && definition.defaultValue)) return [];
    const problems = [...problemsOf(type, values[name] ?? null, [])];
    if (problems.length === 0) return [];
    const deep = problems.filter(({ path }) => path.length > 0);
    const where = deep.map(({ path, explanation }) => `${path.join(".")} (${explanation})`);
    const start = `Variable $${name} of type ${print(definition.type)} was provided invalid value`;
    return [
      {
        ...plain(new GraphQLError("", { nodes: definition })),
        message: where.length === 0 ? start : `${start} for ${where.join(", ")}`,
        extensions: { value: values[name] ?? null, problems },
      },
    ];
  });
}

function* problemsOf(type: GraphQLInputType, value: unknown, path: (string | number)[]): Iterable<VariableProblem> {
  if (value === null || value === undefined) {
    if (isNonNullType(type)) yield { path, explanation: "Expected value to not be null" };
    return;
  }
  const text = JSON.stringify(value);
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    const items = Array.isArray(value) ? value.entries() : [[null, value] as const];
    for (const [at, item] of items) yield* problemsOf(nullable.ofType, item, at === null ? path : [...path, at]);
  } else if (isInputObjectType(nullable)) {
    if (!isJsonObject(value)) {
      yield { path, explanation: `Expected ${text} to be a key-value object.` };
      return;
    }
    for (const key of Object.keys(value))
      if (!nullable.getFields()[key])
        yield { path: [...path, key], explanation: `Field is not defined on ${nullable.name}` };
    for (const { name, type: inner, default: given } of Object.values(nullable.getFields()))
      if (name in value || given === undefined) yield* problemsOf(inner, value[name], [...path, name]);
  } else if (isEnumType(nullable)) {
    const names = nullable.getValues().map(({ name }) => name);
    if (!names.includes(String(value)))
      yield { path, explanation: `Expected ${text} to be one of: ${names.join(", ")}` };
  } else {
    try {
      nullable.coerceInputValue(value);
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      yield { path, explanation: `Could not coerce value ${text} to ${nullable.name}` };
    }
  }
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
