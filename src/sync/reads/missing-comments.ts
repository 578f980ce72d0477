import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import type { Observed } from "../../mirror/store/observation.ts";
import type { Priority } from "../../upstream/protocol/upstream.ts";
import { refuseRemoved } from "../following/while-mirrored.ts";
import { fetchAndStorePage, PAGE_SIZE } from "./pages.ts";

/**
 * A transferred issue brings its old comments along, and no list of changes shows those. Its comment count does. They
 * are read before the issue is stored, so an interrupted job meets the issue again.
 */
export async function fetchAndStoreMissingComments(
  ctx: Context,
  repository: MirroredRepository,
  { seen }: Observed,
  priority: Priority,
): Promise<void> {
  const counts = seen.flatMap(({ kind, key, deleted, fields: { comments } }) =>
    kind === "issue" && !deleted && typeof comments === "number"
      ? [{ repositoryId: repository.id, number: key, comments }]
      : [],
  );
  if (counts.length === 0) return;
  const lacking = await ctx.jobReads.lackingComments(counts);
  // A purge takes the comments first, and all of them would seem to be lacking.
  if (lacking.length > 0) await refuseRemoved(ctx, repository);
  for (const number of lacking) {
    const first = `/repositories/${repository.id}/issues/${number}/comments?per_page=${PAGE_SIZE}`;
    for (let path: string | null = first; path !== null; )
      // An unchanged page does not prove that its rows are unchanged: a delivery may have hidden them since.
      path = (await fetchAndStorePage(ctx, repository, "issue_comment", path, priority, { conditional: false })).next;
  }
}
