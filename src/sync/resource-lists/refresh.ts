import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, isObject, parseStored } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { findRepositoryDocument } from "../../mirror/read/repositories.ts";
import { fitting } from "../../mirror/store/fitting.ts";
import { storeMarks } from "../../mirror/store/marks.ts";
import type { Seen } from "../../mirror/store/observation.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { mayTakeMoment, takeMoment } from "../questions/paced.ts";
import { toldRows } from "../questions/told-rows.ts";
import { fetchAndStorePage, PAGE_SIZE, type StoredPage } from "../reads/pages.ts";
import type { Whole } from "../wholes/whole.ts";
import { refreshBelow } from "./below.ts";
import { hearResourceLists } from "./heard.ts";
import {
  ASKED_LISTS,
  belowOf,
  isListDue,
  isListWhole,
  LISTED_PARTS,
  type ListedKind,
  type ListedPart,
  listedOf,
} from "./listed.ts";

/** The lists of kinds that are held as such, by their parts. */
export const resourceListWholes: readonly Whole[] = LISTED_PARTS.map((part) => ({
  kind: part,
  parts: [part],
  due: ({ clock }) => {
    const lists = listedOf(part);
    const rowOf = ({ list }: ListedKind) => sql`from ${list.table} l where l.repository_id = r.id`;
    const current = lists.map(
      (one) => sql`exists (select ${rowOf(one)} and not ${isListDue(one, clock.now())} and ${isListWhole(one)})`,
    );
    return {
      isDue: sql`not (${sql.and(current)})`,
      confirmedAt: sql`least(${sql.join(lists.map((one) => sql`(select l.read_at ${rowOf(one)})`))})`,
    };
  },
  hear: (tx, heard) => hearResourceLists(tx, part, heard),
  read: (ctx, begun) => readResourceLists(ctx, part, begun),
}));

/** Reads those lists of a part that are due, and what else upstream has to say of them where that is not known. */
async function readResourceLists(
  ctx: Context,
  part: ListedPart,
  { mark, repository, now }: Parameters<Whole["read"]>[1],
): ReturnType<Whole["read"]> {
  let isDone = true;
  for (const listed of listedOf(part))
    isDone = (await refreshList(ctx, repository, listed, { now, askedAt: mark.askedAt })) && isDone;
  let goesOn = false;
  for (const below of belowOf(part)) {
    const outcome = await refreshBelow(ctx, repository, below);
    isDone &&= outcome === "done";
    goesOn ||= outcome === "more";
  }
  return { isDone, goesOn };
}

/** Answers whether the list is whole afterwards. @throws QuestionsPacedError for one that is read only on request */
async function refreshList(
  ctx: Context,
  repository: MirroredRepository,
  listed: ListedKind,
  { now, askedAt }: { now: Date; askedAt: Date },
): Promise<boolean> {
  const row = sql`${listed.list.table} l where l.repository_id = ${repository.id}`;
  const isWhole = isListWhole(listed);
  await ctx.db.query(sql`
    insert into ${listed.list.table} (repository_id) values (${repository.id}) on conflict do nothing`);
  const [before] = await ctx.db.query<BeforeRead & { isDue: boolean; isAsked: boolean; isWhole: boolean }>(sql`
    select ${isListDue(listed, now)} as "isDue", ${isListDue(listed, now, askedAt)} as "isAsked", l.is_half_stored as "isHalfStored", l.read_at as "readAt", ${isWhole} as "isWhole",
      ${isWalkDue(listed, now)} as "toItsEnd" from ${row}`);
  if (before?.isAsked && !before.isDue) await takeMoment(ctx, ASKED_LISTS);
  if (before?.isAsked) await fetchAndStoreList(ctx, repository, listed, before);
  const { further } = listed;
  if (further && (before?.isAsked || (!before?.isWhole && (await mayTakeMoment(ctx, toldRows(repository.id))))))
    await further.read(ctx, repository);
  return (await ctx.db.count(sql`select from ${row} and ${isWhole}`)) > 0;
}

/** Whether a list that begins with the newest row has to be read to its end, as every other list is. */
function isWalkDue({ list: { newestFirst } }: ListedKind, now: Date): SQL {
  if (!newestFirst) return sql`true`;
  const before = new Date(now.getTime() - newestFirst.wholeEveryMs);
  return sql`(l.read_at is null or l.is_half_stored or l.walked_at is null or l.walked_at <= ${before})`;
}

interface BeforeRead {
  /** When the list was last read. Null: never. */
  readAt: Date | null;
  isHalfStored: boolean;
  toItsEnd: boolean;
}

/** What a walk along a list has met. */
interface ListWalk {
  listed: Set<number>;
  /** How many of the pages were new, and how many were as before. */
  changed: number;
  unchanged: number;
  /** Whether upstream may have more rows than it lists. */
  isCut: boolean;
}

/**
 * Reads a list. Resources that it lacks are asked for one by one: rows move between pages during the read, so the list
 * alone proves nothing.
 */
async function fetchAndStoreList(
  ctx: Context,
  repository: MirroredRepository,
  listed: ListedKind,
  { readAt, isHalfStored, toItsEnd }: BeforeRead,
): Promise<void> {
  const { kind, list } = listed;
  const startedAt = ctx.clock.now();
  const showsHidden = !list.hidden || (await mayPush(ctx, repository));
  let walk = await walkList(ctx, repository, listed, { conditional: !isHalfStored, toItsEnd });
  // A 304 does not say which rows are on its page. So a row that is on no changed page may be on an unchanged one.
  if (toItsEnd && walk.changed > 0 && walk.unchanged > 0)
    walk = await walkList(ctx, repository, listed, { conditional: false, toItsEnd });
  // Of a list that was not read to its end, nothing is known of what is older than what was read.
  const from = (toItsEnd && !walk.isCut) || walk.listed.size === 0 ? 0 : Math.min(...walk.listed);
  const marks = await whileMirrored(ctx, repository, async (tx) => {
    const missing =
      walk.changed === 0
        ? await findMissing(tx, repository.id, listed, contradicted(readAt ?? startedAt), { startedAt, showsHidden })
        : await findMissing(tx, repository.id, listed, unlisted(walk.listed, from), { startedAt, showsHidden });
    const doubts = missing.map((key) => ({
      ...{ kind, repositoryId: repository.id, key, askedAt: startedAt, notBefore: startedAt },
    }));
    await storeMarks(tx, doubts);
    const shown = list.hidden ? sql`, ${sql.identifier(list.hidden.column)} = ${showsHidden}` : sql``;
    const walked =
      list.newestFirst && toItsEnd ? sql`, walked_at = ${startedAt} ${beginningOf(listed, repository, walk)}` : sql``;
    await note(tx, repository, listed, sql`read_at = ${startedAt}, is_half_stored = false ${shown} ${walked}`);
    tx.touch([repository.id]);
    return doubts;
  });
  await enqueueMarks(ctx, marks);
}

/** From when on a list that was read to its end is here. */
function beginningOf({ resource: { table }, list }: ListedKind, { id }: MirroredRepository, { isCut }: ListWalk): SQL {
  if (list.newestFirst?.mostPages === undefined) return sql``;
  const oldest = sql`(select min(t.created_at) from ${table} t where t.repository_id = ${id})`;
  return sql`, begins_at = ${isCut ? oldest : sql`null`}`;
}

async function note(tx: Transaction, { id }: MirroredRepository, { list }: ListedKind, set: SQL): Promise<void> {
  await tx.query(sql`update ${list.table} set ${set} where repository_id = ${id}`);
}

async function walkList(
  ctx: Context,
  repository: MirroredRepository,
  listed: ListedKind,
  { conditional, toItsEnd }: { conditional: boolean; toItsEnd: boolean },
): Promise<ListWalk> {
  const walk: ListWalk = { listed: new Set(), changed: 0, unchanged: 0, isCut: false };
  const mostPages = listed.list.newestFirst?.mostPages ?? Number.POSITIVE_INFINITY;
  const first = `/repositories/${repository.id}${listed.list.path}?per_page=${PAGE_SIZE}`;
  for (let at: string | null = first; at !== null; ) {
    let isNew = true;
    const reading = fetchAndStorePage(ctx, repository, listed.kind, at, "refresh", {
      conditional,
      prepare: async ({ seen }) => {
        if (!toItsEnd) isNew = await isAnyNew(ctx, repository.id, listed, seen);
      },
      remember: async (tx, { isUnchanged }) => {
        if (!isUnchanged) await note(tx, repository, listed, sql`is_half_stored = true`);
      },
    });
    const isFirst = walk.changed + walk.unchanged === 0;
    const page: StoredPage | null = isFirst ? await reading : await unlessEnded(reading);
    walk.isCut = page === null || walk.changed + walk.unchanged + 1 >= mostPages;
    if (page === null) break;
    const { next, rows, isUnchanged }: StoredPage = page;
    for (const { key } of rows) walk.listed.add(key);
    if (isUnchanged) walk.unchanged++;
    else walk.changed++;
    at = toItsEnd || (isNew && !isUnchanged) ? next : null;
  }
  return walk;
}

/** Null: upstream says that it lists no more. */
async function unlessEnded(reading: Promise<StoredPage>): Promise<StoredPage | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof UpstreamRefusedError && error.status === 422) return null;
    throw error;
  }
}

/** Whether there may be more to read behind a page: it has a resource that is not stored, or is of another time. */
async function isAnyNew(
  { db }: Pick<Context, "db">,
  repositoryId: number,
  { kind, resource: { table, isVersioned, columnTypes } }: ListedKind,
  seen: readonly Seen[],
): Promise<boolean> {
  const { updated_at: type } = columnTypes;
  const all = seen
    .filter((one) => one.kind === kind)
    .map(({ key, fields }) => ({ k: key, at: type ? fitting(fields.updated_at ?? null, type) : null }));
  // Rows that never change are all here from the last known one on.
  const rows = isVersioned ? all : all.slice(-1);
  return (
    (await db.count(sql`
      select from json_to_recordset(${sql.json(rows)}) as x(k bigint, at timestamptz)
        where not exists (select from ${table} t where t.repository_id = ${repositoryId} and t.id = x.k
          ${isVersioned ? sql`and t.updated_at = x.at` : sql``}) limit 1`)) > 0
  );
}

/** Of a stored resource `t`: the list lacks it. @param from the list was read from this id on */
function unlisted(listed: ReadonlySet<number>, from: number): SQL {
  return sql`t.id >= ${from} and not t.id = any(${[...listed]}::bigint[])`;
}

/**
 * Of a stored resource `t`: a webhook told of it since the list was last read, although no page of it has changed. It may
 * have been made and deleted between the two reads.
 */
function contradicted(since: Date): SQL {
  return sql`not t.seen_by_read and t.seen_at > ${since}::timestamptz`;
}

/**
 * Stored resources that the list speaks against. Newer ones are left out, since a replica may not know them yet. So are
 * those that upstream does not show to the mirror.
 */
async function findMissing(
  tx: Transaction,
  repositoryId: number,
  { resource: { table }, list }: ListedKind,
  isMissing: SQL,
  { startedAt, showsHidden }: { startedAt: Date; showsHidden: boolean },
): Promise<number[]> {
  const isShown = list.hidden && !showsHidden ? sql`not (${list.hidden.rows})` : sql`true`;
  const rows = await tx.query<{ id: number }>(sql`
    select t.id from ${table} t where t.repository_id = ${repositoryId} and t.deleted_at is null
      and ${isMissing} and ${isShown} and ${seenBefore(sql`t.seen_at`, { readAt: startedAt, now: tx.now() })}
      order by t.id`);
  return rows.map(({ id }) => id);
}

/** Whether upstream lets the mirror's credential push, as it said when it showed the repository. */
async function mayPush({ db }: Pick<Context, "db">, { id }: MirroredRepository): Promise<boolean> {
  const row = await findRepositoryDocument(db, id);
  const { permissions } = row ? parseStored<Fields>(row.document) : {};
  return isObject(permissions) && permissions.push === true;
}
