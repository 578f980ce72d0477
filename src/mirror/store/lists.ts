import type { PgTable } from "drizzle-orm/pg-core";
import type { Transaction } from "../../../db/database.ts";
import { type ColumnType, columnsOf } from "../../../db/schema/columns.ts";
import { pullRequestCommits, pullRequestFiles, pullRequestThreads } from "../../../db/schema/lists.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import { type Fields, type Json, objectOf } from "../../json.ts";
import { literalOf, referenceId } from "../../kinds/contract/placeholders.ts";
import { fitting } from "./fitting.ts";
import { columnTable, typesOf } from "./rows.ts";

/**
 * Lists below a pull request, which the mirror holds whole or not at all. No event tells of a single row, since a push
 * makes a new list. So the rows are not merged one by one. Each read replaces the list page by page. The list counts
 * only for the head and the base that it was read for.
 */
export const LISTS = ["commits", "files", "threads"] as const;
export type ListName = (typeof LISTS)[number];
/** The lists that REST shows, page by page. */
export type RestListName = Exclude<ListName, "threads">;

/** The part of `MIRROR` that a list belongs to. */
const PART_OF_LIST: Readonly<Record<ListName, MirrorPart>> = {
  commits: "commits",
  files: "commits",
  threads: "threads",
};

/** SQL: the part of `MIRROR` for the list that this column names. */
export function partOf(list: SQL): SQL {
  return sql`case ${list} ${sql.script(LISTS.map((name) => `when '${name}' then '${PART_OF_LIST[name]}'`).join(" "))} end`;
}

export function listsOf(parts: readonly MirrorPart[]): ListName[] {
  return LISTS.filter((list) => parts.includes(PART_OF_LIST[list]));
}

/** `number` is the pull request's. */
export interface ListKey {
  repositoryId: number;
  list: ListName;
  number: number;
}

interface Listed {
  table: PgTable;
  /** The columns whose values are not simply the stripped field of the same name. */
  columns: (fields: Fields) => Record<string, Json>;
  /**
   * The longest list that upstream shows. GitHub docs: "List commits on a pull request", "List pull requests files".
   */
  most: number;
}

/** The columns of a commit, as a list of commits shows it, that are not simply the stripped field of the same name. */
export function commitColumns({ commit, author, committer }: Fields): Record<string, Json> {
  return {
    message: objectOf(commit).message ?? null,
    author_id: referenceId(author),
    committer_id: referenceId(committer),
    authored_at: objectOf(objectOf(commit).author).date ?? null,
    committed_at: objectOf(objectOf(commit).committer).date ?? null,
  };
}

const LISTED: Readonly<Record<ListName, Listed>> = {
  commits: {
    table: pullRequestCommits,
    columns: commitColumns,
    most: 250,
  },
  files: {
    table: pullRequestFiles,
    columns: ({ contents_url: address }) => ({ head_sha: headIn(address) }),
    most: 3_000,
  },
  threads: { table: pullRequestThreads, columns: () => ({}), most: Number.POSITIVE_INFINITY },
};

export function longestOf(list: ListName): number {
  return LISTED[list].most;
}

export function tableOf(list: ListName): SQL {
  return sql`${LISTED[list].table}`;
}

/** The head and the base of the pull request `p`: its lists belong to both. */
export const LIST_VERSION = sql`(p.head_sha || ' ' || p.base_ref)`;

/** Whether the pull request `p` has lists. */
export const HAS_LISTS = sql`(p.id is not null and p.deleted_at is null and p.head_sha <> '' and p.base_ref is not null)`;

/**
 * Whether each review comment of the pull request `p` belongs to a mirrored thread. A comment that came after the
 * threads were read may begin another one. Deleted comments do not count.
 */
export const THREADS_HAVE_ALL = sql`not exists (select from pull_request_review_comments c
  where c.repository_id = p.repository_id and c.pull_number = p.number and c.deleted_at is null
    and not exists (select from pull_request_threads t where t.repository_id = c.repository_id and t.number = c.pull_number
      and t.root_id = coalesce(c.in_reply_to_id, c.id)))`;

/**
 * Notes the head and the base that these lists belong to: a list of another version no longer counts as read. `lists`
 * selects `repository_id`, `list`, `number`, `version`, `heard_at`. Answers the repositories of those that are new, or
 * of another version than before.
 */
export async function noteVersions(tx: Transaction, lists: SQL): Promise<number[]> {
  const noted = await tx.query<{ id: number }>(sql`
    insert into mirrored_lists as l (repository_id, list, number, version, heard_at) ${lists}
      on conflict (repository_id, list, number) do update
        set version = excluded.version, heard_at = excluded.heard_at, read_at = null where l.version <> excluded.version
      returning l.repository_id as id`);
  const ids = [...new Set(noted.map(({ id }) => id))];
  tx.touch(ids);
  return ids;
}

/** A row of a list as its columns, of these types. `derived`: the values that are not simply the field of the same name. */
export function listedRow(
  types: Readonly<Record<string, ColumnType>>,
  fields: Fields,
  derived: Readonly<Record<string, Json>>,
): Record<string, Json> {
  const all: Record<string, Json> = { ...derived, document: JSON.stringify(fields) };
  const values = Object.entries(types).map(([column, type]): [string, Json] => {
    const value = all[column] ?? fields[column] ?? null;
    return [column, fitting(typeof value === "string" && column !== "document" ? literalOf(value) : value, type)];
  });
  return Object.fromEntries(values);
}

/** Replaces the rows from `start` on with these; `end`: up to which place, null: they are the last. */
export async function storeListed(
  tx: Transaction,
  { repositoryId, list, number }: ListKey,
  { rows, start, end }: { rows: readonly Fields[]; start: number; end: number | null },
): Promise<void> {
  const { table, columns: derivedOf } = LISTED[list];
  const wanted = columnsOf(table);
  const name = tableOf(list);
  await tx.prepared(sql`
    delete from ${name} where repository_id = ${repositoryId} and number = ${number} and position >= ${start}
      and position < ${end ?? 0x7fff_ffff}`);
  if (rows.length === 0) return;
  const written = rows.map((fields, at) =>
    listedRow(wanted, fields, { ...derivedOf(fields), repository_id: repositoryId, number, position: start + at }),
  );
  const { table: x, columns } = columnTable(typesOf(wanted), written);
  await tx.prepared(sql`
    insert into ${name} (${sql.join(columns.map(sql.identifier))})
      select ${sql.join(columns.map((column) => sql.identifier(`x.${column}`)))} from ${x}`);
}

/**
 * Whether the stored rows show that they belong to this head. "unknown": they cannot show it, such as an empty list, or
 * one that upstream cut off before the last commit.
 */
export async function isOfHead(
  tx: Transaction,
  { repositoryId, list, number }: ListKey & { list: RestListName },
  head: string,
): Promise<"yes" | "no" | "unknown"> {
  const rows = sql`${tableOf(list)} t where t.repository_id = ${repositoryId} and t.number = ${number}`;
  const [found] =
    list === "commits"
      ? await tx.prepared<{ count: number; head: string | null }>(sql`
          select count(*) as count, (array_agg(t.sha order by t.position desc))[1] as head from ${rows}`)
      : await tx.prepared<{ count: number; head: string | null }>(sql`
          select count(*) as count, case when min(t.head_sha) = max(t.head_sha) then min(t.head_sha) end as head
            from ${rows}`);
  if (!found?.head) return "unknown";
  if (found.head === head) return "yes";
  return list === "commits" && found.count >= longestOf(list) ? "unknown" : "no";
}

/** `…/contents/README.md?ref=6dcb09b` → `6dcb09b`. */
function headIn(address: Json | undefined): string | null {
  return (typeof address === "string" && /[?&]ref=([0-9a-f]{40})$/.exec(address)?.[1]) || null;
}

/**
 * Has callers forwarded to upstream for the threads of these pull requests, until a read that shows the change made at
 * `at`. Answers the repositories whose threads were mirrored.
 */
export async function leaveThreads(
  tx: Transaction,
  pulls: readonly { repositoryId: number; number: number }[],
  at: Date,
): Promise<number[]> {
  const left = await tx.query<{ id: number }>(sql`
    with x as (select l.repository_id, l.number from mirrored_lists l
        join json_to_recordset(${sql.json(pulls)}) as y("repositoryId" bigint, number integer)
          on l.repository_id = y."repositoryId" and l.number = y.number
        where l.list = 'threads' order by 1, 2 for update of l)
    update mirrored_lists l set told_at = ${at}, read_at = null from x
      where l.repository_id = x.repository_id and l.list = 'threads' and l.number = x.number
      returning l.repository_id as id`);
  const ids = [...new Set(left.map(({ id }) => id))];
  tx.touch(ids);
  return ids;
}
