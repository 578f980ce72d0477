import type { Operation, ServedOperation } from "../call/operation.ts";
import { dereferenced, type Parameter, type Published, wholePath } from "./published.ts";

/** Parameters that upstream's own `Link` has and that upstream does not publish. */
const UNPUBLISHED: Readonly<Record<string, readonly string[]>> = {
  "GET /repos/:owner/:repo/issues": ["after", "before"],
};

/**
 * The names of the query parameters that each operation knows: what is published of it, and what `Link` adds. Pure.
 * @throws Error for an operation that `published` lacks
 */
export function knownParameters(
  served: readonly ServedOperation[],
  { operations, components }: Published,
): ReadonlyMap<Operation, ReadonlySet<string>> {
  return new Map(
    served.map((one) => {
      const name = `${one.route.method} ${wholePath(one)}`;
      const known = operations[name];
      if (!known) throw new Error(`${name} is not in published.json: run scripts/generate/published.ts`);
      const parameters = (known.operation.parameters ?? []).map((each) => dereferenced<Parameter>(each, components));
      const names = parameters.flatMap((each) => (each.in === "query" ? [each.name] : []));
      return [one.route, new Set([...names, ...(UNPUBLISHED[name] ?? [])])];
    }),
  );
}
