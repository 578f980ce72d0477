import type { OperationDefinitionNode, SelectionNode } from "graphql";
import {
  type Confirmation,
  findConfirmation,
  findOldestConfirmation,
  joinConfirmations,
} from "../../../mirror/read/confirmations.ts";
import type { ApiContext } from "../../call.ts";
import { freshnessHeaders } from "../../dialect/freshness.ts";
import type { GraphqlCall } from "../call.ts";

/** The headers that say how fresh an answer is. Its least fresh repository decides. */
export async function freshnessOf(
  ctx: ApiContext,
  call: GraphqlCall,
  before: Confirmation | null,
): Promise<Record<string, string>> {
  if (call.shownRepositories.size === 0) return {};
  const all = [await confirmationOf(ctx, call), before ?? undefined];
  const confirmed = joinConfirmations(all.filter((one) => one !== undefined));
  return freshnessHeaders(confirmed ?? {}, {
    now: ctx.clock.now(),
    staleAfterMs: ctx.config.staleAfterMs,
  });
}

/**
 * The confirmation that an edge reads before the rows of a document, since a replica that was cut off replays minutes
 * in a moment. Null: the document itself finds each repository before the rows in it, so its confirmation is early
 * enough.
 */
export async function confirmedBefore(
  ctx: ApiContext,
  { sight }: Pick<GraphqlCall, "sight">,
  { selectionSet }: OperationDefinitionNode,
): Promise<Confirmation | null> {
  const isFound = (one: SelectionNode) => one.kind === "Field" && FINDS.has(one.name.value);
  if (ctx.config.edgeOf === null || selectionSet.selections.every(isFound)) return null;
  return await findOldestConfirmation(ctx.reads, sight);
}

/** Fields that find a repository before the rows in it, or that show no repository. */
const FINDS = new Set(["__typename", "rateLimit", "repository"]);

async function confirmationOf(
  ctx: ApiContext,
  { shownRepositories, confirmations }: GraphqlCall,
): Promise<Confirmation | undefined> {
  const ids = [...shownRepositories];
  const known = ids.map((id) => confirmations.get(id)).filter((one) => one !== undefined);
  const all = known.length === ids.length ? joinConfirmations(known) : await findConfirmation(ctx.db, ids);
  return all;
}
