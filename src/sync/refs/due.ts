import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { IS_UNSURE } from "../../mirror/read/refs.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { markRepositoriesDue } from "../marks/due.ts";

/**
 * How often refs are read. Upstream sends no event for a push of more than three tags, nor for a rule that protects a
 * branch.
 */
const REFS_EVERY_MS = 60 * 60_000;

/** Whether the list of the row `l` of `ref_lists` has to be read again. An unchanged list costs nothing. */
export function isRefListDue(now: Date): SQL {
  const lag = sql`${`${REPLICA_LAG_MS} milliseconds`}::interval`;
  return sql`(l.read_at is null or l.read_at <= ${new Date(now.getTime() - REFS_EVERY_MS)}
    or exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind and ${IS_UNSURE}
      and f.told_at + ${lag} >= l.read_at and f.told_at + ${lag} < ${now}))`;
}

/** Asks for the branches and tags of repositories that were not read for a while. So a lost webhook is made up for. */
export async function markRefsDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  const lists = sql`from ref_lists l where l.repository_id = r.id`;
  await markRepositoriesDue(ctx, "refs", {
    isDue: sql`'refs' = any(s.mirrors) and (select count(*) ${lists} and not ${isRefListDue(ctx.clock.now())}) < 2`,
    confirmedAt: sql`(select min(l.read_at) ${lists})`,
  });
}
