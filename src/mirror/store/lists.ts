import type { Transaction } from "../../../db/database.ts";
import type { Table } from "../../../db/schema/table.ts";
import { pullRequestCommits, pullRequestFiles } from "../../../db/schema/tables.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import { type Fields, type Json, objectOf } from "../../json.ts";
import { columnTable, columnText } from "./rows.ts";
import { referenceId } from "./template.ts";

/**
 * What upstream lists of a pull request, and the mirror holds whole or not at all. Nothing tells of one row alone: a push makes
 * another list. So a list is no set of resources that are merged one by one. What was read last replaces what was there, page by
 * page, and counts only for the head and the base that it was read of.
 */
export const LISTS = ["commits", "files"] as const;
export type ListName = (typeof LISTS)[number];

/** `number`: of the pull request. */
export interface ListKey {
  repositoryId: number;
  list: ListName;
  number: number;
}

interface Listed {
  table: Table;
  /** The columns whose values are not simply the stripped field of the same name. */
  columns: (fields: Fields) => Record<string, Json>;
  /** No list is longer. GitHub docs: "List commits on a pull request", "List pull requests files". */
  most: number;
}

const LISTED: Readonly<Record<ListName, Listed>> = {
  commits: {
    table: pullRequestCommits,
    columns: ({ commit, author, committer }) => ({
      message: objectOf(commit).message ?? null,
      author_id: referenceId(author),
      committer_id: referenceId(committer),
      authored_at: objectOf(objectOf(commit).author).date ?? null,
      committed_at: objectOf(objectOf(commit).committer).date ?? null,
    }),
    most: 250,
  },
  files: {
    table: pullRequestFiles,
    columns: ({ contents_url: address }) => ({ head_sha: headIn(address) }),
    most: 3_000,
  },
};

export function longestOf(list: ListName): number {
  return LISTED[list].most;
}

export function tableOf(list: ListName): Sql {
  return sql.identifier(LISTED[list].table.name);
}

/** Of a pull request `p`: what its lists are the lists of. */
export const VERSION = sql`(p.head_sha || ' ' || p.base_ref)`;

/** Of a pull request `p`: it has lists. */
export const HAS_LISTS = sql`(p.id is not null and p.deleted_at is null and p.head_sha <> '' and p.base_ref is not null)`;

/** Replaces the rows from `start` on with these; `end`: up to which place, null: they are the last. */
export async function storeListed(
  tx: Transaction,
  { repositoryId, list, number }: ListKey,
  { rows, start, end }: { rows: readonly Fields[]; start: number; end: number | null },
): Promise<void> {
  const { table, columns: columnsOf } = LISTED[list];
  const name = tableOf(list);
  await tx.prepared(sql`
    delete from ${name} where repository_id = ${repositoryId} and number = ${number} and position >= ${start}
      and position < ${end ?? 0x7fff_ffff}`);
  if (rows.length === 0) return;
  const types = Object.fromEntries(Object.entries(table.columns).map(([column, { type }]) => [column, type]));
  const written = rows.map((fields, at) => {
    const derived: Record<string, Json> = {
      ...columnsOf(fields),
      repository_id: repositoryId,
      number,
      position: start + at,
      document: JSON.stringify(fields),
    };
    const values = Object.keys(types).map((column): [string, Json] => {
      const value = derived[column] ?? fields[column] ?? null;
      return [column, typeof value === "string" && column !== "document" ? columnText(column, value) : value];
    });
    return Object.fromEntries(values);
  });
  const { table: x, columns } = columnTable(types, written);
  await tx.prepared(sql`
    insert into ${name} (${sql.join(columns.map(sql.identifier))})
      select ${sql.join(columns.map((column) => sql.identifier(`x.${column}`)))} from ${x}`);
}

/**
 * Whether the stored rows say by themselves that they are of this head: "yes", "no", or "unknown", where they cannot, such as an
 * empty list, or one that was cut off before its last commit.
 */
export async function isOfHead(
  tx: Transaction,
  { repositoryId, list, number }: ListKey,
  head: string,
): Promise<"yes" | "no" | "unknown"> {
  const rows = sql`${tableOf(list)} t where t.repository_id = ${repositoryId} and t.number = ${number}`;
  const [found] =
    list === "commits"
      ? await tx.prepared<{ count: number; head: string | null }>(sql`
          select count(*)::integer as count, (array_agg(t.sha order by t.position desc))[1] as head from ${rows}`)
      : await tx.prepared<{ count: number; head: string | null }>(sql`
          select count(*)::integer as count, case when min(t.head_sha) = max(t.head_sha) then min(t.head_sha) end as head
            from ${rows}`);
  if (!found?.head) return "unknown";
  if (found.head === head) return "yes";
  return list === "commits" && found.count >= longestOf(list) ? "unknown" : "no";
}

/** `…/contents/README.md?ref=6dcb09b` → `6dcb09b`. */
function headIn(address: Json | undefined): string | null {
  return (typeof address === "string" && /[?&]ref=([0-9a-f]{40})$/.exec(address)?.[1]) || null;
}
