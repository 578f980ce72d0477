import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { levelOf } from "../../failure.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { IS_MERGEABILITY_UNKNOWN, MARK_COLUMNS, type Mark, nextRound } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { waitAtAgeMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks, postponeMarks, settleMarks } from "../marks/marks.ts";
import { PullsNotShownError, RemovedError } from "../problems/errors.ts";
import { rests } from "../problems/problems.ts";
import { isOf, type NodeQuestions } from "../questions/node-questions.ts";
import { readMergeability } from "../reads/graphql-pulls.ts";
import { fetchAndStoreMergeability } from "../reads/mergeability.ts";
import { observeMergeability } from "../reads/pull-observations.ts";

/** If the process that asks ends meanwhile, another asks after this time. */
const TAKEN_MS = 60_000;
/** Clocks differ a little: a job that comes this early is not in vain. */
const EARLY_MS = 1_000;
/** One job asks about so many repositories at most. */
const MOST_TAKEN = 500;
/** A repository with more unknown pull requests is asked about by itself, in learnt sizes. */
const MOST_OF_ONE = 100;

/**
 * Asks about the open pull requests whose mergeability is unknown, of all repositories whose marks are due: for a
 * point, however many they are. Those that stay unknown are asked about again, each time after three times as long,
 * for some minutes.
 *
 * Marks become due at common moments. The first job of such a moment takes up to MOST_TAKEN marks, and the jobs of
 * those marks find nothing to do. Jobs that start together may take each other's marks. The job that took a mark
 * finishes it.
 */
export async function refreshMergeability(
  ctx: Context,
  nodes: NodeQuestions,
  repositoryId: number,
): Promise<"merged" | "kept" | "unknown"> {
  const startedAt = ctx.clock.now();
  const { taken, open, gone, unknown } = await nodes.prepare(() => takeDuePulls(ctx, repositoryId, startedAt));
  if (taken.length === 0) return "kept";
  const byId = new Map(taken.map((one) => [one.repositoryId, one]));
  const alone = open.filter(({ id }) => (unknown.get(id)?.length ?? 0) > MOST_OF_ONE);
  const together = open.filter((one) => !alone.includes(one));
  alone.push(...(await askTogether(ctx, nodes, together, unknown)));
  const marksOf = (some: readonly MirroredRepository[]) => some.flatMap(({ id }) => byId.get(id) ?? []);
  const failed = new Set<number>();
  // The job's own repository comes first, since a failure is reported for it. A failed mark of another repository stays
  // taken, and its own job reports the failure.
  for (const repository of alone.sort((a, b) => Number(b.id === repositoryId) - Number(a.id === repositoryId))) {
    try {
      if (!(await askAlone(ctx, repository))) await settleMarks(ctx.db, marksOf([repository]));
    } catch (error) {
      if (repository.id === repositoryId) throw error;
      failed.add(repository.id);
      const told = { repositoryId: repository.id, err: error };
      ctx.log[levelOf(error, "debug")](told, "Mergeability is asked for again by another job");
    }
  }

  const left = await findUnknownOfAll(ctx, open);
  // A mark ages only until it is due. Nobody may have been able to ask since then, as in an outage.
  const ageMs = ({ askedAt, dueAt }: TakenMark) => Math.max(0, dueAt.getTime() - askedAt.getTime());
  const waitMs = (one: TakenMark) => waitAtAgeMs(ageMs(one), RETRIES.mergeability, 2);
  const isOver = (one: TakenMark) =>
    (left.get(one.repositoryId)?.length ?? 0) === 0 || ageMs(one) >= RETRIES.mergeability.withinMs;
  const asked = marksOf(open.filter(({ id }) => !failed.has(id)));
  await settleMarks(ctx.db, asked.filter(isOver));
  const postponed = asked
    .filter((one) => !isOver(one))
    .map((one) => ({ ...one, notBefore: nextRound(startedAt, waitMs(one)) }));
  await enqueueMarks(ctx, await postponeMarks(ctx.db, postponed));
  const own = byId.get(repositoryId);
  // Another job took the job's own mark.
  if (!own) return "kept";
  if (gone.includes(own)) return "unknown";
  return isOver(own) ? "merged" : "kept";
}

/** Takes due marks, and finds the pull requests to ask about. */
async function takeDuePulls(ctx: Context, repositoryId: number, now: Date) {
  const taken = await takeDue(ctx, repositoryId, now);
  const gone: TakenMark[] = [];
  const open: MirroredRepository[] = [];
  await Promise.all(
    taken.map(async (one) => {
      const repository = await ctx.jobReads.repository(one.repositoryId);
      if (repository) open.push(repository);
      else gone.push(one);
    }),
  );
  await settleMarks(ctx.db, gone);
  return { taken, open, gone, unknown: await findUnknownOfAll(ctx, open) };
}

/** A mark that this job asks about. `dueAt`: its `notBefore` until it was taken. */
interface TakenMark extends Mark {
  dueAt: Date;
}

/**
 * Takes the job's own mark and others that are due. Each mark goes to one job. Marks that rest for a while are left
 * out.
 */
async function takeDue(ctx: Context, repositoryId: number, now: Date): Promise<TakenMark[]> {
  const key = sql`m.repository_id::text`;
  return await ctx.db.query<TakenMark>(sql`
    with due as (select kind, repository_id, key, not_before from refresh_marks m
      where m.kind = 'mergeability' and m.not_before <= ${new Date(now.getTime() + EARLY_MS)}
        and not ${rests(ctx, "refresh", key)} and not ${rests(ctx, "refresh", sql`'mergeability-' || ${key} || '-' || ${key}`)}
      order by m.repository_id <> ${repositoryId}, m.repository_id limit ${MOST_TAKEN} for update skip locked)
    update refresh_marks m set not_before = ${new Date(now.getTime() + TAKEN_MS)} from due d
      where m.kind = d.kind and m.repository_id = d.repository_id and m.key = d.key
      returning ${MARK_COLUMNS}, d.not_before as "dueAt"`);
}

interface Unknown {
  repositoryId: number;
  key: number;
  nodeId: string | null;
}

/**
 * The pull requests with unknown mergeability, by repository. `MOST_OF_ONE + 1` are enough to see that a repository has
 * too many.
 */
async function findUnknownOfAll(
  { db }: Pick<Context, "db">,
  repositories: readonly MirroredRepository[],
): Promise<Map<number, Unknown[]>> {
  const ids = repositories.map(({ id }) => id);
  const rows = await db.query<Unknown>(sql`
    select x.id as "repositoryId", p.number as key, p.node_id as "nodeId" from unnest(${ids}::bigint[]) as x(id)
      cross join lateral (select number, node_id from pull_requests
        where repository_id = x.id and ${IS_MERGEABILITY_UNKNOWN} order by number limit ${MOST_OF_ONE + 1}) p`);
  return Map.groupBy(rows, ({ repositoryId }) => repositoryId);
}

/** Asks about all of these with one question. Answers the repositories that have to be asked about alone. */
async function askTogether(
  ctx: Context,
  nodes: NodeQuestions,
  repositories: readonly MirroredRepository[],
  unknown: ReadonlyMap<number, readonly Unknown[]>,
): Promise<MirroredRepository[]> {
  const alone: MirroredRepository[] = [];
  await Promise.all(
    repositories.map(async (repository) => {
      const answers = await Promise.all(
        (unknown.get(repository.id) ?? []).map(({ nodeId, ...own }) =>
          nodeId === null ? "unclear" : nodes.ask({ ...own, kind: "pull_request", nodeId, about: "mergeability" }),
        ),
      );
      // A null may mean "not allowed" as well as "none". A question about this repository alone will tell.
      if (answers.includes("unclear")) return void alone.push(repository);
      const shown = answers.filter((answer) => typeof answer === "object");
      // Asked about together, they are answered at one time; the earliest is right for all.
      const seenAt = new Date(Math.min(...shown.map((answer) => answer.seenAt.getTime())));
      const own = shown.flatMap(({ node }) => (isOf(node, repository) ? [readMergeability(node, "node")] : []));
      if (own.length === 0) return;
      try {
        await whileMirrored(ctx, repository, (tx) =>
          mergeObserved(tx, observeMergeability(ctx, repository, own, seenAt)),
        );
      } catch (error) {
        // The next job settles the mark of the removed repository.
        if (!(error instanceof RemovedError)) throw error;
      }
    }),
  );
  return alone;
}

/** False: upstream does not show its pull requests. Catch-ups and audits find out why, and give a new reason to ask. */
async function askAlone(ctx: Context, repository: MirroredRepository): Promise<boolean> {
  try {
    await fetchAndStoreMergeability(ctx, repository, { heardSince: null, priority: "refresh" });
    return true;
  } catch (error) {
    if (!(error instanceof PullsNotShownError)) throw error;
    ctx.log.warn({ repository: repository.fullName, reason: error.message }, "Upstream does not show pull requests");
    return false;
  }
}
