import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { storeMarks } from "../../mirror/store/marks.ts";
import { checksMark } from "../deliveries/checks-heard.ts";
import { rests } from "../problems/problems.ts";
import { enqueueMarks } from "../refresh/marks.ts";
import { confirmationDue } from "./confirm.ts";
import { HAS_UNREAD_CHECKS } from "./heads.ts";

const AT_ONCE = 1_000;
/** What upstream does not show is asked for again with the confirmation of all heads, and not before. */
const UNREAD_MS = 15 * 60_000;

/** Asks for checks that were not read or not confirmed for a while. So a lost webhook is made up for. */
export async function markChecksDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  const now = ctx.clock.now();
  const rows = await ctx.db.query<{ id: number }>(sql`
    select r.id::float8 as id from repositories r join repository_syncs s on s.repository_id = r.id
      where s.state = 'live' and 'checks' = any(s.mirrors) and not ${rests(ctx, "refresh", sql`r.id::text`)}
        and not exists (select from refresh_marks m where m.kind = 'checks' and m.repository_id = r.id)
        and (${confirmationDue(now)}
          or (s.checks_confirmed_at <= ${new Date(now.getTime() - UNREAD_MS)} and ${HAS_UNREAD_CHECKS}))
      order by s.checks_confirmed_at nulls first, r.id limit ${AT_ONCE}`);
  const marks = rows.map(({ id }) => checksMark(id, now));
  await storeMarks(ctx.db, marks);
  await enqueueMarks(ctx, marks);
}
