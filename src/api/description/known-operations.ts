import type { KnownOperation, Operation, ServedOperation } from "../call/operation.ts";
import { REST_DOCS } from "../dialect/fault.ts";
import { dereferenced, type Parameter, type Published, wholePath } from "./published.ts";

/** Parameters that upstream's own `Link` has and that upstream does not publish. */
const UNPUBLISHED: Readonly<Record<string, readonly string[]>> = {
  "GET /repos/:owner/:repo/issues": ["after", "before"],
};

/**
 * What is published of each operation, and what `Link` adds to its parameters. Pure.
 * @throws Error for an operation that `published` lacks
 */
export function knownOperations(
  served: readonly ServedOperation[],
  { operations, components }: Published,
): ReadonlyMap<Operation, KnownOperation> {
  return new Map(
    served.map((one) => {
      const path = wholePath(one);
      const name = `${one.route.method} ${path}`;
      const known = operations[name];
      if (!known) throw new Error(`${name} is not in published.json: run scripts/generate/published.ts`);
      const { externalDocs, parameters = [] } = known.operation;
      const all = parameters.map((each) => dereferenced<Parameter>(each, components));
      const names = all.flatMap((each) => (each.in === "query" ? [each.name] : []));
      return [
        one.route,
        {
          form: path.replace(/:\w+/g, "*"),
          docs: externalDocs?.url ?? REST_DOCS,
          parameters: new Set([...names, ...(UNPUBLISHED[name] ?? [])]),
        },
      ];
    }),
  );
}
