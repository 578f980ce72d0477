import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, isObject, parseStored } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { findRepositoryDocument } from "../../mirror/read/repositories.ts";
import { storeMarks } from "../../mirror/store/marks.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { fetchAndStorePage, PAGE_SIZE } from "../reads/pages.ts";
import { beginWholeRefresh, enqueueMarks, settleOrWait } from "../refresh/marks.ts";
import { isListDue, isListWhole, type ListedKind, type ListedPart, listedOf } from "./listed.ts";

/** Reads those lists of a part that are due, and what else upstream has to say of them where that is not known. */
export async function refreshResourceLists(
  ctx: Context,
  part: ListedPart,
  repositoryId: number,
): Promise<"merged" | "kept" | "unknown"> {
  const begun = await beginWholeRefresh(ctx, part, repositoryId);
  if (!begun) return "unknown";
  const { mark, repository, now } = begun;
  let isDone = true;
  for (const listed of listedOf(part)) isDone = (await refreshList(ctx, repository, listed, now)) && isDone;
  return await settleOrWait(ctx, mark, { now, isDone });
}

/** Answers whether the list is whole afterwards. */
async function refreshList(
  ctx: Context,
  repository: MirroredRepository,
  listed: ListedKind,
  now: Date,
): Promise<boolean> {
  const row = sql`${listed.list.table} l where l.repository_id = ${repository.id}`;
  const isWhole = isListWhole(listed);
  await ctx.db.query(sql`
    insert into ${listed.list.table} (repository_id) values (${repository.id}) on conflict do nothing`);
  const [before] = await ctx.db.query<{ isDue: boolean; isHalfStored: boolean; isWhole: boolean }>(sql`
    select ${isListDue(listed, now)} as "isDue", l.is_half_stored as "isHalfStored", ${isWhole} as "isWhole" from ${row}`);
  if (before?.isDue) await fetchAndStoreList(ctx, repository, listed, before);
  if (before?.isDue || !before?.isWhole) await listed.further?.read(ctx, repository);
  return (await ctx.db.count(sql`select from ${row} and ${isWhole}`)) > 0;
}

/** What a walk along a list has met. */
interface ListWalk {
  listed: Set<number>;
  /** How many of the pages were new, and how many were as before. */
  changed: number;
  unchanged: number;
}

/**
 * Reads the list to its end. Resources that the list lacks are asked for one by one: rows move between pages during the
 * read, so the list alone proves nothing.
 */
async function fetchAndStoreList(
  ctx: Context,
  repository: MirroredRepository,
  listed: ListedKind,
  { isHalfStored }: { isHalfStored: boolean },
): Promise<void> {
  const { kind, list } = listed;
  const startedAt = ctx.clock.now();
  const showsHidden = !list.hidden || (await mayPush(ctx, repository));
  let walk = await walkList(ctx, repository, listed, { conditional: !isHalfStored });
  // A 304 does not say which rows are on its page. So a row that is on no changed page may be on an unchanged one.
  if (walk.changed > 0 && walk.unchanged > 0) walk = await walkList(ctx, repository, listed, { conditional: false });
  const marks = await whileMirrored(ctx, repository, async (tx) => {
    const unlisted =
      walk.changed === 0 ? [] : await findUnlisted(tx, repository.id, listed, { ...walk, startedAt, showsHidden });
    const doubts = unlisted.map((key) => ({
      ...{ kind, repositoryId: repository.id, key, askedAt: startedAt, notBefore: startedAt },
    }));
    await storeMarks(tx, doubts);
    const shown = list.hidden ? sql`, ${sql.identifier(list.hidden.column)} = ${showsHidden}` : sql``;
    await note(tx, repository, listed, sql`read_at = ${startedAt}, is_half_stored = false ${shown}`);
    tx.touch([repository.id]);
    return doubts;
  });
  await enqueueMarks(ctx, marks);
}

async function note(tx: Transaction, { id }: MirroredRepository, { list }: ListedKind, set: SQL): Promise<void> {
  await tx.query(sql`update ${list.table} set ${set} where repository_id = ${id}`);
}

async function walkList(
  ctx: Context,
  repository: MirroredRepository,
  listed: ListedKind,
  { conditional }: { conditional: boolean },
): Promise<ListWalk> {
  const walk: ListWalk = { listed: new Set(), changed: 0, unchanged: 0 };
  const first = `/repositories/${repository.id}${listed.list.path}?per_page=${PAGE_SIZE}`;
  for (let at: string | null = first; at !== null; ) {
    const { next, rows, isUnchanged } = await fetchAndStorePage(ctx, repository, listed.kind, at, "refresh", {
      conditional,
      remember: async (tx, page) => {
        if (!page.isUnchanged) await note(tx, repository, listed, sql`is_half_stored = true`);
      },
    });
    for (const { key } of rows) walk.listed.add(key);
    if (isUnchanged) walk.unchanged++;
    else walk.changed++;
    at = next;
  }
  return walk;
}

/**
 * Stored resources that the list lacks. Newer ones are left out, since a replica may not know them yet. So are those
 * that upstream does not show to the mirror.
 */
async function findUnlisted(
  tx: Transaction,
  repositoryId: number,
  { resource: { table }, list }: ListedKind,
  { listed, startedAt, showsHidden }: { listed: ReadonlySet<number>; startedAt: Date; showsHidden: boolean },
): Promise<number[]> {
  const isShown = list.hidden && !showsHidden ? sql`not (${list.hidden.rows})` : sql`true`;
  const rows = await tx.query<{ id: number }>(sql`
    select t.id::float8 as id from ${table} t where t.repository_id = ${repositoryId} and t.deleted_at is null
      and not t.id = any(${[...listed]}::bigint[]) and ${isShown}
      and ${seenBefore(sql`t.seen_at`, { readAt: startedAt, now: tx.now() })} order by t.id`);
  return rows.map(({ id }) => id);
}

/** Whether upstream lets the mirror's credential push, as it said when it showed the repository. */
async function mayPush({ db }: Pick<Context, "db">, { id }: MirroredRepository): Promise<boolean> {
  const row = await findRepositoryDocument(db, id);
  const { permissions } = row ? parseStored<Fields>(row.document) : {};
  return isObject(permissions) && permissions.push === true;
}
