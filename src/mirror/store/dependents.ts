import type { Transaction } from "../../../db/database.ts";
import { PEOPLE } from "../../../db/revisions.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import type { Stored } from "./merge-rule.ts";
import { type Kind, type Resource, resources } from "./resource.ts";
import { layoutFor, type RowWrite } from "./rows.ts";
import { referenceId } from "./template.ts";

/** Updates tables that repeat values of these rows: labels of issues, assignees, former names of repositories. */
export async function followRows(tx: Transaction, resource: Resource, rows: RowWrite[]): Promise<void> {
  if (rows.length === 0) return;
  touchRows(tx, resource, rows);
  if (resource.kind === "issue") {
    await followList(tx, rows, "labels", LABELS);
    await followList(tx, rows, "assignees", ASSIGNEES);
    await buryChildren(tx, rows);
  }
  if (resource.kind === "repository") await rememberFormerNames(tx, rows);
}

/** New users need no touch: only rows that are stored in the same transaction can show them. */
function touchRows(tx: Transaction, { kind }: Resource, rows: RowWrite[]): void {
  if (kind === "user") {
    if (rows.some(({ before }) => before)) tx.touch([PEOPLE]);
  } else if (kind === "repository") {
    const names = rows.flatMap(({ stored, before }) => [stored.fields.full_name, before?.stored.fields.full_name]);
    tx.touch(
      rows.map(({ seen }) => seen.key),
      names.filter((name) => typeof name === "string"),
    );
  } else {
    tx.touch(rows.map(({ seen }) => seen.repositoryId));
  }
}

/** The kinds that belong to an issue or pull request, with the column that holds its number. */
export const childNumberColumns: Readonly<Partial<Record<Kind, string>>> = {
  issue_comment: "issue_number",
  review: "pull_number",
  review_comment: "pull_number",
};

/** The table that holds the members of an issue's list. */
interface ListPlace {
  table: Sql;
  column: Sql;
  /** Columns of the issue `i` that the table repeats, and their values. */
  repeated?: { columns: Sql; values: Sql };
}

const LABELS: ListPlace = {
  table: sql`issue_labels`,
  column: sql`label_id`,
  repeated: {
    columns: sql`, state, is_pull_request, is_shown, created_at`,
    values: sql`, i.state, i.is_pull_request, i.id is not null and i.deleted_at is null, i.created_at`,
  },
};
const ASSIGNEES: ListPlace = { table: sql`issue_assignees`, column: sql`user_id` };

/** The issues' own rows were written and are locked. */
async function followList(
  tx: Transaction,
  rows: RowWrite[],
  key: string,
  { table, column, repeated }: ListPlace,
): Promise<void> {
  const idsOf = (stored: Stored | undefined) => {
    const list = stored?.fields[key];
    return Array.isArray(list) ? [...new Set(list.map(referenceId).filter((id) => id !== null))] : [];
  };
  const gone: FollowKey[] = [];
  const come: FollowKey[] = [];
  for (const { seen, stored, before } of rows) {
    const [was, is] = [idsOf(before?.stored), idsOf(stored)];
    const place = (id: number): FollowKey => [seen.repositoryId, id, seen.key];
    gone.push(...was.filter((id) => !is.includes(id)).map(place));
    come.push(...is.filter((id) => !was.includes(id)).map(place));
  }
  if (gone.length > 0)
    await tx.prepared(sql`
      delete from ${table} t using ${placesTable(gone)}
        where t.repository_id = x.r and t.${column} = x.i and t.number = x.n`);
  if (come.length > 0) {
    const { columns, values } = repeated ?? { columns: sql``, values: sql`` };
    const issue = repeated ? sql`join issues i on i.repository_id = x.r and i.number = x.n` : sql``;
    await tx.prepared(sql`
      insert into ${table} (repository_id, ${column}, number ${columns})
        select x.r, x.i, x.n ${values} from ${placesTable(come)} ${issue} on conflict do nothing`);
  }
}

type FollowKey = [repositoryId: number, id: number, number: number];

/** The places as a table `x` of `r`, `i` and `n`. */
function placesTable(places: readonly FollowKey[]): Sql {
  const repositoryIds = places.map(([repositoryId]) => repositoryId);
  const ids = places.map(([, id]) => id);
  const numbers = places.map(([, , number]) => number);
  return sql`unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(ids, "bigint")},
    ${sql.array(numbers, "integer")}) as x(r, i, n)`;
}

/** Deletes the comments and reviews of deleted issues: upstream tells only of the issue. Numbers are not used again. */
async function buryChildren(tx: Transaction, rows: RowWrite[]): Promise<void> {
  const buried = rows.flatMap(({ seen, before, stored: { deletedAt } }) => {
    if (deletedAt === null || (before && before.stored.deletedAt !== null)) return [];
    return [{ r: seen.repositoryId, n: seen.key, at: new Date(deletedAt) }];
  });
  if (buried.length === 0) return;
  const keys = JSON.stringify(buried);
  for (const resource of resources) {
    const column = childNumberColumns[resource.kind];
    if (!column) continue;
    await tx.query(sql`
      update ${layoutFor(resource).table} t set deleted_at = x.at, revision = nextval('revision')
        from json_to_recordset(${keys}::json) as x(r bigint, n integer, at timestamptz)
        where t.repository_id = x.r and ${sql.identifier(`t.${column}`)} = x.n and t.deleted_at is null`);
  }
}

async function rememberFormerNames(tx: Transaction, rows: RowWrite[]): Promise<void> {
  // The repository may have had further names between the stored one and the newest.
  const names = rows.flatMap(({ seen, group, stored, before }) =>
    [before?.stored, ...group].flatMap((one) => {
      const name = one?.fields.full_name;
      return typeof name === "string" && name !== stored.fields.full_name
        ? [{ id: seen.key, name: name.toLowerCase() }]
        : [];
    }),
  );
  if (names.length === 0) return;
  await tx.query(sql`
    insert into former_names (full_name, repository_id)
      select name, id from json_to_recordset(${JSON.stringify(names)}::json) as x(name text, id bigint)
      on conflict do nothing`);
}
