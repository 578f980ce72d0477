import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { markRepositoriesDue } from "../marks/due.ts";
import { confirmationDue } from "./confirm.ts";
import { HAS_UNREAD_CHECKS } from "./heads.ts";

/** Heads that upstream does not show are asked for again when all heads are confirmed, and not before. */
const HEADS_UNREAD_MS = 15 * 60_000;

/** Asks for checks that were not read or not confirmed for a while. So a lost webhook is made up for. */
export async function markChecksDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  const now = ctx.clock.now();
  const isUnread = sql`s.checks_confirmed_at <= ${new Date(now.getTime() - HEADS_UNREAD_MS)} and ${HAS_UNREAD_CHECKS}`;
  await markRepositoriesDue(ctx, "checks", {
    isDue: sql`'checks' = any(s.mirrors) and (${confirmationDue(ctx)} or (${isUnread}))`,
    confirmedAt: sql`s.checks_confirmed_at`,
  });
}
