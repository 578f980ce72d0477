import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { markRepositoriesDue } from "../marks/due.ts";
import { areListsDue } from "./confirm.ts";

/** Asks for the lists of repositories that were not confirmed for a while. So a lost webhook is made up for. */
export async function markListsDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  await markRepositoriesDue(ctx, "lists", {
    isDue: sql`s.mirrors && array['commits', 'threads'] and ${areListsDue(ctx)}`,
    confirmedAt: sql`s.lists_confirmed_at`,
  });
}
