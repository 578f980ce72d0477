import type { Transaction } from "../../../db/database.ts";
import { PEOPLE } from "../../../db/revisions.ts";
import type { ColumnType } from "../../../db/schema/columns.ts";
import { type PgType, type SQL, sql, storableText, type Value } from "../../../db/sql.ts";
import type { Fields, Json } from "../../json.ts";
import type { Kind, Resource, ResourceKey } from "../../kinds/contract/kind.ts";
import { BODY_PLACEHOLDER, literalOf, referenceId } from "../../kinds/contract/placeholders.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import { mayHaveName } from "../../kinds/user/kind.ts";
import { fitting, fittingKey } from "./fitting.ts";
import { knownTime, orderedAt, type Stamp, type Stored, sameValue } from "./merge-rule.ts";
import type { Seen } from "./observation.ts";

/** The stored resource, with the revision of its row. A new revision shows that the row has changed. */
export interface Known {
  stored: Stored;
  revision: string;
}

/** A row that is to be written. */
export interface RowWrite {
  key: string;
  seen: Seen;
  /** All observations of the row in this transaction. */
  group: Seen[];
  stored: Stored;
  /** Undefined for a row that is new. */
  before: Known | undefined;
}

/** How a kind of resource lies in its table `t`. */
interface Layout {
  table: SQL;
  /** The id of a row's repository; 0 where it has none. */
  repositoryId: SQL;
  key: SQL;
  /** The condition that `t` is the row with the repository `x.r` and the key `x.k`. */
  isRow: SQL;
  /** The columns of its primary key, in order. */
  keyColumns: readonly string[];
  /** The types of the columns that are written. */
  types: Readonly<Record<string, PgType>>;
}

const LAYOUTS: ReadonlyMap<Kind, Layout> = new Map(resources.map((one) => [one.kind, layoutOf(one)]));

export function layoutFor({ kind }: Resource): Layout {
  const layout = LAYOUTS.get(kind);
  if (!layout) throw new Error(`There is no resource ${kind}`);
  return layout;
}

function layoutOf({ table, columnTypes: columns, keyColumn }: Resource): Layout {
  const key = sql.identifier(`t.${keyColumn}`);
  const hasRepository = "repository_id" in columns;
  const written = Object.entries(typesOf(columns)).filter(
    ([column, type]) => column !== "revision" && type !== "tsvector",
  );
  return {
    table: sql`${table}`,
    repositoryId: hasRepository ? sql`t.repository_id` : sql`0`,
    key,
    isRow: hasRepository ? sql`t.repository_id = x.r and ${key} = x.k` : sql`${key} = x.k`,
    keyColumns: hasRepository ? ["repository_id", keyColumn] : [keyColumn],
    types: Object.fromEntries(written),
  };
}

/** A row of any kind, as `selectKnown` reads it. */
export interface KnownRow {
  kind: Kind;
  r: string;
  k: string;
  document: Fields;
  detail: Fields | null;
  body: string | null;
  key_stamps: Record<string, [number, number, boolean]> | null;
  updated_ms: number | null;
  seen_ms: number;
  seen_by_read: boolean;
  deleted_ms: number | null;
  revision: string;
}

/**
 * Reads the stored rows of these resources. The statement's text does not depend on which kinds are asked for, so it is
 * prepared once.
 */
export function selectKnown(asked: ReadonlyMap<Kind, readonly ResourceKey[]>): SQL {
  const ms = (column: SQL) => sql`(extract(epoch from ${column}) * 1000)::float8`;
  const selects = resources.map((resource) => {
    const { table, isRow } = layoutFor(resource);
    const keys = asked.get(resource.kind) ?? [];
    const repositoryIds = keys.map(({ repositoryId }) => repositoryId);
    const own = keys.map(({ key }) => key);
    return sql`
      select ${sql.script(`'${resource.kind}'`)} as kind, x.r::text as r, x.k::text as k, t.document,
          ${resource.detailKeys.size > 0 ? sql`t.detail` : sql`null::json`} as detail,
          ${resource.hasBody ? sql`t.body` : sql`null`} as body, t.key_stamps,
          ${resource.isVersioned ? ms(sql`t.updated_at`) : resource.progressOf ? sql`t.progress::float8` : sql`0::float8`} as updated_ms,
          ${ms(sql`t.seen_at`)} as seen_ms, t.seen_by_read, ${ms(sql`t.deleted_at`)} as deleted_ms,
          t.revision::text as revision
        from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(own, "bigint")}) as x(r, k)
        join ${table} t on ${isRow}`;
  });
  return sql.join(selects, " union all ");
}

/** @param now by our clock, in ms */
export function knownOf(row: KnownRow, now: number): Known {
  const fields: Fields = row.document;
  if (row.detail) Object.assign(fields, row.detail);
  if (fields.body === BODY_PLACEHOLDER) fields.body = row.body;
  const keyStamps = Object.entries(row.key_stamps ?? {}).map(([key, [updatedAt, seenAt, read]]): [string, Stamp] => [
    key,
    { updatedAt, seenAt: knownTime(seenAt, now), read },
  ]);
  // A row that was only seen in part has a borrowed `updated_at`, so no key may use it as its stamp.
  const isWhole = fields.updated_at !== undefined || resourceOf(row.kind).progressOf !== undefined;
  const stored = {
    fields,
    stamp: {
      updatedAt: isWhole ? orderedTime(row, now) : 0,
      seenAt: knownTime(row.seen_ms, now),
      read: row.seen_by_read,
    },
    keyStamps: Object.fromEntries(keyStamps),
    deletedAt: row.deleted_ms === null ? null : knownTime(row.deleted_ms, now),
  };
  return { stored, revision: row.revision };
}

function orderedTime({ kind, updated_ms, seen_ms }: KnownRow, now: number): number {
  const time = updated_ms ?? 0;
  return resourceOf(kind).progressOf ? time : orderedAt(time, Math.min(seen_ms, now));
}

/**
 * The rows as a table `x` of a statement: an array for each column, so that the text does not depend on their number.
 */
export function recordset(
  resource: Resource,
  rows: readonly RowWrite[],
  { without = [] }: { without?: readonly string[] } = {},
): { table: SQL; columns: string[] } {
  const written = rows.map((row) => columnsOf(resource, row));
  const taken = Object.entries(layoutFor(resource).types).filter(([column]) => !without.includes(column));
  return columnTable(Object.fromEntries(taken), written);
}

export function typesOf(columns: Readonly<Record<string, ColumnType>>): Record<string, PgType> {
  return Object.fromEntries(Object.entries(columns).map(([column, { type }]) => [column, type]));
}

/** Rows of columns of these types as a table `x` of a statement. */
export function columnTable(
  types: Readonly<Record<string, PgType>>,
  rows: readonly Readonly<Record<string, Json>>[],
): { table: SQL; columns: string[] } {
  const arrays = Object.entries(types).map(([column, type]) =>
    sql.array(
      rows.map((row) => columnValue(row[column])),
      type,
    ),
  );
  const columns = Object.keys(types);
  return { table: sql`unnest(${sql.join(arrays)}) as x(${sql.join(columns.map(sql.identifier))})`, columns };
}

/** If upstream sends an object for a text column, the column gets its JSON. */
function columnValue(value: Json | undefined): Value {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : (value ?? null);
}

function columnsOf(resource: Resource, row: RowWrite): Record<string, Json> {
  const { seen, stored } = row;
  const document: Fields = {};
  const detail: Fields = {};
  for (const [key, value] of Object.entries(stored.fields)) {
    if (resource.detailKeys.has(key)) detail[key] = value;
    else document[key] = value;
  }
  const derived = resource.columns(stored.fields);
  const columns: Record<string, Json> = {};
  for (const name in layoutFor(resource).types) {
    const value = name in derived ? derived[name] : stored.fields[name];
    columns[name] = typeof value === "string" ? literalOf(value) : (value ?? null);
  }
  columns[resource.keyColumn] = seen.key;
  if ("repository_id" in resource.columnTypes) columns.repository_id = seen.repositoryId;
  // Only a part was seen, and the column cannot be null. The stamp is the best known time.
  if (columns.updated_at === null && resource.isVersioned) columns.updated_at = partialUpdatedAt(stored);
  if (resource.progressOf) columns.progress = stored.stamp.updatedAt;
  if (resource.hasBody) {
    const body = stored.fields.body;
    columns.body = typeof body === "string" ? storableText(literalOf(body)) : null;
    if (typeof body === "string" && columns.body === body) document.body = BODY_PLACEHOLDER;
  }
  columns.seen_at = new Date(stored.stamp.seenAt).toISOString();
  columns.seen_by_read = stored.stamp.read;
  columns.changed_at = changedAt(resource, row);
  columns.deleted_at = stored.deletedAt === null ? null : new Date(stored.deletedAt).toISOString();
  const keyStamps = Object.entries(stored.keyStamps).map(([key, { updatedAt, seenAt, read }]): [string, Json] => [
    key,
    [updatedAt, seenAt, read],
  ]);
  columns.key_stamps = keyStamps.length > 0 ? JSON.stringify(Object.fromEntries(keyStamps)) : null;
  if (resource.detailKeys.size > 0) columns.detail = Object.keys(detail).length > 0 ? JSON.stringify(detail) : null;
  columns.document = JSON.stringify(document);
  for (const [name, type] of Object.entries(resource.columnTypes))
    if (name in columns) columns[name] = fitting(columns[name] ?? null, type);
  return columns;
}

/**
 * When a known value became another, or the resource was deleted, in whole seconds, as Last-Modified counts. They are
 * rounded up: what was shown within that second before is older. Null: neither happened.
 */
function changedAt({ isVersioned }: Resource, { stored, before, group }: RowWrite): string | null {
  if (!before) return null;
  const { fields, stamp, deletedAt } = before.stored;
  const isSame = Object.entries(fields).every(([key, value]) => sameValue(value, stored.fields[key]));
  // Whatever carried a deleted resource is shown without it.
  if (isSame && (deletedAt === null) === (stored.deletedAt === null)) return null;
  const hasMoved = isVersioned && stored.stamp.updatedAt > stamp.updatedAt;
  const at = hasMoved ? stored.stamp.updatedAt : Math.max(...group.map((one) => one.stamp.seenAt));
  return new Date(Math.ceil(at / 1_000) * 1_000).toISOString();
}

function partialUpdatedAt(stored: Stored): string {
  const newest = Math.max(stored.stamp.updatedAt, ...Object.values(stored.keyStamps).map((stamp) => stamp.updatedAt));
  return new Date(newest).toISOString();
}

/**
 * Updates tables that repeat values of these rows: labels of issues, assignees, former names of repositories, accounts whose
 * names are to be asked for.
 */
export async function followRows(tx: Transaction, resource: Resource, rows: RowWrite[]): Promise<void> {
  if (rows.length === 0) return;
  touchRows(tx, resource, rows);
  if (resource.kind === "issue") {
    await followList(tx, rows, "labels", LABELS);
    await followList(tx, rows, "assignees", ASSIGNEES);
  }
  await buryChildren(tx, resource, rows);
  if (resource.kind === "repository") await rememberFormerNames(tx, rows);
  if (resource.kind === "user") await askForNames(tx, rows);
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

/** The table that holds the members of an issue's list. */
interface ListPlace {
  table: SQL;
  column: SQL;
  /** Columns of the issue `i` that the table repeats, and their values. */
  repeated?: { columns: SQL; values: SQL };
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
function placesTable(places: readonly FollowKey[]): SQL {
  const repositoryIds = places.map(([repositoryId]) => repositoryId);
  const ids = places.map(([, id]) => id);
  const numbers = places.map(([, , number]) => number);
  return sql`unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(ids, "bigint")},
    ${sql.array(numbers, "integer")}) as x(r, i, n)`;
}

/** Deletes what stands under deleted resources: upstream tells only of these. Numbers are not used again. */
async function buryChildren(tx: Transaction, { kind }: Resource, rows: RowWrite[]): Promise<void> {
  const buried = rows.flatMap(({ seen, before, stored: { deletedAt } }) => {
    if (deletedAt === null || (before && before.stored.deletedAt !== null)) return [];
    return [{ r: seen.repositoryId, n: seen.key, at: new Date(deletedAt) }];
  });
  if (buried.length === 0) return;
  const keys = sql.json(buried);
  for (const resource of resources) {
    if (resource.parent?.buriedWith !== kind) continue;
    const { column } = resource.parent;
    const { table, keyColumns } = layoutFor(resource);
    const key = sql.join(keyColumns.map((name) => sql.identifier(`t.${name}`)));
    // Locked in the order in which every merge locks them.
    await tx.query(sql`
      with x as (select * from json_to_recordset(${keys}) as x(r bigint, n bigint, at timestamptz)),
      buried as (select ${key}, x.at from ${table} t join x on t.repository_id = x.r and ${sql.identifier(`t.${column}`)} = x.n
        where t.deleted_at is null order by ${key} for no key update of t)
      update ${table} t set deleted_at = b.at, revision = nextval('revision') from buried b
        where ${sql.and(keyColumns.map((name) => sql`${sql.identifier(`t.${name}`)} = ${sql.identifier(`b.${name}`)}`))}`);
  }
}

async function rememberFormerNames(tx: Transaction, rows: RowWrite[]): Promise<void> {
  // The repository may have had further names between the stored one and the newest.
  const names = rows.flatMap(({ seen, group, stored, before }) =>
    // A push may name any other repository.
    [before?.stored, ...group.filter(({ stamp }) => stamp.read)].flatMap((one) => {
      const name = one?.fields.full_name;
      return typeof name === "string" && name !== stored.fields.full_name
        ? [{ id: seen.key, name: fittingKey(name.toLowerCase()) }]
        : [];
    }),
  );
  if (names.length === 0) return;
  await tx.query(sql`
    insert into former_names (full_name, repository_id)
      select name, id from json_to_recordset(${sql.json(names)}) as x(name text, id bigint)
      on conflict do nothing`);
}

/** Whoever inserted an account's row is alone to insert this one, so no two transactions wait for each other here. */
async function askForNames(tx: Transaction, rows: readonly RowWrite[]): Promise<void> {
  const ids = rows
    .filter(({ before, stored }) => !before && mayHaveName(stored.fields.type))
    .map(({ seen }) => seen.key);
  if (ids.length === 0) return;
  await tx.prepared(sql`
    insert into account_names (user_id, due_at) select x.id, ${tx.now()} from unnest(${sql.array(ids, "bigint")}) as x(id)
      on conflict do nothing`);
}
