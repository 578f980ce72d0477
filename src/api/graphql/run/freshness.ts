import { findConfirmation } from "../../../mirror/read/confirmations.ts";
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
): Promise<{ confirmedAt?: Date | null }> {
  const known = [...shownRepositories].map((id) => confirmations.get(id));
  if (!known.includes(undefined)) {
    const times = known.filter((one) => one != null).map((one) => one.getTime());
    return { confirmedAt: known.includes(null) ? null : new Date(Math.min(...times)) };
  }
  const confirmedAt = await findConfirmation(ctx.db, [...shownRepositories]);
  return confirmedAt === undefined ? {} : { confirmedAt };
}
