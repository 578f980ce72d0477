import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { HAS_LISTS, LIST_VERSION, type ListName, listsOf, THREADS_HAVE_ALL } from "../../mirror/store/lists.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { eachAlone } from "../problems/isolated.ts";
import { rests, type Subject } from "../problems/problems.ts";
import type { Whole } from "../wholes/whole.ts";
import { areListsDue, confirmLists } from "./confirm.ts";
import { hearLists } from "./heard.ts";
import { fetchAndStoreList, type UnreadList } from "./read.ts";
import { threadReader } from "./threads.ts";

/**
 * Lists in one turn, so that a long backfill can stop between two turns. Threads are asked for together, so a turn
 * has more of them.
 */
const LISTS_A_TURN = { rest: 60, threads: 250 };
const READ_TOGETHER = 4;

/** The lists below pull requests. */
export const pullListsWhole: Whole = {
  kind: "lists",
  parts: ["commits", "threads"],
  due: (ctx) => ({ isDue: areListsDue(ctx), confirmedAt: sql`s.lists_confirmed_at` }),
  hear: hearLists,
  read: fetchAndStoreDueLists,
};

/**
 * Reads the lists of a repository that are missing or out of date, those of open pull requests first. Lists of closed
 * ones belong to the first copy, and get the low priority of a backfill.
 */
async function fetchAndStoreDueLists(...[ctx, { repository }]: Parameters<Whole["read"]>): ReturnType<Whole["read"]> {
  const { id: repositoryId } = repository;
  const isDue = sql`select from repository_syncs s where s.repository_id = ${repositoryId} and ${areListsDue(ctx)}`;
  if ((await ctx.db.count(isDue)) > 0) await confirmLists(ctx, repository);
  const lists = listsOf(repository.mirrors);
  const threads = lists.filter((list) => list === "threads");
  const rest = lists.filter((list) => list !== "threads");
  const unreadThreads = await findUnreadLists(ctx, repositoryId, threads, {
    most: LISTS_A_TURN.threads,
    areRipe: true,
  });
  const unread = await findUnreadLists(ctx, repositoryId, rest, { most: LISTS_A_TURN.rest, areRipe: true });
  const readThreads = await threadReader(ctx, repository, unreadThreads);
  let read = 0;
  const waiting = await eachAlone(ctx, [...unreadThreads, ...unread], {
    subjectOf: (one) => listSubject(repositoryId, one),
    groupOf: ({ list }) => (list === "threads" ? "GraphQL" : "REST"),
    atOnce: READ_TOGETHER,
    work: async (one) => {
      const { list } = one;
      const isRead =
        list === "threads"
          ? await readThreads(one)
          : await fetchAndStoreList(ctx, repository, { ...one, list }, one.isOpen ? "refresh" : "backfill");
      if (isRead === "read") read++;
    },
  });
  if (waiting) throw waiting;
  const left = await findUnreadLists(ctx, repositoryId, lists, { most: 1, areRipe: false });
  const isUnread = await isAnyUnread(ctx, repositoryId, lists);
  return { isDone: left.length === 0, goesOn: read > 0, isUnread };
}

function listSubject(repositoryId: number, { list, number }: Pick<UnreadList, "list" | "number">): Subject {
  return { task: "refresh", key: `list-${repositoryId}-${list}-${number}`, repositoryId };
}

/**
 * Lists that have to be read, without those that are left alone after a failure.
 * @param areRipe only lists whose news is old enough for every replica: no other read would be believed
 */
async function findUnreadLists(
  ctx: Pick<Context, "db" | "clock" | "config">,
  repositoryId: number,
  lists: readonly ListName[],
  { most, areRipe }: { most: number; areRipe: boolean },
): Promise<UnreadList[]> {
  const lagging = new Date(ctx.clock.now().getTime() - REPLICA_LAG_MS);
  const isRipe = areRipe ? sql`(w."toldAt" is null or w."toldAt" < ${lagging})` : sql`true`;
  return await ctx.db.query<UnreadList>(sql`
    select w.list, w.number, w.version, w."heardAt", w."isOpen" from ${unreadLists(repositoryId, lists)}
      where ${isRipe} and not ${rests(ctx, "refresh", sql`w.key`)} order by w."isOpen" desc, w.number desc, w.list limit ${most}`);
}

/** Whether a list is left alone because upstream is a mirror that still has to read it. */
async function isAnyUnread(
  { db }: Pick<Context, "db">,
  repositoryId: number,
  lists: readonly ListName[],
): Promise<boolean> {
  return (
    (await db.count(sql`
      select from ${unreadLists(repositoryId, lists)} join problems p on p.task = 'refresh' and p.key = w.key and p.cause = 'unread' limit 1`)) >
    0
  );
}

/**
 * The unread lists as a table `w`. `key`: as in `listSubject`. Threads are read again if a comment came after the last
 * read, since it may begin a thread. For older comments another read would tell nothing new.
 */
function unreadLists(repositoryId: number, lists: readonly ListName[]): SQL {
  return sql`(select x.list, p.number, ${LIST_VERSION} as version, coalesce(l.heard_at, p.seen_at) as "heardAt", p.state = 'open' as "isOpen",
        l.told_at as "toldAt", 'list-' || p.repository_id || '-' || x.list || '-' || p.number as key
      from pull_requests p cross join unnest(${[...lists]}::text[]) as x(list)
      left join mirrored_lists l on l.repository_id = p.repository_id and l.list = x.list and l.number = p.number
        and l.version = ${LIST_VERSION}
      where p.repository_id = ${repositoryId} and ${HAS_LISTS} and (l.read_at is null
        or (x.list = 'threads' and not ${THREADS_HAVE_ALL} and exists (select from pull_request_review_comments k
          where k.repository_id = p.repository_id and k.pull_number = p.number and k.seen_at > l.read_at)))) w`;
}
