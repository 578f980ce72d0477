import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { afterLag, type Mark, storeMarks } from "../../mirror/store/marks.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Seen } from "../../mirror/store/observation.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks, postponeMarks, settleMarks } from "../marks/marks.ts";
import { mayTakeMoment, takeMomentAlone } from "../questions/paced.ts";
import { toldRows } from "../questions/told-rows.ts";
import { fetchAndStorePage, PER_PAGE, RepositoryUnavailableError } from "../reads/pages.ts";
import { ASKED_LISTS, BELOW, isBelowWhole, type KindBelow } from "./listed.ts";

/** How many such lists are read for one mark. */
const LISTS_AT_ONCE = 20;

/**
 * Reads the lists under the newest resources where they are not all here. "more": others are still to be read;
 * "unread": upstream has not shown all of what it told, or is asked later about what deliveries alone have shown.
 */
export async function refreshBelow(
  ctx: Context,
  repository: MirroredRepository,
  below: KindBelow,
): Promise<"done" | "more" | "unread"> {
  const due = await findDue(ctx, repository.id, below);
  let isPaced = false;
  for (const { id, isTold } of due.slice(0, LISTS_AT_ONCE)) {
    isPaced ||= isTold && !(await mayTakeMoment(ctx, toldRows(repository.id)));
    if (isPaced && isTold) continue;
    try {
      await fetchAndStoreBelow(ctx, repository, below, id);
    } catch (error) {
      // It may have been deleted, of which nothing tells. Its own read decides that.
      if (!(error instanceof RepositoryUnavailableError)) throw error;
      await askAbout(ctx, { kind: below.parentKind, repositoryId: repository.id, key: id });
    }
  }
  if (due.length > LISTS_AT_ONCE && !isPaced) return "more";
  return (await findDue(ctx, repository.id, below)).length === 0 ? "done" : "unread";
}

/** The list that a mark of the resource asks for; null: none. */
export function askedBelow({ kind, keys }: Pick<Mark, "kind" | "keys">): KindBelow | null {
  return (
    BELOW.find(({ parentKind, list: { askedAs } }) => parentKind === kind && keys?.some((one) => one === askedAs)) ??
    null
  );
}

/**
 * Reads a list that somebody has asked for. Its mark is settled once no replica can have lacked what was known then.
 * @throws QuestionsPacedError
 */
export async function refreshAsked(ctx: Context, below: KindBelow, mark: Mark): Promise<"merged" | "kept" | "unknown"> {
  const startedAt = ctx.clock.now();
  const repository = await ctx.jobReads.repository(mark.repositoryId);
  if (!repository?.mirrors.includes(below.part)) {
    await settleMarks(ctx.db, [mark]);
    return "unknown";
  }
  await takeMomentAlone(ctx, ASKED_LISTS, mark);
  try {
    await fetchAndStoreBelow(ctx, repository, below, mark.key);
  } catch (error) {
    if (!(error instanceof RepositoryUnavailableError)) throw error;
    await settleMarks(ctx.db, [mark]);
    await askAbout(ctx, { kind: below.parentKind, repositoryId: repository.id, key: mark.key });
    return "kept";
  }
  if (startedAt.getTime() > mark.askedAt.getTime() + REPLICA_LAG_MS) {
    await settleMarks(ctx.db, [mark]);
    return "merged";
  }
  await enqueueMarks(ctx, await postponeMarks(ctx.db, [{ ...mark, notBefore: afterLag(mark.askedAt) }]));
  return "kept";
}

async function askAbout(ctx: Context, key: Pick<Mark, "kind" | "repositoryId" | "key">): Promise<void> {
  const now = ctx.clock.now();
  const mark = { ...key, askedAt: now, notBefore: now };
  await storeMarks(ctx.db, [mark]);
  await enqueueMarks(ctx, [mark]);
}

/** Notes that the new ones of these resources, which webhooks showed, have lists that are all here. */
export async function noteNew(
  db: Queries,
  { list: { table, isNew } }: KindBelow,
  parents: readonly Pick<Seen, "repositoryId" | "key" | "fields" | "deleted">[],
  now: Date,
): Promise<void> {
  const made = parents.filter(({ fields, deleted }) => !deleted && isNew(fields));
  if (made.length === 0) return;
  const keys = sql.json(made.map(({ repositoryId, key }) => ({ r: repositoryId, k: key })));
  await db.query(sql`
    insert into ${table} as l (repository_id, parent_id, read_at)
      select distinct x.r, x.k, ${now}::timestamptz from json_to_recordset(${keys}) as x(r bigint, k bigint) order by 1, 2
      on conflict (repository_id, parent_id) do update set read_at = excluded.read_at where l.read_at is null`);
}

/** The repositories where a list that was here under one of these resources is not all here any more. */
export async function findLapsed(
  db: Queries,
  below: KindBelow,
  parents: readonly Pick<Seen, "repositoryId" | "key">[],
): Promise<number[]> {
  const keys = sql.json(parents.map(({ repositoryId, key }) => ({ r: repositoryId, k: key })));
  const rows = await db.query<{ id: number }>(sql`
    select distinct p.repository_id as id from json_to_recordset(${keys}) as x(r bigint, k bigint)
      join ${below.parents} p on p.repository_id = x.r and p.id = x.k and p.deleted_at is null
      join ${below.list.table} l on l.repository_id = p.repository_id and l.parent_id = p.id
      where not coalesce(${isBelowWhole(below)}, false) order by 1`);
  return rows.map(({ id }) => id);
}

/** The resources whose lists are to be read; those that deliveries alone have shown come last. */
async function findDue(
  { db }: Pick<Context, "db">,
  repositoryId: number,
  below: KindBelow,
): Promise<{ id: number; isTold: boolean }[]> {
  const { table, most, askedAs } = below.list;
  return await db.query<{ id: number; isTold: boolean }>(sql`
    select p.id, not p.seen_by_read as "isTold"
      from (select * from ${below.parents} p where p.repository_id = ${repositoryId} and p.deleted_at is null
        order by p.created_at desc, p.id desc limit ${most}) p
      ${askedAs === undefined ? sql`left` : sql`inner`} join ${table} l
        on l.repository_id = p.repository_id and l.parent_id = p.id
      where not coalesce(${isBelowWhole(below)}, false) order by not p.seen_by_read, p.created_at desc, p.id desc`);
}

/** Reads a list to its end. Upstream takes no row of it back alone. */
async function fetchAndStoreBelow(
  ctx: Context,
  repository: MirroredRepository,
  { kind, list }: KindBelow,
  id: number,
): Promise<void> {
  const startedAt = ctx.clock.now();
  const query = [list.query ?? [], PER_PAGE].flat().join("&");
  const first = `/repositories/${repository.id}${list.path(id)}?${query}`;
  for (let at: string | null = first; at !== null; )
    at = (await fetchAndStorePage(ctx, repository, kind, at, "refresh")).next;
  await whileMirrored(ctx, repository, async (tx) => {
    await tx.query(sql`
      insert into ${list.table} (repository_id, parent_id, read_at) values (${repository.id}, ${id}, ${startedAt})
        on conflict (repository_id, parent_id) do update set read_at = excluded.read_at`);
    tx.touch([repository.id]);
  });
}
