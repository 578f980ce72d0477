import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import {
  HAS_LISTS,
  LIST_VERSION,
  LISTS,
  leaveThreads,
  listsOf,
  noteVersions,
  partOf,
  THREADS_HAVE_ALL,
} from "../../mirror/store/lists.ts";
import { type Mark, nextRound, repositoryMark } from "../../mirror/store/marks.ts";
import type { MergedDeliveries } from "../events/read.ts";

/** Stores the pull requests whose lists are new or out of date. Answers a mark for each repository to read. */
export async function hearLists(tx: Transaction, { seen, shown, parts, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const has = (repositoryId: number | null, part: "commits" | "threads") =>
    repositoryId !== null && (parts.get(repositoryId)?.includes(part) ?? false);
  const pushed = shown.flatMap(({ repositoryId, movedRef }) =>
    movedRef !== null && has(repositoryId, "commits") ? [{ r: repositoryId, ref: movedRef }] : [],
  );
  if (pushed.length > 0)
    await tx.query(sql`
      update repository_syncs s set base_pushed_at = ${askedAt}
        from json_to_recordset(${sql.json(pushed)}) as x(r bigint, ref text)
        where s.repository_id = x.r and exists (select from pull_requests p where p.repository_id = x.r and p.state = 'open'
          and p.deleted_at is null and x.ref = 'refs/heads/' || p.base_ref)`);
  const pulls = seen.flatMap(({ kind, repositoryId, key }) =>
    kind === "pull_request" && listsOf(parts.get(repositoryId) ?? []).length > 0 ? [{ r: repositoryId, n: key }] : [],
  );
  const heard = pulls.length === 0 ? [] : await storeHeard(tx, pulls, askedAt);
  const resolved = shown.flatMap(({ repositoryId, threadsOf }) =>
    repositoryId !== null && threadsOf !== null && has(repositoryId, "threads")
      ? [{ repositoryId, number: threadsOf }]
      : [],
  );
  const told = resolved.length === 0 ? [] : await leaveThreads(tx, resolved, askedAt);
  const commented = seen.flatMap(({ kind, repositoryId, key }) =>
    kind === "review_comment" && has(repositoryId, "threads") ? [{ r: repositoryId, id: key }] : [],
  );
  const begun = commented.length === 0 ? [] : await findBegunThreads(tx, commented);
  // The read of threads waits for the next round: one query then serves several deliveries, and an earlier read would
  // not be believed.
  const notBefore = nextRound(askedAt, 0);
  return [
    ...heard.map((id) => repositoryMark("lists", id, askedAt)),
    ...[...new Set([...told, ...begun])]
      .filter((id) => !heard.includes(id))
      .map((id) => ({ ...repositoryMark("lists", id, askedAt), notBefore })),
  ];
}

/** Stores the version of each list. Answers the repositories with a new version. */
async function storeHeard(
  tx: Transaction,
  pulls: readonly { r: number; n: number }[],
  askedAt: Date,
): Promise<number[]> {
  return await noteVersions(
    tx,
    sql`select distinct p.repository_id, o.list, p.number, ${LIST_VERSION}, ${askedAt}::timestamptz
      from json_to_recordset(${sql.json(pulls)}) as x(r bigint, n integer)
      join pull_requests p on p.repository_id = x.r and p.number = x.n and ${HAS_LISTS}
      join repository_syncs s on s.repository_id = x.r
      cross join unnest(${[...LISTS]}::text[]) as o(list)
      where ${partOf(sql`o.list`)} = any(s.mirrors) order by 1, 2, 3`,
  );
}

/** The repositories in which a comment may begin an unknown thread. */
async function findBegunThreads(tx: Transaction, commented: readonly { r: number; id: number }[]): Promise<number[]> {
  const rows = await tx.query<{ id: number }>(sql`
    select distinct p.repository_id as id from json_to_recordset(${sql.json(commented)}) as x(r bigint, id bigint)
      join pull_request_review_comments k on k.repository_id = x.r and k.id = x.id
      join pull_requests p on p.repository_id = x.r and p.number = k.pull_number and not ${THREADS_HAVE_ALL}`);
  return rows.map(({ id }) => id);
}
