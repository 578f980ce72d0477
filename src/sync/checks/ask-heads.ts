import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { joinObserved, type Observed, observe } from "../../mirror/store/observation.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { isOf, type NodeQuestions } from "../questions/node-questions.ts";
import { readHeadWithIds, type ShownCheck } from "../reads/head-sums.ts";
import { sightingOf } from "../reads/pages.ts";
import { settleHeads } from "./confirm.ts";
import type { UnreadHead } from "./heads.ts";

/**
 * Asks upstream how many checks these heads of pull requests have in each state, together with the other questions of
 * the moment. A head with the same counts here is confirmed. Answers the heads that differ. Also stores values that
 * webhooks lack, such as global ids. A head that upstream does not show stays as it is.
 */
export async function askAboutHeads(
  ctx: Context,
  nodes: NodeQuestions,
  repository: MirroredRepository,
  due: readonly UnreadHead[],
): Promise<string[]> {
  const startedAt = ctx.clock.now();
  const answers = await Promise.all(
    due.map(async ({ sha, runs, statuses, pull }) => {
      if (pull === null || !(runs || statuses)) return [];
      const answer = await nodes.ask({ ...pull, kind: "pull_request", repositoryId: repository.id, about: "checks" });
      if (typeof answer !== "object") return [];
      if (!isOf(answer.node, repository)) return [];
      const { headRefOid, statusCheckRollup } = readHeadWithIds(answer.node, "node");
      const contexts = statusCheckRollup?.contexts ?? null;
      return headRefOid === sha ? [{ sha, runs, seenAt: answer.seenAt, contexts }] : [];
    }),
  );
  const shown = answers.flat();
  for (const { sha, seenAt, contexts } of shown)
    await learn(ctx, repository, { sha, seenAt, nodes: contexts?.nodes ?? [] });
  const heads = new Map(shown.filter(({ runs }) => runs).map(({ sha, contexts }) => [sha, contexts]));
  return heads.size === 0 ? [] : await settleHeads(ctx, repository, { heads, startedAt, areAll: false });
}

interface LearntChecks {
  sha: string;
  seenAt: Date;
  nodes: readonly (ShownCheck | null)[];
}

/** Stores the global ids of statuses, and the start of runs and suites. Webhooks lack these. */
async function learn(
  ctx: Context,
  repository: MirroredRepository,
  { sha, seenAt, nodes }: LearntChecks,
): Promise<void> {
  if (nodes.length === 0) return;
  await whileMirrored(ctx, repository, async (tx) => {
    const of = { repositoryId: repository.id, sha, nodes };
    const statuses = await findIds(tx, of);
    const [runs, suites] = await findBegunChecks(tx, of);
    const url = `${ctx.config.upstreamUrl}/repos/${repository.fullName}/statuses/${sha}`;
    const at = sightingOf(ctx, repository, seenAt);
    const observed = [
      ...statuses.map((fields) => observe("status", { ...fields, url, updated_at: fields.created_at }, at)),
      ...runs.map((fields) => observe("check_run", { ...fields, head_sha: sha }, at)),
      ...suites.map((fields) => observe("check_suite", { ...fields, head_sha: sha }, at)),
    ].map(({ seen, shapes }): Observed => ({ seen: seen.map((one) => ({ ...one, extent: "partial" })), shapes }));
    if (observed.length === 0) return;
    await mergeObserved(tx, joinObserved(observed));
    tx.touch([repository.id]);
  });
}

type Of = Pick<LearntChecks, "sha" | "nodes"> & { repositoryId: number };

/**
 * The global ids of statuses that lack only that id. Upstream shows the last status of each context; a read of the list
 * completes the earlier ones.
 */
async function findIds(tx: Transaction, { repositoryId, sha, nodes }: Of) {
  const known = await tx.query<{ id: number; context: string; state: string; created_at: string }>(sql`
    select t.id, t.context, t.state, t.document->>'created_at' as created_at from commit_statuses t
      where t.repository_id = ${repositoryId} and t.sha = ${sha} and t.node_id is null and t.deleted_at is null
        and t.document->'creator' is not null
        and not exists (select from commit_statuses n where n.repository_id = t.repository_id and n.sha = t.sha
          and folded(n.context) = folded(t.context) and n.deleted_at is null and n.id > t.id) order by t.id`);
  return known.flatMap((status) => {
    const same = nodes.find(
      (one) =>
        one?.__typename === "StatusContext" &&
        one.context.toLowerCase() === status.context.toLowerCase() &&
        one.state.toLowerCase() === status.state &&
        Date.parse(one.createdAt) === Date.parse(status.created_at),
    );
    return same ? [{ ...status, node_id: same.id }] : [];
  });
}

/** The mirrored runs and suites that have begun since. */
async function findBegunChecks(tx: Transaction, { repositoryId, sha, nodes }: Of) {
  const begun = nodes.filter((one) => one?.__typename === "CheckRun").filter(({ status }) => status === "IN_PROGRESS");
  if (begun.length === 0) return [[], []] as const;
  const ids = begun.flatMap(({ id, checkSuite }) => [id, checkSuite.id]);
  const known = await tx.query<{ id: number; nodeId: string; name: string | null }>(sql`
    select t.id, t.node_id as "nodeId", t.name from check_runs t
        where t.repository_id = ${repositoryId} and t.head_sha = ${sha} and t.node_id = any(${ids}::text[])
    union all select t.id, t.node_id, null from check_suites t
        where t.repository_id = ${repositoryId} and t.head_sha = ${sha} and t.node_id = any(${ids}::text[]) order by 1`);
  const byId = new Map(known.map((row) => [row.nodeId, row]));
  const runs = begun.flatMap(({ id, startedAt }) => {
    const run = byId.get(id);
    return run ? [{ id: run.id, name: run.name, status: "in_progress", started_at: startedAt }] : [];
  });
  const suites = new Map(begun.map(({ checkSuite }) => [checkSuite.id, checkSuite]));
  const begunSuites = [...suites.values()].flatMap(({ id, status, updatedAt }) => {
    const suite = status === "IN_PROGRESS" ? byId.get(id) : undefined;
    return suite ? [{ id: suite.id, status: "in_progress", updated_at: updatedAt }] : [];
  });
  return [runs, begunSuites] as const;
}
