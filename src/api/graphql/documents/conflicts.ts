import { type FieldNode, GraphQLError, Kind, print } from "graphql";

/**
 * Fields of one name that cannot be merged, in the service's words: one error for each name, with all its fields. Pure.
 * @param errors graphql-js's. Each names the fields of one side and then those of the other, in pairs
 */
export function conflictsInServiceWords(errors: readonly GraphQLError[]): GraphQLError[] {
  const told = new Map<string, { field: string; kind: "a field" | "an argument"; sides: Map<FieldNode, string> }>();
  for (const { nodes = [] } of errors) {
    const half = nodes.length / 2;
    for (const [at, one] of nodes.slice(0, half).entries()) {
      const other = nodes[half + at];
      if (one.kind !== Kind.FIELD || other?.kind !== Kind.FIELD) continue;
      const field = (one.alias ?? one.name).value;
      const isOfNames = one.name.value !== other.name.value;
      if (!isOfNames && argumentsOf(one, true) === argumentsOf(other, true)) continue;
      const kind = isOfNames ? "a field" : "an argument";
      const { sides } = told.getOrInsertComputed(`${kind} ${field}`, () => ({ field, kind, sides: new Map() }));
      for (const side of [one, other]) sides.set(side, isOfNames ? side.name.value : argumentsOf(side));
    }
  }
  return [...told.values()].map(({ field, kind, sides }) => {
    const conflicts = [...sides.values()].join(" or ");
    return new GraphQLError(`Field '${field}' has ${kind} conflict: ${conflicts}?`, {
      nodes: [...sides.keys()],
      path: [],
      extensions: { code: "fieldConflict", fieldName: field, conflicts },
    });
  });
}

/** The arguments as graphql-ruby writes them: each value as a text of its own. */
function argumentsOf({ arguments: given = [] }: FieldNode, isSorted = false): string {
  const written = given.map(({ name, value }) => `${name.value}:${JSON.stringify(print(value))}`);
  return `{${(isSorted ? written.toSorted() : written).join(",")}}`;
}
