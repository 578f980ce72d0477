/**
 * What a query costs, by the published formula. Pure.
 *
 * GitHub docs: "Add up the number of requests needed to fulfill each unique connection in the call. Assume every
 * request will reach the `first` or `last` argument limits. Divide the number by 100 and round the result to the
 * nearest whole number." The node limit adds up, over the same connections, how many nodes they may return.
 *
 * A connection with neither argument is only counted. The docs say nothing of its price, and no measurement is known.
 * It asks for no page, so it is taken to need no request, unless `chargeCounts` says that it needs one per parent, too.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";

export const NODE_LIMIT = 500_000;
export const PAGE_LIMIT = 100;

export interface Cost {
  /** Points, at least 1. */
  points: number;
  /** Most nodes that the query could return. */
  nodeCount: number;
  /** Requests that the connections need, before division by 100. */
  requests: number;
}

/**
 * Prices one operation. `variables` are the coerced values, defaults filled in; a variable that is absent counts as not
 * given. Pages larger than 100 are priced as 100: the resolver refuses them anyway.
 */
export function priceOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
  { chargeCounts = false }: { readonly chargeCounts?: boolean } = {},
): Cost {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const literalOf = (node: ValueNode | undefined): unknown => {
    switch (node?.kind) {
      case Kind.VARIABLE:
        return variables[node.name.value];
      case Kind.INT:
        return Number(node.value);
      case Kind.BOOLEAN:
        return node.value;
      case Kind.LIST:
        return node.values;
      case undefined:
        return undefined;
      default:
        return null;
    }
  };
  const argument = (field: FieldNode, name: string) =>
    literalOf(field.arguments?.find((argument) => argument.name.value === name)?.value);
  const isSkipped = (directives: FieldNode["directives"]) =>
    (directives ?? []).some((directive) => {
      const condition = literalOf(directive.arguments?.[0]?.value);
      return (
        (directive.name.value === "skip" && condition === true) ||
        (directive.name.value === "include" && condition === false)
      );
    });

  // Selections of one response name under one type are one field, however often the document repeats them.
  interface Slot {
    field: FieldNode;
    parent: GraphQLCompositeType;
    sets: SelectionSetNode[];
  }
  const collect = (parent: GraphQLCompositeType, sets: readonly SelectionSetNode[]): Map<string, Slot> => {
    const slots = new Map<string, Slot>();
    const visited = new Set<string>();
    const walk = (type: GraphQLCompositeType, set: SelectionSetNode) => {
      for (const selection of set.selections) {
        if (isSkipped(selection.directives)) continue;
        if (selection.kind === Kind.FIELD) {
          const key = `${type.name}:${selection.alias?.value ?? selection.name.value}`;
          const slot = slots.get(key) ?? { field: selection, parent: type, sets: [] };
          if (selection.selectionSet) slot.sets.push(selection.selectionSet);
          slots.set(key, slot);
          continue;
        }
        const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
        if (fragment === undefined) continue;
        if (selection.kind === Kind.FRAGMENT_SPREAD) {
          const visit = `${type.name}:${selection.name.value}`;
          if (visited.has(visit)) continue;
          visited.add(visit);
        }
        const condition = fragment.typeCondition ? schema.getType(fragment.typeCondition.name.value) : type;
        if (condition && isCompositeType(condition)) walk(condition, fragment.selectionSet);
      }
    };
    for (const set of sets) walk(parent, set);
    return slots;
  };

  let requests = 0;
  let nodeCount = 0;
  const price = (parent: GraphQLCompositeType, sets: readonly SelectionSetNode[], parents: number): void => {
    for (const { field, parent: owner, sets: inner } of collect(parent, sets).values()) {
      if (!(isObjectType(owner) || isInterfaceType(owner))) continue;
      const definition = owner.getFields()[field.name.value];
      if (!definition || inner.length === 0) continue;
      const type = getNamedType(definition.type);
      if (!isCompositeType(type)) continue;
      if (isConnection(definition)) {
        const size = pageSize(argument(field, "first")) ?? pageSize(argument(field, "last"));
        if (size !== undefined || chargeCounts) requests += parents;
        const nodes = parents * (size ?? 0);
        nodeCount += nodes;
        price(type, inner, nodes);
      } else {
        const ids =
          field.name.value === "nodes" && owner === schema.getQueryType() ? argument(field, "ids") : undefined;
        price(type, inner, parents * (Array.isArray(ids) ? ids.length : 1));
      }
    }
  };
  const root = schema.getRootType(operation.operation);
  if (!root) throw new Error(`The schema has no ${operation.operation}`);
  price(root, [operation.selectionSet], 1);
  return { points: Math.max(1, Math.round(requests / 100)), nodeCount, requests };
}

/** A connection is told from an object by its paging arguments and the name of its type. */
function isConnection(field: GraphQLField<unknown, unknown>): boolean {
  return (
    getNamedType(field.type).name.endsWith("Connection") && field.args.some((argument) => argument.name === "first")
  );
}

function pageSize(value: unknown): number | undefined {
  return typeof value === "number" ? Math.min(Math.max(value, 0), PAGE_LIMIT) : undefined;
}
