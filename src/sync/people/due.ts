import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { markRepositoriesDue } from "../marks/due.ts";
import { isPeopleListDue, isSpeaker } from "./lists.ts";

/** Asks for the lists of people that were not read for a while. So a lost webhook is made up for. */
export async function markPeopleDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  const own = sql`from people_lists l where l.repository_id = r.id`;
  const isDue = isPeopleListDue(ctx.clock.now());
  await markRepositoriesDue(ctx, "people", {
    isDue: sql`'people' = any(s.mirrors) and (not exists (select ${own}) or exists (select ${own} and (${isDue} or l.home_id <> r.owner_id))
      or (${isSpeaker} and exists (select from people_lists l where l.repository_id = 0 and l.home_id = r.owner_id and ${isDue})))`,
    confirmedAt: sql`(select min(l.read_at) ${own})`,
  });
}
