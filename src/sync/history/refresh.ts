import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { afterLag } from "../../mirror/store/marks.ts";
import { beginWholeRefresh, settleOrWait } from "../marks/marks.ts";
import { AbsentError } from "../problems/errors.ts";
import { fetchAndStoreDetails } from "./details.ts";
import { DEFAULT_HEAD } from "./due.ts";
import { fetchAndStoreHistory } from "./read.ts";

/** Reads the history of the default branch, if another commit than the branch's head is known to lead it. */
export async function refreshHistory(ctx: Context, repositoryId: number): Promise<"merged" | "kept" | "unknown"> {
  const begun = await beginWholeRefresh(ctx, "commits", repositoryId);
  if (!begun) return "unknown";
  const { mark, repository, now } = begun;
  const find = async () => {
    const [found] = await ctx.db.query<{ head: string | null; copied: string | null }>(sql`
      select ${DEFAULT_HEAD} as head, l.head_sha as copied from repositories r
        left join commit_lists l on l.repository_id = r.id where r.id = ${repositoryId}`);
    // A branch that is in doubt is read first. Then its history is due again.
    return found?.head && found.head !== found.copied ? { head: found.head, copied: found.copied } : null;
  };
  const due = repository.mirrors.includes("refs") ? await find() : null;
  try {
    if (due) await fetchAndStoreHistory(ctx, repository, due);
  } catch (error) {
    // A replica may not have the commit yet.
    if (!(error instanceof AbsentError) || now > afterLag(mark.askedAt)) throw error;
    return await settleOrWait(ctx, mark, { now, isDone: false });
  }
  // The branch may have moved while its history was read.
  const hasMoved = due !== null && (await find()) !== null;
  const isDone = !hasMoved && (await fetchAndStoreDetails(ctx, repository));
  return await settleOrWait(ctx, mark, { now, isDone, goesOn: hasMoved });
}
