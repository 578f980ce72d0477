import type { Context } from "../../context.ts";
import { numberOf, objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Observed, observe, requireList, type Seen } from "../../mirror/store/observation.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import type { Counting } from "../events/events.ts";
import { isBlocking, issueAt } from "../events/events.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";

/**
 * The issues that wait for an issue that was read. Upstream sends an event when the issue is closed, but none for the
 * issues that are no longer blocked. Issues of other repositories are only named.
 */
export async function readBlocked(
  ctx: Pick<Context, "config" | "upstream">,
  repository: MirroredRepository,
  { key, fields }: Pick<Seen, "key" | "fields">,
): Promise<{ observed: Observed[]; elsewhere: Counting[] }> {
  const found: { observed: Observed[]; elsewhere: Counting[] } = { observed: [], elsewhere: [] };
  if (!isBlocking(fields)) return found;
  const first = `/repositories/${repository.id}/issues/${key}/dependencies/blocking?per_page=${PAGE_SIZE}`;
  for await (const page of pages(ctx.upstream, first, { priority: "refresh" })) {
    // The issue is gone, or the server has no such list. An audit compares the summaries.
    if (page.kind !== "ok") return found;
    for (const row of requireList(page.path, page.body)) {
      const { url, number } = objectOf(row);
      const place = issueAt(url);
      if (!place || numberOf(number) !== place.number) continue;
      if (place.fullName.toLowerCase() === repository.fullName.toLowerCase())
        found.observed.push(observe("issue", row, sightingOf(ctx, repository, page.seenAt)));
      else found.elsewhere.push({ ...place, key: "issue_dependencies_summary" });
    }
  }
  return found;
}
