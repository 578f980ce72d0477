import {
  type DefinitionNode,
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
  visit,
} from "graphql";
import { isKeepable } from "../documents.ts";

/** An operation's selections, worked out once per document: the fields of each type, with their arguments. */

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

/** The root's own fields, which its type does not list. */
const META_FIELDS: ReadonlyMap<string, GraphQLField<unknown, unknown>> = new Map(
  [SchemaMetaFieldDef, TypeMetaFieldDef].map((field) => [field.name, field]),
);

/** How many plans of one operation are kept, one for each choice of its `@skip` and `@include`. */
const MAX_CHOICES = 16;
/** How many fields all kept plans may have together, at some 400 bytes each. A short document may select 20,000. */
const MAX_PLANNED_FIELDS = 100_000;

/** Counts the fields that were planned. */
interface FieldCount {
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
    const definition = parentType.getFields()[fieldName] ?? META_FIELDS.get(fieldName) ?? null;
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
      form: typeForm(definition?.type ?? GraphQLString),
      // No type can say that our resolvers read no more of the info than a plan has.
      resolve: (definition?.resolve as ResolveField | undefined) ?? null,
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
  ): Plan | null {
    if (this.#tally.fields > MAX_PLANNED_FIELDS) {
      this.#known = new WeakMap();
      this.#tally = { fields: 0 };
    }
    let planned = this.#known.get(operation);
    if (!planned) {
      planned = prepare(definitions, operation);
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

/** All plans of an operation share this. */
interface Prepared {
  fragments: Fragments;
  isKeepable: boolean;
}

interface Planned extends Prepared {
  /** The variables that `@skip` and `@include` depend on. */
  conditions: readonly string[];
  plans: Map<string, Plan>;
}

function prepare(definitions: readonly DefinitionNode[], operation: OperationDefinitionNode): Planned {
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
    plans: new Map(),
  };
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
