import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { leaveThreads } from "../../mirror/store/lists.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { eachOf, object, type Read, text, truth, whole } from "../../upstream/protocol/field-readers.ts";

/** The state of a pull request's threads that can change without a push. A hundred pull requests cost a point. */
export const THREAD_STATES = {
  fields: "number headRefOid reviewThreads(first: 100) { totalCount nodes { id isResolved isOutdated } }",
  readPull: object({
    number: whole,
    headRefOid: text,
    reviewThreads: object({
      totalCount: whole,
      nodes: eachOf(object({ id: text, isResolved: truth, isOutdated: truth })),
    }),
  }),
};
export type ThreadStates = Read<typeof THREAD_STATES.readPull>;

/**
 * Finds threads whose state at upstream differs from here, so a webhook was lost. Callers who ask for them are
 * forwarded until they are read. Answers their pull requests. Threads that were told or read since `startedAt` are left
 * as they are.
 * @param isRead whether to read them: an audit that repairs nothing only asks which threads differ
 */
export async function doubtThreads(
  tx: Transaction,
  repository: MirroredRepository,
  pulls: readonly ThreadStates[],
  { startedAt, isRead = true }: { startedAt: Date; isRead?: boolean },
): Promise<number[]> {
  const shown = pulls.map(({ number, headRefOid, reviewThreads: { totalCount, nodes } }) => ({
    n: number,
    head: headRefOid,
    total: totalCount,
    threads: nodes.flatMap((one) => (one ? [{ id: one.id, resolved: one.isResolved, outdated: one.isOutdated }] : [])),
  }));
  const differing = await tx.query<{ number: number }>(sql`
    select l.number from json_to_recordset(${sql.json(shown)}) as x(n integer, head text, total integer, threads json)
      join mirrored_lists l on l.repository_id = ${repository.id} and l.list = 'threads' and l.number = x.n
        and l.read_at < ${startedAt} and split_part(l.version, ' ', 1) = x.head
      where x.total <> (select count(*) from pull_request_threads t where t.repository_id = l.repository_id and t.number = l.number)
        or exists (select from json_to_recordset(x.threads) as y(id text, resolved boolean, outdated boolean)
          where not exists (select from pull_request_threads t where t.repository_id = l.repository_id and t.number = l.number
            and t.node_id = y.id and t.is_resolved = y.resolved and t.is_outdated = y.outdated))
      order by 1`);
  const numbers = differing.map(({ number }) => number);
  // No webhook says when the change was made, so any read is believed.
  const at = new Date(startedAt.getTime() - 2 * REPLICA_LAG_MS);
  if (isRead && numbers.length > 0)
    await leaveThreads(
      tx,
      numbers.map((number) => ({ repositoryId: repository.id, number })),
      at,
    );
  return numbers;
}
