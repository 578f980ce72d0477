import { type Sql, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { HAS_LISTS, LISTS, VERSION } from "../../mirror/store/lists.ts";
import { repositoryMark } from "../../mirror/store/marks.ts";
import { eachAlone } from "../problems/isolated.ts";
import { rests, type Subject } from "../problems/problems.ts";
import { settleMarks, settleOrWait } from "../refresh/marks.ts";
import { areListsDue, confirmLists } from "./confirm.ts";
import { readList, type UnreadList } from "./read.ts";

/** So many a turn, so that a long first copy can be stopped between two. */
const AT_ONCE = 60;
const TOGETHER = 4;

/**
 * Reads the lists of a repository that are not held, or not as they are now: those of open pull requests first. Closed ones are part of
 * the first copy, and have as little right to the quota.
 */
export async function refreshLists(ctx: Context, repositoryId: number): Promise<"merged" | "kept" | "unknown"> {
  const now = ctx.clock.now();
  const mark =
    (await ctx.reads.mark({ kind: "lists", repositoryId, key: repositoryId })) ??
    repositoryMark("lists", repositoryId, now);
  const repository = await ctx.reads.repository(repositoryId);
  if (!repository || repository.state === "gone" || !repository.mirrors.includes("commits")) {
    await settleMarks(ctx.db, [mark]);
    return "unknown";
  }
  const isDue = sql`select from repository_syncs s where s.repository_id = ${repositoryId} and ${areListsDue(now)}`;
  if ((await ctx.db.count(isDue)) > 0) await confirmLists(ctx, repository);
  const unread = await findUnreadLists(ctx, repositoryId, AT_ONCE);
  let read = 0;
  const waiting = await eachAlone(ctx, unread, {
    subjectOf: (one) => subjectOf(repositoryId, one),
    atOnce: TOGETHER,
    work: async (one) => {
      if ((await readList(ctx, repository, one, one.isOpen ? "refresh" : "backfill")) === "read") read++;
    },
  });
  if (waiting) throw waiting;
  const left = await findUnreadLists(ctx, repositoryId, 1);
  const isUnread = await isAnyUnread(ctx, repositoryId);
  return await settleOrWait(ctx, mark, { now, isDone: left.length === 0, goesOn: read > 0, isUnread });
}

function subjectOf(repositoryId: number, { list, number }: Pick<UnreadList, "list" | "number">): Subject {
  return { task: "refresh", key: `list-${repositoryId}-${list}-${number}`, repositoryId };
}

/** Lists that have to be read and are not left alone, after a failure of their own. */
async function findUnreadLists(
  ctx: Pick<Context, "db" | "clock" | "config">,
  repositoryId: number,
  most: number,
): Promise<UnreadList[]> {
  return await ctx.db.query<UnreadList>(sql`
    select w.list, w.number, w.version, w."heardAt", w."isOpen" from ${unreadLists(repositoryId)}
      where not ${rests(ctx, "refresh", sql`w.key`)} order by w."isOpen" desc, w.number desc, w.list limit ${most}`);
}

/** Whether some of them are left alone because upstream, a mirror itself, has still to read them. */
async function isAnyUnread({ db }: Pick<Context, "db">, repositoryId: number): Promise<boolean> {
  return (
    (await db.count(sql`
      select from ${unreadLists(repositoryId)} join problems p on p.task = 'refresh' and p.key = w.key and p.cause = 'unread' limit 1`)) >
    0
  );
}

/** As a table `w`. `key`: as in `subjectOf`. */
function unreadLists(repositoryId: number): Sql {
  return sql`(select x.list, p.number, ${VERSION} as version, coalesce(l.heard_at, p.seen_at) as "heardAt", p.state = 'open' as "isOpen",
        'list-' || p.repository_id || '-' || x.list || '-' || p.number as key
      from pull_requests p cross join unnest(${[...LISTS]}::text[]) as x(list)
      left join mirrored_lists l on l.repository_id = p.repository_id and l.list = x.list and l.number = p.number
        and l.version = ${VERSION}
      where p.repository_id = ${repositoryId} and ${HAS_LISTS} and l.read_at is null) w`;
}
