import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { markRepositoriesDue } from "../marks/due.ts";
import { isListDue, isListWhole, LISTED_PARTS, type ListedKind, listedOf } from "./listed.ts";

/** Asks for the lists of repositories that were not read for a while. So a lost webhook is made up for. */
export async function markResourceListsDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  for (const part of LISTED_PARTS) {
    const lists = listedOf(part);
    const rowOf = ({ list }: ListedKind) => sql`from ${list.table} l where l.repository_id = r.id`;
    const current = lists.map(
      (one) => sql`exists (select ${rowOf(one)} and not ${isListDue(one, ctx.clock.now())} and ${isListWhole(one)})`,
    );
    await markRepositoriesDue(ctx, part, {
      isDue: sql`${part} = any(s.mirrors) and not (${sql.and(current)})`,
      confirmedAt: sql`least(${sql.join(lists.map((one) => sql`(select l.read_at ${rowOf(one)})`))})`,
    });
  }
}
