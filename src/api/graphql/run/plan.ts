import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  GraphQLString,
  getArgumentValues,
  type getVariableValues,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  visit,
} from "graphql";

/**
 * An operation's selections, worked out once per document: the fields of each type, with their arguments, and how their
 * values are read and written.
 */

export type VariableValues = Extract<
  ReturnType<typeof getVariableValues>,
  { variableValues: unknown }
>["variableValues"];

/** A field as its resolver sees it. Resolvers of the schema itself also read the schema. */
export type FieldInfo = Pick<GraphQLResolveInfo, "fieldName" | "parentType" | "fieldNodes" | "fragments" | "schema"> & {
  /** Names the selection on a connection's nodes, if it is the same for all variables. */
  view?: string | null;
};

/** The nodes of one field. It may be selected several times under one name; its selections are merged. */
type FieldNodes = readonly [FieldNode, ...FieldNode[]];
type Arguments = Record<string, unknown>;
type Fragments = Readonly<Record<string, FragmentDefinitionNode>>;
type ResolveField = (source: unknown, args: Arguments, context: unknown, info: FieldInfo) => unknown;

/** One field of one type, under the name that it has in the answer. */
export interface PlannedField {
  key: string;
  /** The field's name in the answer, quoted, with the colon. */
  label: string;
  nodes: FieldNodes;
  /** The field's definition. Null: the field is `__typename`, which the type itself answers. */
  definition: GraphQLField<unknown, unknown> | null;
  form: Form;
  resolve: ResolveField | null;
  info: FieldInfo;
  /** The field's number within the plan. */
  slot: number;
  /** Whether the arguments are the same for all variables. */
  isConstant: boolean;
  constant: Arguments | undefined;
  /** The selections on the field's value, by the name of the concrete type. */
  inner: Map<string, PlannedSelection>;
}

export interface PlannedSelection {
  type: GraphQLObjectType;
  fields: readonly PlannedField[];
}

/** How a value of a type is written. */
export type Form =
  | { of: "leaf"; isRequired: boolean; type: GraphQLLeafType }
  | { of: "list"; isRequired: boolean; item: Form }
  | { of: "object"; isRequired: boolean; type: GraphQLObjectType }
  | { of: "abstract"; isRequired: boolean; type: GraphQLAbstractType };

function typeForm(type: GraphQLOutputType): Form {
  if (isNonNullType(type)) return { ...typeForm(type.ofType), isRequired: true };
  if (isListType(type)) return { of: "list", isRequired: false, item: typeForm(type.ofType) };
  if (isLeafType(type)) return { of: "leaf", isRequired: false, type };
  return isAbstractType(type) ? { of: "abstract", isRequired: false, type } : { of: "object", isRequired: false, type };
}

/** A field that the service has and the mirror does not hold. In the document a `__typename` stands in its place. */
export interface UnheldField {
  /** The same for all its places: making each place its own takes long. */
  error: GraphQLError;
  /** Whether the service's type says that it is never null. Its parent is shown as null then. */
  isRequired: boolean;
}

const TEXT = { of: "leaf", type: GraphQLString } as const;

const refusing =
  ({ error }: UnheldField): ResolveField =>
  () => {
    throw error;
  };

/** The root's own fields, which its type does not list. */
const META_FIELDS: ReadonlyMap<string, GraphQLField<unknown, unknown>> = new Map(
  [SchemaMetaFieldDef, TypeMetaFieldDef].map((field) => [field.name, field]),
);

/** Counts the fields that were planned. */
export interface FieldCount {
  fields: number;
}

interface PlanParts {
  /** The plan's name. No other plan of this process has it. */
  name: string;
  prepared: Prepared;
  chosen: Readonly<Record<string, boolean>>;
  tally: FieldCount;
}

/** The plan of a query under one choice of what is skipped and included. */
export class Plan {
  readonly schema: GraphQLSchema;
  readonly root: PlannedSelection;
  readonly fragments: Fragments;
  /** Whether answers of this plan may be kept. */
  readonly isKeepable: boolean;
  /** Whether the root's fields run one after another. */
  readonly isSerial: boolean;
  readonly #name: string;
  readonly #chosen: Readonly<Record<string, boolean>>;
  readonly #tally: FieldCount;
  readonly #unheld: Prepared["unheld"];
  #slots = 0;

  constructor(
    schema: GraphQLSchema,
    rootType: GraphQLObjectType,
    operation: OperationDefinitionNode,
    { name, prepared, chosen, tally }: PlanParts,
  ) {
    this.schema = schema;
    this.fragments = prepared.fragments;
    this.isKeepable = prepared.isKeepable;
    this.isSerial = operation.operation === "mutation";
    this.#name = name;
    this.#chosen = chosen;
    this.#tally = tally;
    this.#unheld = prepared.unheld;
    this.root = this.#selection(rootType, [operation.selectionSet]);
  }

  get slots(): number {
    return this.#slots;
  }

  /** The selection on a value of the field that turned out to be of this type. */
  inner(field: PlannedField, type: GraphQLObjectType): PlannedSelection {
    let selection = field.inner.get(type.name);
    if (!selection) {
      selection = this.#selection(
        type,
        field.nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
      );
      field.inner.set(type.name, selection);
    }
    return selection;
  }

  /** The arguments of a field. @throws GraphQLError for arguments that the field cannot take */
  argumentsOf(field: PlannedField, variables: VariableValues): Arguments {
    if (field.constant) return field.constant;
    if (!field.definition) return {};
    const args = getArgumentValues(field.definition, field.nodes[0], variables, undefined, true);
    if (field.isConstant) field.constant = args;
    return args;
  }

  #selection(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): PlannedSelection {
    const grouped = new Map<string, [FieldNode, ...FieldNode[]]>();
    const spread = new Set<string>();
    const collect = (set: SelectionSetNode): void => {
      for (const selection of set.selections) {
        if (this.#isLeftOut(selection)) continue;
        if (selection.kind === Kind.FIELD) {
          const key = selection.alias?.value ?? selection.name.value;
          const group = grouped.get(key);
          if (group) group.push(selection);
          else grouped.set(key, [selection]);
          continue;
        }
        if (selection.kind === Kind.FRAGMENT_SPREAD) {
          const { value: name } = selection.name;
          if (spread.has(name)) continue;
          spread.add(name);
          const fragment = this.fragments[name];
          if (fragment && this.#applies(fragment, type)) collect(fragment.selectionSet);
        } else if (this.#applies(selection, type)) collect(selection.selectionSet);
      }
    };
    for (const set of sets) collect(set);
    return { type, fields: [...grouped].map(([key, nodes]) => this.#field(type, key, nodes)) };
  }

  #field(parentType: GraphQLObjectType, key: string, nodes: FieldNodes): PlannedField {
    const { value: fieldName } = nodes[0].name;
    const unheld = this.#unheld.get(nodes[0]);
    const definition = unheld
      ? TypeNameMetaFieldDef
      : (parentType.getFields()[fieldName] ?? META_FIELDS.get(fieldName) ?? null);
    if (!definition && fieldName !== "__typename")
      throw new Error(`A document was validated with an unknown field: ${parentType}.${fieldName}`);
    const slot = this.#slots++;
    this.#tally.fields += 1;
    const selected = { fieldNodes: nodes, fragments: this.fragments };
    // `@skip` and `@include` depend on variables too, but those are fixed for the plan.
    const hasView =
      fieldName === "nodes" && !selects(selected, ({ arguments: args }) => args?.some(hasVariable) ?? false);
    return {
      key,
      label: `${JSON.stringify(key)}:`,
      nodes,
      definition,
      form: unheld ? { ...TEXT, isRequired: unheld.isRequired } : typeForm(definition?.type ?? GraphQLString),
      // No type can say that our resolvers read no more of the info than a plan has.
      resolve: unheld ? refusing(unheld) : ((definition?.resolve as ResolveField | undefined) ?? null),
      info: { fieldName, parentType, schema: this.schema, ...selected, view: hasView ? `${this.#name}/${slot}` : null },
      slot,
      isConstant: !nodes[0].arguments?.some(hasVariable),
      constant: definition?.args.length === 0 ? {} : undefined,
      inner: new Map(),
    };
  }

  #applies(
    { typeCondition }: { typeCondition?: FragmentDefinitionNode["typeCondition"] | undefined },
    type: GraphQLObjectType,
  ): boolean {
    if (!typeCondition) return true;
    const condition = this.schema.getType(typeCondition.name.value);
    return condition === type || (isAbstractType(condition) && this.schema.isSubType(condition, type));
  }

  #isLeftOut(selection: SelectionNode): boolean {
    return (selection.directives ?? []).some(({ name, arguments: args }) => {
      const value = args?.[0]?.value;
      const condition =
        value?.kind === Kind.VARIABLE
          ? this.#chosen[value.name.value]
          : value?.kind === Kind.BOOLEAN
            ? value.value
            : undefined;
      return (name.value === "skip" && condition === true) || (name.value === "include" && condition === false);
    });
  }
}

/** All plans of an operation share this. */
export interface Prepared {
  fragments: Fragments;
  isKeepable: boolean;
  /** The fields of the document that are not held. */
  unheld: ReadonlyMap<FieldNode, UnheldField>;
}

function hasVariable(argument: Parameters<typeof visit>[0]): boolean {
  let found = false;
  visit(argument, {
    Variable: () => {
      found = true;
    },
  });
  return found;
}

/** The object type of a value of an abstract type. @throws GraphQLError if the abstract type does not include it */
export function concreteType(
  schema: GraphQLSchema,
  type: GraphQLAbstractType,
  name: unknown,
  { nodes, info }: PlannedField,
): GraphQLObjectType {
  const found = typeof name === "string" ? schema.getType(name) : undefined;
  if (isObjectType(found) && schema.isSubType(type, found)) return found;
  const of = `for field "${info.parentType}.${info.fieldName}"`;
  throw new GraphQLError(
    isObjectType(found)
      ? `Runtime Object type "${found}" is not a possible type for "${type}".`
      : name == null
        ? `Abstract type "${type}" must resolve to an Object type at runtime ${of}. Either the "${type}" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function.`
        : `Abstract type "${type}" was resolved to a type "${name}" that does not exist inside the schema.`,
    { nodes },
  );
}

/**
 * Whether the test holds for a field that these fields select, directly or deeper, through fragments as well.
 * @param options.isDeep false: only fields that are selected directly
 */
export function selects(
  {
    fieldNodes,
    fragments,
  }: { fieldNodes: readonly FieldNode[]; fragments: Readonly<Record<string, FragmentDefinitionNode>> },
  test: (field: FieldNode) => boolean,
  { isDeep = true }: { isDeep?: boolean } = {},
): boolean {
  const looked = new Set<string>();
  const looksIn = (set: SelectionSetNode | undefined): boolean =>
    set?.selections.some((selection) => {
      if (selection.kind === Kind.FIELD) return test(selection) || (isDeep && looksIn(selection.selectionSet));
      if (selection.kind === Kind.INLINE_FRAGMENT) return looksIn(selection.selectionSet);
      const { value: name } = selection.name;
      if (looked.has(name)) return false;
      looked.add(name);
      return looksIn(fragments[name]?.selectionSet);
    }) ?? false;
  return fieldNodes.some(({ selectionSet }) => looksIn(selectionSet));
}

/** The value of a field without a resolver of its own: the property, or the result if the property is a function. */
export function propertyOf(source: unknown, info: FieldInfo, args: unknown, context: unknown): unknown {
  if (typeof source !== "object" || source === null) return undefined;
  // No type can say which properties the sources of a field have.
  const value = (source as Record<string, unknown>)[info.fieldName];
  return typeof value === "function" ? value.call(source, args, context, info) : value;
}

export function leafText(type: GraphQLLeafType, value: unknown): string {
  // A string type shows these values as they are.
  if (typeof value === "string" && isText(type)) return jsonString(value);
  const coerced: unknown = type.coerceOutputValue(value);
  if (coerced == null) throw new Error(`A value of the type ${type} cannot be shown: ${value}`);
  return typeof coerced === "string" ? jsonString(coerced) : JSON.stringify(coerced);
}

function isText(type: GraphQLLeafType): boolean {
  const { name } = type;
  return name === "String" || name === "ID" || name === "DateTime" || name === "URI";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON escapes
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

function jsonString(text: string): string {
  return text.length < 64 && !ESCAPED.test(text) ? `"${text}"` : JSON.stringify(text);
}

/**
 * How long a text may be before it is flattened. A shorter one is a tree of ten thousand pieces at most, which is read
 * within a millisecond or two.
 */
export const PIECE_CHARACTERS = 256 * 1024;

/**
 * The same text, in one piece of memory if it is long. A concatenated string is a tree of its pieces until it is read.
 * Reading the 1.5 million pieces of a long answer at once takes 50 ms.
 */
export function flat(text: string): string {
  // Counting the bytes makes the engine flatten the string.
  if (text.length > PIECE_CHARACTERS) Buffer.byteLength(text);
  return text;
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Whether the value is a list. As in graphql-js, strings are none. */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

interface Shared {
  /** The object that stands for the resource, wherever the answer shows it. */
  rest: object;
  /** Takes the text of a resource that one view alone shows. */
  keep?: (text: string) => void;
}

/** A resource that one answer may show at many places. */
export function isShared(value: unknown): value is Shared {
  return typeof value === "object" && value !== null && "rest" in value;
}

/** The place of a value in the answer. */
export interface ResponsePath {
  above: ResponsePath | undefined;
  key: string | number;
}

export function responsePath(place: ResponsePath): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: ResponsePath | undefined = place; at; at = at.above) path.push(at.key);
  return path.reverse();
}

/** Collects the errors of one answer. */
export class Faults {
  /** The errors that the answer shows. */
  readonly errors: GraphQLError[] = [];
  /** The places that are null because of an error. Errors below such a place are not shown. */
  readonly #nulled = new Set<string>();
  #count = 0;

  /** How many errors occurred, shown or not. */
  get count(): number {
    return this.#count;
  }

  /** @param path the path of the value that is null because of the error */
  add(error: GraphQLError, path: readonly (string | number)[]): void {
    this.#count += 1;
    // No name of a field has a slash.
    let place = "";
    if (this.#nulled.has(place)) return;
    for (const step of path) {
      place += `/${step}`;
      if (this.#nulled.has(place)) return;
    }
    this.#nulled.add(place);
    this.errors.push(error);
  }
}
