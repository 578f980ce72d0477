import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { IS_LATEST_KNOWN } from "../../mirror/read/releases.ts";
import { markRepositoriesDue } from "../refresh/due.ts";

const RELEASES_EVERY_MS = 60 * 60_000;
/**
 * Upstream sends no event for an asset, and none is known for edits of a draft. So the list is read this often while
 * there are drafts, and in the hour after an event, since assets come after their release.
 */
const MOVING_MS = 5 * 60_000;

/** Of a row `l` of `release_lists`: upstream has to be asked for the list again. Unchanged that costs nothing. */
export function isReleaseListDue(now: Date): SQL {
  const before = (ms: number) => new Date(now.getTime() - ms);
  return sql`(l.read_at is null or l.read_at <= ${before(RELEASES_EVERY_MS)} or (l.read_at <= ${before(MOVING_MS)}
    and (l.heard_at > ${before(RELEASES_EVERY_MS)} or exists (select from releases t where t.repository_id = l.repository_id and t.draft
      and t.deleted_at is null))))`;
}

/** Asks for the releases of repositories that were not read for a while. So a lost webhook is made up for. */
export async function markReleasesDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<void> {
  const list = sql`from release_lists l where l.repository_id = r.id`;
  await markRepositoriesDue(ctx, "releases", {
    isDue: sql`'releases' = any(s.mirrors)
      and not exists (select ${list} and not ${isReleaseListDue(ctx.clock.now())} and ${IS_LATEST_KNOWN})`,
    confirmedAt: sql`(select l.read_at ${list})`,
  });
}
