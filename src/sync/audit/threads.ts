import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { repositoryMark, storeMarks } from "../../mirror/store/marks.ts";
import { GraphqlTooHeavyError } from "../../upstream/protocol/errors.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { doubtThreads, THREAD_STATES, type ThreadStates } from "../lists/thread-states.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { PullsNotShownError } from "../problems/errors.ts";
import { readSinglePulls } from "../reads/graphql-pulls.ts";
import type { Drift } from "./report.ts";

/**
 * Compares the threads of these pull requests with upstream's, for a point per hundred pull requests with threads. Open
 * pull requests are compared each hour. For closed ones only an audit finds a lost webhook.
 */
export async function auditThreads(
  ctx: Context,
  repository: MirroredRepository,
  numbers: readonly number[],
  { repair, signal }: { repair: boolean; signal: AbortSignal },
): Promise<Drift[]> {
  if (!repository.mirrors.includes("threads")) return [];
  const rows = await ctx.db.query<{ number: number }>(sql`
    select l.number from mirrored_lists l where l.repository_id = ${repository.id} and l.list = 'threads'
      and l.number = any(${[...numbers]}::integer[]) and exists (select from pull_request_threads t
        where t.repository_id = l.repository_id and t.number = l.number) order by 1`);
  if (rows.length === 0) return [];
  const startedAt = ctx.clock.now();
  const asked = rows.map(({ number }) => number);
  let pulls: ThreadStates[];
  try {
    const read = { priority: "audit", signal } as const;
    ({ pulls } = await readSinglePulls(ctx, repository, asked, THREAD_STATES, read));
  } catch (error) {
    // REST shows no threads. The read of the list reports the problem.
    if (error instanceof PullsNotShownError || error instanceof GraphqlTooHeavyError) return [];
    throw error;
  }
  const marks = [repositoryMark("lists", repository.id, startedAt)];
  const differing = await whileMirrored(ctx, repository, async (tx) => {
    const found = await doubtThreads(tx, repository, pulls, { startedAt, isRead: repair });
    if (repair && found.length > 0) await storeMarks(tx, marks);
    return found;
  });
  if (repair && differing.length > 0) await enqueueMarks(ctx, marks);
  return differing.map((key) => ({ kind: "pull_request", key, drift: "differs", fields: ["reviewThreads"] }));
}
