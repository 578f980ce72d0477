import { getTableConfig } from "../../../db/drizzle.ts";
import { arrayOf } from "../../../db/statement.ts";
import { textArray } from "../../../db/text-array.ts";
import type { Stamp, Stored } from "./merge-rule.ts";
import type { Seen } from "./observation.ts";
import { type Kind, type Resource, resources } from "./resource.ts";
import { type Fields, type Json, literalOf } from "./template.ts";

/** What is stored of a resource, and the revision that shows whether it still is. */
export interface Known {
  stored: Stored;
  revision: string;
}

/** A row that is to be written. */
export interface Row {
  key: string;
  seen: Seen;
  /** All that was observed of it in this transaction. */
  group: Seen[];
  stored: Stored;
  /** Undefined for a row that is new. */
  before: Known | undefined;
}

/** How a kind of resource lies in its table. */
interface Layout {
  table: string;
  hasRepository: boolean;
  keyColumn: string;
  /** Those that are written, by their names; quoted; and their types. */
  names: readonly string[];
  columns: readonly string[];
  types: readonly string[];
}

const layouts = new Map<Kind, Layout>(resources.map((resource) => [resource.kind, layoutOf(resource)]));

export function layoutFor({ kind }: Pick<Resource, "kind">): Layout {
  return layouts.get(kind) as Layout;
}

function layoutOf(resource: Resource): Layout {
  const { name, columns } = getTableConfig(resource.table);
  const own = columns.filter((column) => column.name !== "revision" && !column.generated);
  const quoted = (column: string) => (column === "default" ? '"default"' : column);
  return {
    table: name,
    hasRepository: resource.keyColumns[0] === "repository_id",
    keyColumn: resource.keyColumns.at(-1) as string,
    names: own.map((column) => column.name),
    columns: own.map((column) => quoted(column.name)),
    types: own.map((column) => column.getSQLType()),
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

/** Reads rows of every kind: for each, in the order of `resources`, an array of repositories' ids and one of keys. */
export const selectKnown = resources
  .map((resource, index) => {
    const { table, hasRepository, keyColumn } = layoutFor(resource);
    const ms = (column: string) => `(extract(epoch from t.${column}) * 1000)::float8`;
    return `select '${resource.kind}' as kind, x.r::text as r, x.k::text as k, t.document,
        ${resource.detailKeys.size > 0 ? "t.detail" : "null::json"} as detail, ${resource.hasBody ? "t.body" : "null"} as body, t.key_stamps,
        ${resource.isVersioned ? ms("updated_at") : "0::float8"} as updated_ms, ${ms("seen_at")} as seen_ms, t.seen_by_read,
        ${ms("deleted_at")} as deleted_ms, t.revision::text as revision
      from unnest(${arrayOf(`$${2 * index + 1}`, "bigint")}, ${arrayOf(`$${2 * index + 2}`, "bigint")}) as x(r, k)
      join ${table} t on ${hasRepository ? "t.repository_id = x.r and " : ""}t.${keyColumn} = x.k`;
  })
  .join(" union all ");

export function knownOf(row: KnownRow): Known {
  const fields: Fields = row.document;
  if (row.detail) Object.assign(fields, row.detail);
  if (fields.body === "\u0004") fields.body = row.body;
  const keyStamps = Object.entries(row.key_stamps ?? {}).map(([key, [updatedAt, seenAt, read]]): [string, Stamp] => [
    key,
    { updatedAt, seenAt, read },
  ]);
  // A row that was only seen in part has an `updated_at` that is not its own; then no key has the row's stamp.
  const isWhole = fields.updated_at !== undefined;
  const stored = {
    fields,
    stamp: { updatedAt: isWhole ? (row.updated_ms ?? 0) : 0, seenAt: row.seen_ms, read: row.seen_by_read },
    keyStamps: Object.fromEntries(keyStamps),
    deletedAt: row.deleted_ms,
  };
  return { stored, revision: row.revision };
}

/**
 * The rows as a table `x` of a statement: an array for each column, so that its text does not depend on their number. With
 * the values for its placeholders, which begin at $1.
 */
export function recordset(
  resource: Resource,
  rows: readonly Row[],
  { without = [] }: { without?: readonly string[] } = {},
): { table: string; columns: string[]; values: unknown[] } {
  const { names, columns, types } = layoutFor(resource);
  const taken = names.flatMap((name, index) => (without.includes(name) ? [] : [index]));
  const written = rows.map((row) => columnsOf(resource, row));
  const arrays = taken.map((index, place) => arrayOf(`$${place + 1}`, types[index] as string));
  const quoted = taken.map((index) => columns[index] as string);
  return {
    table: `unnest(${arrays.join(", ")}) as x(${quoted.join(", ")})`,
    columns: quoted,
    values: taken.map((index) => {
      const column = written.map((row) => row[names[index] as string] ?? null);
      return textArray(types[index] as string, column as (string | null)[]) ?? column;
    }),
  };
}

function columnsOf(resource: Resource, { seen, stored }: Row): Record<string, Json> {
  const document: Fields = {};
  const detail: Fields = {};
  for (const [key, value] of Object.entries(stored.fields)) {
    if (resource.detailKeys.has(key)) detail[key] = value;
    else document[key] = value;
  }
  const columns: Record<string, Json> = { ...resource.columns(stored.fields) };
  for (const [name, value] of Object.entries(columns))
    if (typeof value === "string") columns[name] = columnText(name, value);
  columns[resource.keyColumns.at(-1) as string] = seen.key;
  if (resource.keyColumns[0] === "repository_id") columns.repository_id = seen.repositoryId;
  // Only a part was seen; the column cannot be null, and the stamp is the nearest truth.
  if (columns.updated_at === null && resource.isVersioned) columns.updated_at = partialUpdatedAt(stored);
  if (resource.hasBody) {
    const body = stored.fields.body;
    columns.body = typeof body === "string" ? storableText(literalOf(body)) : null;
    if (typeof body === "string" && columns.body === body) document.body = "\u0004";
  }
  columns.seen_at = new Date(stored.stamp.seenAt).toISOString();
  columns.seen_by_read = stored.stamp.read;
  columns.deleted_at = stored.deletedAt === null ? null : new Date(stored.deletedAt).toISOString();
  const keyStamps = Object.entries(stored.keyStamps).map(([key, { updatedAt, seenAt, read }]): [string, Json] => [
    key,
    [updatedAt, seenAt, read],
  ]);
  columns.key_stamps = keyStamps.length > 0 ? JSON.stringify(Object.fromEntries(keyStamps)) : null;
  if (resource.detailKeys.size > 0) columns.detail = Object.keys(detail).length > 0 ? JSON.stringify(detail) : null;
  columns.document = JSON.stringify(document);
  return columns;
}

function partialUpdatedAt(stored: Stored): string {
  const newest = Math.max(stored.stamp.updatedAt, ...Object.values(stored.keyStamps).map((stamp) => stamp.updatedAt));
  return new Date(newest).toISOString();
}

/** A moment that is none (a pending review may be submitted at "") is no moment; the document keeps what was sent. */
function columnText(column: string, value: string): string | null {
  if (/_(at|on)$/.test(column) && Number.isNaN(Date.parse(value))) return null;
  return storableText(literalOf(value));
}

/** What a Postgres text can hold: no NUL, no lone surrogate. The document keeps what was sent. */
function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\uFFFD");
}
