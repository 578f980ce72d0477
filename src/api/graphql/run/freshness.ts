import { type Confirmation, findConfirmation, joinConfirmations } from "../../../mirror/read/confirmations.ts";
import type { ApiContext } from "../../call.ts";
import { freshnessHeaders } from "../../dialect/freshness.ts";
import type { GraphqlCall } from "../call.ts";

/** The headers that say how fresh an answer is: as fresh as the least fresh repository in it. */
export async function freshnessOf(ctx: ApiContext, call: GraphqlCall): Promise<Record<string, string>> {
  if (call.shownRepositories.size === 0) return {};
  return freshnessHeaders(await confirmationOf(ctx, call), {
    now: ctx.clock.now(),
    staleAfterMs: ctx.config.staleAfterMs,
  });
}

async function confirmationOf(
  ctx: ApiContext,
  { shownRepositories, confirmations }: GraphqlCall,
): Promise<Partial<Confirmation>> {
  const ids = [...shownRepositories];
  const known = ids.map((id) => confirmations.get(id)).filter((one) => one !== undefined);
  const all = known.length === ids.length ? joinConfirmations(known) : await findConfirmation(ctx.db, ids);
  return all ?? {};
}
