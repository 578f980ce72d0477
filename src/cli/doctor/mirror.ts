import { eq } from "drizzle-orm";
import { askReplicas } from "../../api/call/replicas.ts";
import type { Context } from "../../context.ts";
import { findListedTargets } from "../../events/listed-targets.ts";
import { loadStatus, type RepositoryStatus, type Status } from "../../health/status.ts";
import { countTroubled } from "../../inbox/deliveries.ts";
import { problems } from "../../schema.ts";
import { counted, plain, spanOf } from "../terminal/output.ts";
import { type Finding, Findings, firstNames } from "./finding.ts";

/** How many selections get a finding of their own. */
const SHOWN_SELECTIONS = 5;
const DELIVERY_WAITS_MS = 5 * 60_000;
/** A repository is late if its catch-ups have failed for this many intervals, as docs/operations.md says. */
const LATE_INTERVALS = 3;

/** Problems that wait for a person, as far as the mirror's tables show. */
export async function examineMirror(ctx: Context): Promise<Finding[]> {
  const status = await loadStatus(
    ctx,
    async () => [],
    () => null,
    () => askReplicas(ctx),
  );
  const selections = await ctx.db
    .select({ pattern: problems.key, problem: problems.problem })
    .from(problems)
    .where(eq(problems.task, "select"))
    .orderBy(problems.key);
  const upstream = new Findings("upstream");
  for (const problem of status.problems)
    upstream.warning("upstream-fails", problem, "Mend what upstream says, or wait: it is tried again");
  const lateMs = LATE_INTERVALS * ctx.config.catchUpIntervalMs;
  return [
    ...examineReplicas(status.replicas),
    ...upstream.all,
    ...examineRepositories(status.repositories, selections, lateMs),
    ...(await examineDeliveries(ctx)),
    ...(await examineTargets(ctx)),
  ];
}

/** A selection that cannot be mirrored. */
interface SelectionRow {
  pattern: string;
  problem: string;
}

function examineReplicas(replicas: Status["replicas"]): Finding[] {
  const postgres = new Findings("postgres");
  for (const { name, leftOut } of replicas) {
    if (leftOut === null) postgres.ok(`Callers' reads go to the replica ${name}`);
    else
      postgres.warning(
        "replica",
        `The replica ${name} is left out: ${leftOut}`,
        "Mend it, or take it out of DATABASE_REPLICA_URLS; the primary answers meanwhile",
      );
  }
  return postgres.all;
}

function examineRepositories(
  all: readonly RepositoryStatus[],
  selections: readonly SelectionRow[],
  lateMs: number,
): Finding[] {
  const repositories = new Findings("repositories");
  const nameOf = ({ owner, name }: RepositoryStatus) => `${owner}/${name}`;
  const namedWith = (some: readonly RepositoryStatus[]) =>
    firstNames(some.map((one) => nameOf(one) + (one.problem === null ? "" : ` (${one.problem})`)));
  const paused = all.filter(({ state }) => state === "paused");
  if (paused.length > 0)
    repositories.problem(
      "repository-paused",
      `Paused: ${namedWith(paused)}`,
      "Mend the token's rights, or `tain remove` it",
    );
  const isSelection = (one: RepositoryStatus) => selections.some(({ pattern }) => pattern === nameOf(one));
  const failing = all.filter(
    (each) => each.problem !== null && (each.state === "live" || each.state === "backfilling") && !isSelection(each),
  );
  if (failing.length > 0)
    repositories.warning(
      "repository-fails",
      `Something fails of ${namedWith(failing)}`,
      "Mend what upstream says; it is tried again within the hour, and at once by `tain add` or `tain backfill`",
    );
  const late = all.filter(({ state, lagSeconds }) => state === "live" && (lagSeconds ?? 0) * 1_000 > lateMs);
  if (late.length > 0)
    repositories.warning(
      "repository-late",
      `Upstream has confirmed nothing for more than ${spanOf(lateMs)} of ${firstNames(late.map(nameOf))}`,
      "See that a worker and a scheduler run, that upstream answers, and that quota is left (`tain quota`)",
    );
  for (const { pattern, problem } of selections.slice(0, SHOWN_SELECTIONS))
    repositories.warning(
      "repository-wish",
      `${pattern} is selected and cannot be mirrored: ${problem}`,
      `Mend it, or \`tain remove ${pattern}\``,
    );
  return repositories.all;
}

async function examineDeliveries({ db, clock }: Context): Promise<Finding[]> {
  const { failed, overdue } = await countTroubled({ db }, new Date(clock.now().getTime() - DELIVERY_WAITS_MS));
  const deliveries = new Findings("deliveries");
  if (failed === 0) deliveries.ok("No delivery has failed");
  else
    deliveries.warning(
      "delivery-failed",
      `${counted(failed, "delivery has", "deliveries have")} failed`,
      "`tain deliveries list --status failed` says why; `tain deliveries replay --failed` tries again",
    );
  if (overdue > 0)
    deliveries.warning(
      "delivery-waits",
      `${counted(overdue, "delivery waits", "deliveries wait")} for more than five minutes`,
      "See that workers and a scheduler run",
    );
  return deliveries.all;
}

async function examineTargets(ctx: Context): Promise<Finding[]> {
  const targets = new Findings("targets");
  for (const { id, url, problem } of await findListedTargets(ctx))
    if (problem !== null)
      targets.warning(
        "target",
        `Target ${id}, ${plain(url)}: ${plain(problem)}`,
        `\`tain targets deliveries ${id}\` says what was sent; \`tain targets enable ${id}\` sends again`,
      );
  return targets.all;
}
