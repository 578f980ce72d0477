import {
  BREAK,
  type DefinitionNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  visit,
} from "graphql";
import { type FieldCount, Plan, type Prepared, type UnheldField, type VariableValues } from "./plan.ts";

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
    unheld: Prepared["unheld"] = ALL_IS_HELD,
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
  unheld: Prepared["unheld"],
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
