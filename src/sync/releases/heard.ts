import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { afterLag, type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import type { MergedDeliveries } from "../deliveries/read.ts";

/**
 * Notes when deliveries told about releases. The merge keeps the list up to date. Only upstream can say which release
 * is the latest, once no replica lags. Answers a mark for each repository to ask about.
 */
export async function hearReleases(tx: Transaction, { seen, parts, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const told = seen.filter(
    ({ kind, repositoryId }) => kind === "release" && parts.get(repositoryId)?.includes("releases"),
  );
  const ids = [...new Set(told.map(({ repositoryId }) => repositoryId))];
  if (ids.length === 0) return [];
  await tx.query(sql`
    insert into release_lists (repository_id, heard_at) select id, ${askedAt}::timestamptz
        from unnest(${ids}::bigint[]) as id order by id
      on conflict (repository_id) do update set heard_at = excluded.heard_at`);
  return ids.map((id) => ({ ...repositoryMark("releases", id, askedAt), notBefore: afterLag(askedAt) }));
}
