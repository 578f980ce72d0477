import type { Fields } from "../../../json.ts";
import { findNamesDue, storeNames } from "../../../mirror/store/names.ts";
import { isLacking } from "../../../mirror/store/upstream-lacks.ts";
import { EMAILS, NAMES_A_QUERY, namesQuestion } from "../../../upstream/protocol/account-names.ts";
import type { ApiContext } from "../../call/call.ts";
import type { Caller } from "../../callers/permissions.ts";
import { ShareSpentFault } from "../../callers/upstream-for-callers.ts";
import { ApiFault } from "../../dialect/fault.ts";

/**
 * The names of accounts that the mirror does not know yet: who writes for the first time is shown without a name. One
 * query a level of the document, out of the caller's share of reads. Answers what upstream shows of each account, or
 * null where it cannot be asked, or was not clear.
 */
export async function askNames(
  ctx: ApiContext,
  { caller, requestId }: { caller: Caller; requestId: string },
  ids: readonly number[],
): Promise<(Fields | null)[]> {
  const none = ids.map(() => null);
  if (ctx.readDb.isReadOnly) return none;
  const due = (await findNamesDue(ctx.db, ids, ctx.clock.now())).slice(0, NAMES_A_QUERY);
  if (due.length === 0) return none;
  // A worker learns whether the mirror's token may read emails: it reads names first, and where it is told of them.
  const withEmails = !(await isLacking(ctx.db, EMAILS, ctx.clock.now()));
  try {
    const { value: names, seenAt } = await ctx.upstream.query(caller, namesQuestion(due, { withEmails }));
    await ctx.db.transaction((tx) => storeNames(tx, { names, seenAt, api: ctx.config.upstreamUrl }));
    return ids.map((id) => {
      const shown = names.get(id);
      return shown === undefined || shown === "unclear" ? null : shown;
    });
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (!(error instanceof ShareSpentFault))
      ctx.log.warn({ err: error.cause, requestId }, "Names could not be asked for");
    return none;
  }
}
