import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { afterLag } from "../../mirror/store/marks.ts";
import { AbsentError } from "../problems/errors.ts";
import type { Whole } from "../wholes/whole.ts";
import { fetchAndStoreDetails } from "./details.ts";
import { DEFAULT_HEAD, hearHistories, IS_DUE } from "./due.ts";
import { fetchAndStoreHistory } from "./read.ts";

/** The history of the default branch. It is read if another commit than the branch's head is known to lead it. */
export const historyWhole: Whole = {
  kind: "commits",
  parts: ["commits"],
  due: () => ({ isDue: IS_DUE, confirmedAt: sql`(select l.read_at from commit_lists l where l.repository_id = r.id)` }),
  hear: hearHistories,
  read: async (ctx, { mark, repository, now }) => {
    const find = () => findUnreadHead(ctx, repository.id);
    const due = repository.mirrors.includes("refs") ? await find() : null;
    try {
      if (due) await fetchAndStoreHistory(ctx, repository, due);
    } catch (error) {
      // A replica may not have the commit yet.
      if (!(error instanceof AbsentError) || now > afterLag(mark.askedAt)) throw error;
      return { isDone: false };
    }
    // The branch may have moved while its history was read.
    const goesOn = due !== null && (await find()) !== null;
    return { isDone: !goesOn && (await fetchAndStoreDetails(ctx, repository)), goesOn };
  },
};

/** Null: the history is of the branch's head, or the branch is in doubt. Then it is read first, and its history is due again. */
async function findUnreadHead(
  { db }: Pick<Context, "db">,
  repositoryId: number,
): Promise<{ head: string; copied: string | null } | null> {
  const [found] = await db.query<{ head: string | null; copied: string | null }>(sql`
    select ${DEFAULT_HEAD} as head, l.head_sha as copied from repositories r
      left join commit_lists l on l.repository_id = r.id where r.id = ${repositoryId}`);
  return found?.head && found.head !== found.copied ? { head: found.head, copied: found.copied } : null;
}
