/** A caller's mistakes in a document and its variables, in the words of the service, whose server is graphql-ruby. */
import {
  type ASTNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLScalarType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputType,
  isListType,
  isNonNullType,
  isRequiredInputField,
  isScalarType,
  Kind,
  print,
  TypeInfo,
  typeFromAST,
  type VariableDefinitionNode,
  visit,
  visitWithTypeInfo,
} from "graphql";
import type { Json } from "../../../json.ts";

/** The nodes above a node and the node itself, outermost first, and what type each argument takes. */
interface LinePlace {
  schema: GraphQLSchema;
  line: readonly ASTNode[];
  types: ReadonlyMap<ASTNode, string>;
}

interface Wording {
  code: string;
  message: string;
  /** What stands beside the code. */
  details: Readonly<Record<string, Json>>;
  /** The node to name in the error, if it is another than the error's own. */
  node?: ASTNode | undefined;
  /** Whether all nodes of the error are named. */
  areAllNamed?: boolean;
}

/** The errors of a document, each in the service's words, with its code and the path to where it stands. Pure. */
export function inServiceWords(
  schema: GraphQLSchema,
  document: DocumentNode,
  errors: readonly GraphQLError[],
): readonly GraphQLError[] {
  const lines = linesTo(schema, document, new Set(errors.flatMap(({ nodes = [] }) => nodes)));
  return [...toldOnce(errors, lines), ...loops(errors, lines), ...withoutRepetition(errors)].map((error) => {
    if ("code" in error.extensions) return error;
    // Of a variable and its use the use is named.
    const node = USED.test(error.message) ? error.nodes?.at(-1) : error.nodes?.[0];
    const place = node && lines.get(node);
    if (!node || !place) return error;
    const wording = wordingOf(error, place);
    const shown = wording?.node ?? node;
    const path = pathTo(place.line.slice(0, place.line.indexOf(shown) + 1));
    return new GraphQLError(wording?.message ?? error.message, {
      nodes: (wording?.areAllNamed && error.nodes) || [shown],
      path,
      extensions: wording ? { code: wording.code, ...wording.details } : error.extensions,
    });
  });
}

/** Names that stand twice. The service tells each once, with all its places. */
interface Repetition {
  pattern: RegExp;
  kind: Kind;
  code: string;
  /** Which detail names what stands twice. */
  detail: string;
  message: (name: string) => string;
}

const REPETITIONS: readonly Repetition[] = [
  {
    pattern: /^This anonymous operation must be the only/,
    kind: Kind.OPERATION_DEFINITION,
    code: "uniquelyNamedOperations",
    detail: "operationName",
    message: () => "Operation name is required when multiple operations are present",
  },
  {
    pattern: /^There can be only one operation named "(\w+)"/,
    kind: Kind.OPERATION_DEFINITION,
    code: "uniquelyNamedOperations",
    detail: "operationName",
    message: (name) => `Operation name "${name}" must be unique`,
  },
  {
    pattern: /^There can be only one fragment named "(\w+)"/,
    kind: Kind.FRAGMENT_DEFINITION,
    code: "fragmentNotUnique",
    detail: "fragmentName",
    message: (name) => `Fragment name "${name}" must be unique`,
  },
  {
    pattern: /^There can be only one argument named "(\w+)"/,
    kind: Kind.ARGUMENT,
    code: "argumentNotUnique",
    detail: "name",
    message: (name) => `There can be only one argument named "${name}"`,
  },
  {
    pattern: /^There can be only one input field named "(\w+)"/,
    kind: Kind.OBJECT_FIELD,
    code: "inputFieldNotUnique",
    detail: "name",
    message: (name) => `There can be only one input field named "${name}"`,
  },
  {
    pattern: /^There can be only one variable named "\$(\w+)"/,
    kind: Kind.VARIABLE_DEFINITION,
    code: "variableNotUnique",
    detail: "variableName",
    message: (name) => `There can only be one variable named "${name}"`,
  },
];

function repetitionIn({ message }: GraphQLError): (Repetition & { name: string | undefined }) | null {
  for (const repetition of REPETITIONS) {
    const match = repetition.pattern.exec(message);
    if (match) return { ...repetition, name: match[1] };
  }
  return null;
}

/** One error for each name that stands twice, whose places graphql-js may tell in several. */
function toldOnce(errors: readonly GraphQLError[], lines: ReadonlyMap<ASTNode, LinePlace>): GraphQLError[] {
  const told = new Map<string, { nodes: Set<ASTNode>; path: string[]; extensions: Record<string, Json> }>();
  for (const error of errors) {
    const found = repetitionIn(error);
    if (!found) continue;
    for (const node of error.nodes ?? []) {
      const line = lines.get(node)?.line ?? [];
      const at = line.findLastIndex(({ kind }) => kind === found.kind);
      const named = line[at];
      if (!named) continue;
      const path = pathTo(line.slice(0, at));
      const details = found.name === undefined ? {} : { [found.detail]: found.name };
      told
        .getOrInsertComputed(JSON.stringify([found.message(found.name ?? ""), path]), () => ({
          ...{ nodes: new Set<ASTNode>(), path },
          extensions: { code: found.code, ...details },
        }))
        .nodes.add(named);
    }
  }
  return [...told].map(([key, { nodes, path, extensions }]) => {
    const [message] = JSON.parse(key) as [string];
    return new GraphQLError(message, { nodes: [...nodes], path, extensions });
  });
}

const LOOP = /^Cannot spread fragment "\w+" within itself/;

/** Fragments that spread themselves. The service tells one error for each. */
function loops(errors: readonly GraphQLError[], lines: ReadonlyMap<ASTNode, LinePlace>): GraphQLError[] {
  const fragments = new Set<ASTNode>();
  for (const { message, nodes = [] } of errors) {
    if (!LOOP.test(message)) continue;
    for (const node of nodes) {
      const fragment = lines.get(node)?.line.find(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
      if (fragment) fragments.add(fragment);
    }
  }
  return [...fragments].flatMap((node) => {
    if (node.kind !== Kind.FRAGMENT_DEFINITION) return [];
    const fragmentName = node.name.value;
    const extensions = { code: "infiniteLoop", fragmentName };
    const path = pathTo([node]);
    return [new GraphQLError(`Fragment ${fragmentName} contains an infinite loop`, { nodes: node, path, extensions })];
  });
}

const USED = /^Variable "\$\w+" of type /;
const REQUIRED = /^Argument "(?:\w+\.(\w+)|@(\w+))\((.+):\)" of type/;

/** The service tells all required arguments that a field lacks in one error. */
function withoutRepetition(errors: readonly GraphQLError[]): readonly GraphQLError[] {
  const lacking = new Map<ASTNode, string[]>();
  for (const { message, nodes: [node] = [] } of errors) {
    const [, , , name] = REQUIRED.exec(message) ?? [];
    if (node && name !== undefined) lacking.getOrInsertComputed(node, () => []).push(name);
  }
  return errors.flatMap((error) => {
    if (repetitionIn(error) || LOOP.test(error.message)) return [];
    const [node] = error.nodes ?? [];
    const [, , , name = ""] = REQUIRED.exec(error.message) ?? [];
    const names = (node && lacking.get(node)) ?? [];
    if (names.length < 2 || name === "") return [error];
    if (names[0] !== name) return [];
    return [
      new GraphQLError(error.message.replace(`(${name}:)`, `(${names.join(", ")}:)`), { nodes: error.nodes ?? [] }),
    ];
  });
}

function linesTo(schema: GraphQLSchema, document: DocumentNode, wanted: ReadonlySet<ASTNode>): Map<ASTNode, LinePlace> {
  const found = new Map<ASTNode, LinePlace>();
  const open: ASTNode[] = [];
  const types = new Map<ASTNode, string>();
  const info = new TypeInfo(schema);
  const visitor = {
    enter(node: ASTNode): void {
      open.push(node);
      if (node.kind === Kind.ARGUMENT || node.kind === Kind.OBJECT_FIELD) types.set(node, String(info.getInputType()));
      if (node.kind === Kind.OBJECT) types.set(node, String(getNamedType(info.getInputType())));
      if (node.kind === Kind.FIELD) types.set(node, String(info.getType()));
      if (wanted.has(node)) found.set(node, { schema, line: [...open], types });
    },
    leave(): void {
      open.pop();
    },
  };
  visit(document, visitWithTypeInfo(info, visitor));
  return found;
}

/** As graphql-ruby writes where something stands: `["query Issues", "repository", "... on Node", "first"]`. Pure. */
function pathTo(line: readonly ASTNode[]): string[] {
  return line.flatMap((node) => {
    switch (node.kind) {
      case Kind.OPERATION_DEFINITION:
        return [[node.operation, node.name?.value].filter(Boolean).join(" ")];
      case Kind.FRAGMENT_DEFINITION:
        return [`fragment ${node.name.value}`];
      case Kind.INLINE_FRAGMENT:
        return [node.typeCondition ? `... on ${node.typeCondition.name.value}` : "..."];
      case Kind.FRAGMENT_SPREAD:
        return [`... ${node.name.value}`];
      case Kind.FIELD:
        return [node.alias?.value ?? node.name.value];
      case Kind.ARGUMENT:
      case Kind.OBJECT_FIELD:
        return [node.name.value];
      default:
        return [];
    }
  });
}

/** What owns a variable, as the service calls it. */
function ownerIn(line: readonly ASTNode[]): string {
  const owner = line.find(({ kind }) => kind === Kind.OPERATION_DEFINITION || kind === Kind.FRAGMENT_DEFINITION);
  const name = owner && "name" in owner && owner.name?.kind === Kind.NAME ? owner.name.value : null;
  return name ?? `anonymous ${owner?.kind === Kind.OPERATION_DEFINITION ? owner.operation : "query"}`;
}

/** How graphql-js words each mistake, and how the service does. Null: this wording is another mistake's. */
const WORDINGS: readonly (readonly [RegExp, (named: readonly string[], place: LinePlace) => Wording | null])[] = [
  [
    /^Cannot query field "(\w+)" on type "(\w+)"/,
    ([fieldName = "", typeName = ""]) => ({
      code: "undefinedField",
      message: `Field '${fieldName}' doesn't exist on type '${typeName}'`,
      details: { typeName, fieldName },
    }),
  ],
  [
    /^Unknown argument "(\w+)" on (?:field "\w+\.(\w+)"|directive "@(\w+)")/,
    ([argumentName = "", field, directive = ""]) => {
      const [typeName, name] = field === undefined ? ["Directive", directive] : ["Field", field];
      return {
        code: "argumentNotAccepted",
        message: `${typeName} '${name}' doesn't accept argument '${argumentName}'`,
        details: { name, typeName, argumentName },
      };
    },
  ],
  [
    REQUIRED,
    ([field, directive = "", missing = ""]) => {
      const [className, name] = field === undefined ? ["Directive", directive] : ["Field", field];
      return {
        code: "missingRequiredArguments",
        message: `${className} '${name}' is missing required arguments: ${missing}`,
        details: { className, name, arguments: missing },
      };
    },
  ],
  [
    /^Variable "\$(\w+)" is not defined/,
    ([variableName = ""], { line }) => ({
      code: "variableNotDefined",
      message: `Variable $${variableName} is used by ${ownerIn(line)} but not declared`,
      details: { variableName },
    }),
  ],
  [
    /^Variable "\$(\w+)" is never used/,
    ([variableName = ""], { line }) => ({
      code: "variableNotUsed",
      message: `Variable $${variableName} is declared by ${ownerIn(line)} but not used`,
      details: { variableName },
    }),
  ],
  [
    /^Variable "\$(\w+)" cannot be non-input type "(.+)"/,
    ([variableName = "", typeName = ""]) => ({
      code: "variableRequiresValidType",
      message: `${typeName} isn't a valid input type (on $${variableName})`,
      details: { variableName, typeName },
    }),
  ],
  [
    /^Variable "\$(\w+)" of type "(.+)" used in position expecting type "(.+)"/,
    ([variableName = "", typeName = "", expected = ""], { line }) => {
      const argument = argumentIn(line);
      const argumentName = argument?.name.value ?? "";
      const errorMessage = mismatchOf(typeName, expected);
      return {
        code: "variableMismatch",
        message: `${errorMessage} on variable $${variableName} and argument ${argumentName} (${typeName} / ${expected})`,
        details: { variableName, typeName, argumentName, errorMessage },
        node: argument,
      };
    },
  ],
  [
    /^Field "(\w+)" of type "(.+)" must have a selection/,
    ([field = "", typeName = ""]) => ({
      code: "selectionMismatch",
      message: `Field must have selections (field '${field}' returns ${bare(typeName)} but has no selections. Did you mean '${field} { ... }'?)`,
      details: { nodeName: `field '${field}'`, typeName: bare(typeName) },
    }),
  ],
  [
    /^Field "(\w+)" must not have a selection since type "(.+)" has no subfields/,
    ([field = "", typeName = ""], { line }) => {
      const node = line.findLast(({ kind }) => kind === Kind.FIELD);
      const chosen = node?.kind === Kind.FIELD ? (node.selectionSet?.selections ?? []) : [];
      const names = chosen.map((one) =>
        JSON.stringify(one.kind === Kind.FIELD ? one.name.value : pathTo([one]).join()),
      );
      return {
        code: "selectionMismatch",
        message: `Selections can't be made on scalars (field '${field}' returns ${bare(typeName)} but has selections [${names.join(", ")}])`,
        details: { nodeName: `field '${field}'`, typeName: bare(typeName) },
        node,
      };
    },
  ],
  [
    /^Operation of type "(\w+)" must have a selection/,
    ([typeName = ""], { line }) => {
      const node = line.find(({ kind }) => kind === Kind.OPERATION_DEFINITION);
      const name = node?.kind === Kind.OPERATION_DEFINITION ? node.name?.value : undefined;
      const nodeName =
        node?.kind === Kind.OPERATION_DEFINITION && name !== undefined
          ? `${node.operation} '${name}'`
          : "anonymous query";
      return {
        code: "selectionMismatch",
        message: `Field must have selections (${nodeName} returns ${typeName} but has no selections. Did you mean '${name ?? ""} { ... }'?)`,
        details: { nodeName, typeName },
      };
    },
  ],
  [
    /^Fragment (?:"\w+" )?cannot condition on non composite type "(\w+)"/,
    ([typeName = ""]) => ({
      code: "fragmentOnNonCompositeType",
      message: `Invalid fragment on type ${typeName} (must be Union, Interface or Object)`,
      details: { typeName },
    }),
  ],
  [
    /^The directive "@(\w+)" can only be used once/,
    ([directiveName = ""]) => ({
      code: "directiveNotUniqueForLocation",
      message: `The directive "${directiveName}" can only be used once at this location.`,
      details: { directiveName },
      areAllNamed: true,
    }),
  ],
  [
    /^Directive "@(\w+)" may not be used on (\w+)/,
    ([name = "", place = ""], { schema }) => {
      const targetName = PLACES.get(place) ?? place;
      const allowed = (schema.getDirective(name)?.locations ?? []).map((one) => PLACES.get(one) ?? one);
      return {
        code: "directiveCannotBeApplied",
        message: `'@${name}' can't be applied to ${targetName} (allowed: ${allowed.join(", ")})`,
        details: { targetName, name },
      };
    },
  ],
  [
    /^Unknown type "(\w+)"/,
    ([typeName = ""], { line }) => {
      const variable = line.find((node) => node.kind === Kind.VARIABLE_DEFINITION);
      if (variable?.kind !== Kind.VARIABLE_DEFINITION)
        return {
          code: "undefinedType",
          message: `No such type ${typeName}, so it can't be a fragment condition`,
          details: { typeName },
        };
      const variableName = variable.variable.name.value;
      return {
        code: "variableRequiresValidType",
        message: `${typeName} isn't a defined input type (on $${variableName})`,
        details: { variableName, typeName },
        node: variable,
      };
    },
  ],
  [
    /^Unknown fragment "(\w+)"/,
    ([fragmentName = ""]) => ({
      code: "useAndDefineFragment",
      message: `Fragment ${fragmentName} was used, but not defined`,
      details: { fragmentName },
    }),
  ],
  [
    /^Fragment "(\w+)" is never used/,
    ([fragmentName = ""]) => ({
      code: "useAndDefineFragment",
      message: `Fragment ${fragmentName} was defined, but not used`,
      details: { fragmentName },
    }),
  ],
  [
    /^Unknown directive "@(\w+)"/,
    ([directiveName = ""]) => ({
      code: "undefinedDirective",
      message: `Directive @${directiveName} is not defined`,
      details: { directiveName },
    }),
  ],
  [
    /^Fragment (?:"(\w+)" )?cannot be spread here as objects of type "(\w+)" can never be of type "(\w+)"/,
    ([fragment, parentName = "", typeName = ""]) => ({
      code: "cannotSpreadFragment",
      message: `Fragment ${fragment ?? ""}${fragment === undefined ? "" : " "}on ${typeName} can't be spread inside ${parentName}`,
      details: { typeName, fragmentName: fragment ?? "unknown", parentName },
    }),
  ],
  [
    /^Expected value of type "(\w+)" to include required field "(\w+)"/,
    ([inputObjectType = "", argumentName = ""]) => ({
      code: "missingRequiredInputObjectAttribute",
      message: `Argument '${argumentName}' on InputObject '${inputObjectType}' is required`,
      details: { argumentName, inputObjectType },
    }),
  ],
  [
    /^Expected value of type "(\w+)" not to include unknown field "(\w+)"/,
    ([name = "", argumentName = ""]) => ({
      code: "argumentNotAccepted",
      message: `InputObject '${name}' doesn't accept argument '${argumentName}'`,
      details: { name, typeName: "InputObject", argumentName },
    }),
  ],
  [/cannot represent|does not exist in|^Expected value of|must be|^Expected/, (_, place) => literalWording(place)],
];

/** Where directives may stand, as the service calls it. */
const PLACES: ReadonlyMap<string, string> = new Map([
  ["QUERY", "queries"],
  ["MUTATION", "mutations"],
  ["SUBSCRIPTION", "subscriptions"],
  ["FIELD", "fields"],
  ["FRAGMENT_DEFINITION", "fragment definitions"],
  ["FRAGMENT_SPREAD", "fragment spreads"],
  ["INLINE_FRAGMENT", "inline fragments"],
  ["VARIABLE_DEFINITION", "variable definitions"],
]);

function wordingOf({ message }: GraphQLError, place: LinePlace): Wording | null {
  for (const [pattern, word] of WORDINGS) {
    const match = pattern.exec(message);
    if (match) return word(match.slice(1), place);
  }
  return null;
}

function argumentIn(line: readonly ASTNode[]) {
  return line.findLast((node) => node.kind === Kind.ARGUMENT || node.kind === Kind.OBJECT_FIELD);
}

/** A value in the document that its argument does not take. */
function literalWording({ line, types }: LinePlace): Wording | null {
  const variable = line.findLast((node) => node.kind === Kind.VARIABLE_DEFINITION);
  const argument = argumentIn(line);
  if (variable?.kind === Kind.VARIABLE_DEFINITION && !argument) {
    const [variableName, typeName] = [variable.variable.name.value, print(variable.type)];
    return {
      code: "defaultValueInvalidType",
      message: `Default value for $${variableName} doesn't match type ${typeName}`,
      details: { variableName, typeName },
      node: variable,
    };
  }
  if (!argument) return null;
  const above = line.slice(0, line.indexOf(argument)).findLast(({ kind }) => HOLDERS.has(kind));
  const [typeName, name] =
    above?.kind === Kind.OBJECT
      ? ["InputObject", types.get(above) ?? ""]
      : above?.kind === Kind.DIRECTIVE
        ? ["Directive", above.name.value]
        : ["Field", above?.kind === Kind.FIELD ? above.name.value : ""];
  const argumentName = argument.name.value;
  return {
    code: "argumentLiteralsIncompatible",
    message: `Argument '${argumentName}' on ${typeName} '${name}' has an invalid value (${print(argument.value)}). Expected type '${types.get(argument)}'.`,
    details: { typeName, argumentName },
    node: argument,
  };
}

const HOLDERS: ReadonlySet<string> = new Set([Kind.OBJECT, Kind.DIRECTIVE, Kind.FIELD]);

/** In what a variable's type differs from that of its place. */
function mismatchOf(given: string, expected: string): string {
  if (bare(given) !== bare(expected)) return "Type mismatch";
  const depthOf = (type: string) => type.split("[").length;
  return depthOf(given) === depthOf(expected) ? "Nullability mismatch" : "List dimension mismatch";
}

function bare(type: string): string {
  return type.replace(/[[\]!]/g, "");
}

// Variables.

/** One fault of a variable's value. */
interface ValueProblem {
  /** Where in the value it is. */
  path: readonly (string | number)[];
  explanation: string;
}

/**
 * What is wrong with the values of an operation's variables: one error for each variable. Pure.
 * @param values as the caller sent them
 */
export function variableErrors(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
  values: Readonly<Record<string, unknown>>,
): GraphQLError[] {
  return definitions.flatMap((definition) => {
    const { value: name } = definition.variable.name;
    const type = typeFromAST(schema, definition.type);
    const isSent = Object.hasOwn(values, name);
    if (!isInputType(type) || (!isSent && definition.defaultValue)) return [];
    const value = isSent ? values[name] : null;
    const problems = problemsIn(type, value, []);
    if (problems.length === 0) return [];
    const inner = problems.filter(({ path }) => path.length > 0);
    const places = inner.map(({ path, explanation }) => `${path.join(".")} (${explanation})`).join(", ");
    const message = `Variable $${name} of type ${print(definition.type)} was provided invalid value`;
    return [
      new GraphQLError(places === "" ? message : `${message} for ${places}`, {
        nodes: definition,
        extensions: { value, problems },
      }),
    ];
  });
}

/** What is wrong with a value, each in the service's words. */
function problemsIn(type: GraphQLInputType, value: unknown, path: ValueProblem["path"]): ValueProblem[] {
  const problem = (explanation: string, ...step: string[]): ValueProblem => ({ path: [...path, ...step], explanation });
  if (isNonNullType(type)) return value == null ? [problem(NOT_NULL)] : problemsIn(type.ofType, value, path);
  if (value == null) return [];
  if (isListType(type)) {
    if (!Array.isArray(value)) return problemsIn(type.ofType, value, path);
    return value.flatMap((each, at) => problemsIn(type.ofType, each, [...path, at]));
  }
  const shown = JSON.stringify(value);
  if (isEnumType(type)) {
    const names = type.getValues().map(({ name }) => name);
    return names.some((name) => name === value) ? [] : [problem(`Expected ${shown} to be one of: ${names.join(", ")}`)];
  }
  if (isScalarType(type)) return takes(type, value) ? [] : [problem(`Could not coerce value ${shown} to ${type.name}`)];
  if (typeof value !== "object" || Array.isArray(value))
    return [problem(`Expected ${shown} to be a key-value object.`)];
  const sent = new Map<string, unknown>(Object.entries(value));
  const fields = type.getFields();
  const unknown = [...sent.keys()].filter((name) => !Object.hasOwn(fields, name));
  return [
    ...unknown.map((name) => problem(`${NOT_DEFINED}${type.name}`, name)),
    ...Object.values(fields).flatMap((field) => {
      if (sent.has(field.name)) return problemsIn(field.type, sent.get(field.name), [...path, field.name]);
      return isRequiredInputField(field) ? [problem(NOT_NULL, field.name)] : [];
    }),
  ];
}

const NOT_NULL = "Expected value to not be null";
const NOT_DEFINED = "Field is not defined on ";

function takes(type: GraphQLScalarType, value: unknown): boolean {
  try {
    return type.coerceInputValue(value) !== undefined;
  } catch (error) {
    if (error instanceof GraphQLError) return false;
    throw error;
  }
}

// Mistakes, and what a larger schema might have.

const LACKS: ReadonlySet<unknown> = new Set([
  "undefinedField",
  "argumentNotAccepted",
  "undefinedType",
  "undefinedDirective",
  "variableRequiresValidType",
]);

/**
 * Whether the document names what the service may have and the mirror has not: fields, arguments and types. All else is
 * the caller's mistake there as well, also values of enums: the mirror has each enum whole. Pure.
 */
export function mayLack({ extensions: { code, problems } }: GraphQLError): boolean {
  if (Array.isArray(problems)) return problems.some(({ explanation }) => explanation.startsWith(NOT_DEFINED));
  return LACKS.has(code);
}
