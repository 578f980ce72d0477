import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { IS_UNSURE } from "../../mirror/read/refs.ts";
import { lockRefs, type RefKind } from "../../mirror/store/refs.ts";
import { beginWholeRefresh, settleOrWait } from "../marks/marks.ts";
import { isRefListDue } from "./due.ts";
import { fetchAndStoreRefs } from "./read.ts";

/** Reads the branches and tags of a repository where they are due, or not all known. */
export async function refreshRefs(ctx: Context, repositoryId: number): Promise<"merged" | "kept" | "unknown"> {
  const begun = await beginWholeRefresh(ctx, "refs", repositoryId);
  if (!begun) return "unknown";
  const { mark, repository, now } = begun;
  await ctx.db.transaction((tx) => lockRefs(tx, [repositoryId]));
  const due = await ctx.db.query<{ kind: RefKind }>(sql`
    select l.kind from ref_lists l where l.repository_id = ${repositoryId} and (${isRefListDue(now)}
      or exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind and ${IS_UNSURE}))
      order by l.kind`);
  for (const { kind } of due) await fetchAndStoreRefs(ctx, repository, kind);
  const unsure = await ctx.db.count(sql`
    select from refs f where f.repository_id = ${repositoryId} and ${IS_UNSURE} limit 1`);
  return await settleOrWait(ctx, mark, { now, isDone: unsure === 0 });
}
