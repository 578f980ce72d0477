import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { countTroubled } from "../../inbox/deliveries.ts";
import { counted } from "../output.ts";
import { type Finding, Findings, named } from "./finding.ts";

/** Wishes with a finding of their own. */
const SHOWN_WISHES = 5;
const OVERDUE_MS = 5 * 60_000;

/** Problems that wait for a person, as far as the mirror's tables show. */
export async function examineMirror({ db, clock }: Context): Promise<Finding[]> {
  const states = await db.query<{ full_name: string; problem: string | null }>(sql`
    select r.full_name, s.problem from repository_syncs s join repositories r on r.id = s.repository_id
      where s.state = 'paused' order by lower(r.full_name)`);
  const wishes = await db.query<{ pattern: string; problem: string }>(sql`
    select key as pattern, problem from problems where task = 'select' order by key`);
  const { failed, overdue } = await countTroubled({ db }, new Date(clock.now().getTime() - OVERDUE_MS));
  const repositories = new Findings("repositories");
  if (states.length > 0)
    repositories.problem(
      `Paused: ${named(states.map(({ full_name: name, problem }) => (problem ? `${name} (${problem})` : name)))}`,
      "Mend the token's rights, or `tain remove` it",
    );
  for (const { pattern, problem } of wishes.slice(0, SHOWN_WISHES))
    repositories.warning(
      `${pattern} is wished and cannot be mirrored: ${problem}`,
      `Mend it, or \`tain remove ${pattern}\``,
    );
  const deliveries = new Findings("deliveries");
  if (failed === 0) deliveries.ok("No delivery has failed");
  else
    deliveries.warning(
      `${counted(failed, "delivery has", "deliveries have")} failed`,
      "`tain deliveries list --status failed` says why; `tain deliveries replay --failed` tries again",
    );
  if (overdue > 0)
    deliveries.warning(
      `${counted(overdue, "delivery waits", "deliveries wait")} for more than five minutes`,
      "See that workers and a scheduler run",
    );
  return [...repositories.all, ...deliveries.all];
}
