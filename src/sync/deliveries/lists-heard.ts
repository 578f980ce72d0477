import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { HAS_LISTS, LISTS, VERSION } from "../../mirror/store/lists.ts";
import { type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import type { MergedDeliveries } from "./checks-heard.ts";

/** Notes the pull requests whose lists are new, or have become others. Answers a mark for each repository to read. */
export async function hearLists(tx: Transaction, { seen, shown, parts, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const own = (repositoryId: number | null) =>
    repositoryId !== null && (parts.get(repositoryId)?.includes("commits") ?? false);
  const pushed = shown.flatMap(({ repositoryId, movedRef }) =>
    movedRef !== null && own(repositoryId) ? [{ r: repositoryId, ref: movedRef }] : [],
  );
  if (pushed.length > 0)
    await tx.query(sql`
      update repository_syncs s set base_pushed_at = ${askedAt}
        from json_to_recordset(${JSON.stringify(pushed)}::json) as x(r bigint, ref text)
        where s.repository_id = x.r and exists (select from pull_requests p where p.repository_id = x.r and p.state = 'open'
          and p.deleted_at is null and x.ref = 'refs/heads/' || p.base_ref)`);
  const pulls = seen.flatMap(({ kind, repositoryId, key }) =>
    kind === "pull_request" && own(repositoryId) ? [{ r: repositoryId, n: key }] : [],
  );
  if (pulls.length === 0) return [];
  const heard = await tx.query<{ id: number }>(sql`
    insert into mirrored_lists as l (repository_id, list, number, version, heard_at)
      select distinct p.repository_id, o.list, p.number, ${VERSION}, ${askedAt}::timestamptz
        from json_to_recordset(${JSON.stringify(pulls)}::json) as x(r bigint, n integer)
        join pull_requests p on p.repository_id = x.r and p.number = x.n and ${HAS_LISTS}
        cross join unnest(${[...LISTS]}::text[]) as o(list) order by 1, 2, 3
      on conflict (repository_id, list, number) do update
        set version = excluded.version, heard_at = excluded.heard_at, read_at = null where l.version <> excluded.version
      returning l.repository_id::float8 as id`);
  const ids = [...new Set(heard.map(({ id }) => id))];
  tx.touch(ids);
  return ids.map((id) => repositoryMark("lists", id, askedAt));
}
