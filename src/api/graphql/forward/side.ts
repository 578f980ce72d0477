import type { GraphQLSchema } from "graphql";
import { AtCentreError } from "../../../operations/at-centre.ts";
import type { ApiContext } from "../../call.ts";
import { mayBeForwarded, type User } from "../../callers/caller.ts";
import type { Query } from "../parse.ts";
import { cursorsOf, namesUnmirrored } from "./beyond.ts";
import { knowsAllNamed } from "./forward.ts";
import { wholeOf } from "./unknown.ts";

/**
 * Which side answers. A query that either side may answer begins here. It goes to upstream if the mirror lacks
 * something.
 */
export type Side = "ours" | "upstream's" | "either";

/**
 * Which side answers, as far as the document and the caller tell.
 * @throws AtCentreError for what an edge does not answer
 */
export async function sideOf(
  query: Query,
  caller: User,
  { ctx, schema }: { ctx: ApiContext; schema: GraphQLSchema },
): Promise<Side> {
  const { operation, document, variables } = query;
  if (ctx.config.edgeOf !== null && operation.operation !== "query")
    throw new AtCentreError("An edge neither writes nor tells of changes");
  if (operation.operation === "subscription" || !mayBeForwarded(ctx, caller)) return "ours";
  // The side that began a list has to read it to its end.
  const begun = cursorsOf(document, variables.coerced);
  if (begun !== null) return begun;
  if (namesUnmirrored(schema, document)) return "upstream's";
  const isMutation = operation.operation === "mutation";
  if (isMutation && !(await knowsAllNamed(ctx, caller, wholeOf(query)))) return "upstream's";
  return "either";
}
