import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { IS_PLACE_UNSURE } from "../../mirror/read/refs.ts";
import { HAS_HISTORY } from "../../mirror/store/history.ts";
import { type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import type { MergedDeliveries } from "../events/read.ts";

/** The commit that the default branch of the repository `r` points to, if that is certain; otherwise null. */
export const DEFAULT_HEAD: SQL = sql`(select f.sha from refs f where f.repository_id = r.id and f.kind = 'heads'
  and f.name = r.default_branch and f.deleted_at is null and not ${IS_PLACE_UNSURE})`;

/**
 * Of the repository `r` and its row `s` of `repository_syncs`: the history of another head than the branch's is here, or not
 * all that belongs to it.
 */
export const IS_DUE = sql`(${HAS_HISTORY} and ${DEFAULT_HEAD} is not null and ${DEFAULT_HEAD} is distinct from
  (select l.head_sha from commit_lists l where l.repository_id = r.id and l.detailed_sha = l.head_sha))`;

/**
 * Marks for the repositories whose default branch deliveries have moved. A push names some commits, and none of them as a
 * list shows it.
 */
export async function hearHistories(tx: Transaction, { shown, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const told = shown.flatMap(({ repositoryId, toldRef }) =>
    repositoryId !== null && toldRef?.kind === "heads" ? [repositoryId] : [],
  );
  if (told.length === 0) return [];
  const due = await tx.query<{ id: number }>(sql`
    select r.id from repositories r join repository_syncs s on s.repository_id = r.id
      where r.id = any(${[...new Set(told)]}::bigint[]) and ${IS_DUE} order by 1`);
  return due.map(({ id }) => repositoryMark("commits", id, askedAt));
}
