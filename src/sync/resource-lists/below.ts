import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { type Mark, storeMarks } from "../../mirror/store/marks.ts";
import type { Seen } from "../../mirror/store/observation.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { fetchAndStorePage, PAGE_SIZE, RepositoryUnavailableError } from "../reads/pages.ts";
import { isBelowWhole, type KindBelow } from "./listed.ts";

/** How many such lists are read for one mark. */
const LISTS_AT_ONCE = 20;

/**
 * Reads the lists under the newest resources where they are not all here. "more": others are still to be read;
 * "unread": upstream has not shown all of what it told.
 */
export async function refreshBelow(
  ctx: Context,
  repository: MirroredRepository,
  below: KindBelow,
): Promise<"done" | "more" | "unread"> {
  const due = await findDue(ctx, repository.id, below);
  for (const id of due.slice(0, LISTS_AT_ONCE)) {
    try {
      await fetchAndStoreBelow(ctx, repository, below, id);
    } catch (error) {
      // It may have been deleted, of which nothing tells. Its own read decides that.
      if (!(error instanceof RepositoryUnavailableError)) throw error;
      await askAbout(ctx, { kind: below.parentKind, repositoryId: repository.id, key: id });
    }
  }
  if (due.length > LISTS_AT_ONCE) return "more";
  return (await findDue(ctx, repository.id, below)).length === 0 ? "done" : "unread";
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

async function findDue({ db }: Pick<Context, "db">, repositoryId: number, below: KindBelow): Promise<number[]> {
  const { table, most } = below.list;
  const rows = await db.query<{ id: number }>(sql`
    select p.id::float8 as id
      from (select * from ${below.parents} p where p.repository_id = ${repositoryId} and p.deleted_at is null
        order by p.created_at desc, p.id desc limit ${most}) p
      left join ${table} l on l.repository_id = p.repository_id and l.parent_id = p.id
      where not coalesce(${isBelowWhole(below)}, false) order by p.created_at desc, p.id desc`);
  return rows.map(({ id }) => id);
}

/** Reads a list to its end. Upstream takes no row of it back alone. */
async function fetchAndStoreBelow(
  ctx: Context,
  repository: MirroredRepository,
  { kind, list }: KindBelow,
  id: number,
): Promise<void> {
  const startedAt = ctx.clock.now();
  const first = `/repositories/${repository.id}${list.path(id)}?per_page=${PAGE_SIZE}`;
  for (let at: string | null = first; at !== null; )
    at = (await fetchAndStorePage(ctx, repository, kind, at, "refresh")).next;
  await whileMirrored(ctx, repository, async (tx) => {
    await tx.query(sql`
      insert into ${list.table} (repository_id, parent_id, read_at) values (${repository.id}, ${id}, ${startedAt})
        on conflict (repository_id, parent_id) do update set read_at = excluded.read_at`);
    tx.touch([repository.id]);
  });
}
