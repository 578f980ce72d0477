import { type SQL, sql } from "drizzle-orm";
import { getTableConfig } from "drizzle-orm/pg-core";
import type { Database } from "../../db/connection.ts";
import { PEOPLE, touch } from "../../db/revisions.ts";
import { announceChanges, type Change } from "./announcement.ts";
import { type Folded, fold, type Stamp, type Stored } from "./merge-rule.ts";
import type { Observed, Seen } from "./observation.ts";
import { type Kind, type Resource, type ResourceKey, resourceOf, resources } from "./resource.ts";
import { type Fields, type Json, literalOf, referenceId } from "./template.ts";

export type Transaction = Parameters<Parameters<Database["transaction"]>[0]>[0];

export interface Merged extends ResourceKey {
  outcome: Folded["outcome"];
}

/** Rows that other workers insert at the same moment are folded again; each round is lost to another's progress. */
const MAX_ROUNDS = 10;

/**
 * Merges observations in one transaction and says for each what came of it. Upstream should be asked about the tied
 * ones (refresh). Rows are locked in one order, so that two workers merging the same resources wait but never deadlock.
 */
export async function mergeObserved(tx: Transaction, { seen, shapes }: Observed): Promise<Merged[]> {
  await storeShapes(tx, shapes);
  const merged: Merged[] = [];
  for (const resource of resources) {
    const ofKind = seen.filter((one) => one.kind === resource.kind);
    if (ofKind.length > 0) merged.push(...(await mergeKind(tx, resource, ofKind)));
  }
  return merged;
}

/** What is stored of these resources of one kind, by `repositoryId/key`; tombstones are among them. */
export async function findStored(tx: Transaction, kind: Kind, keys: readonly Seen[]): Promise<Map<string, Stored>> {
  return readStored(tx, resourceOf(kind), groupByKey([...keys]), false);
}

async function storeShapes(tx: Transaction, shapes: Map<string, string>): Promise<void> {
  if (shapes.size === 0) return;
  const rows = JSON.stringify([...shapes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, keys]) => ({ id, keys })));
  await tx.execute(sql`insert into shapes (id, keys) select id, keys from json_to_recordset(${rows}::json) as x(id text, keys text)
    where not exists (select from shapes known where known.id = x.id) order by id on conflict do nothing`);
}

async function mergeKind(tx: Transaction, resource: Resource, seen: Seen[]): Promise<Merged[]> {
  const outcomes = new Map<string, Merged>();
  let left = groupByKey(seen);
  for (let round = 0; left.size > 0; round++) {
    if (round === MAX_ROUNDS)
      throw new Error(`${left.size} rows of ${resource.kind} were changed by others ${MAX_ROUNDS} times over`);
    left = await mergeRound(tx, resource, left, outcomes);
  }
  return [...outcomes.values()];
}

/** One read, one insert, one locked update. Answers the groups whose rows another transaction changed in between. */
async function mergeRound(
  tx: Transaction,
  resource: Resource,
  groups: Map<string, Seen[]>,
  outcomes: Map<string, Merged>,
): Promise<Map<string, Seen[]>> {
  const stored = await readStored(tx, resource, groups, false);
  const inserts: Row[] = [];
  const suspects = new Map<string, Seen[]>();
  for (const [key, group] of groups) {
    const folded = foldAll(stored.get(key), group);
    if (!stored.has(key) && folded.next) inserts.push({ key, seen: first(group), group, stored: folded.next });
    else if (folded.next) suspects.set(key, group);
    outcomes.set(key, { ...identity(first(group)), outcome: folded.outcome });
  }

  const updates: Row[] = [];
  if (suspects.size > 0) {
    const locked = await readStored(tx, resource, suspects, true);
    for (const [key, group] of suspects) {
      const folded = foldAll(locked.get(key), group);
      outcomes.set(key, { ...identity(first(group)), outcome: folded.outcome });
      if (folded.next) updates.push({ key, seen: first(group), group, stored: folded.next, before: locked.get(key) });
    }
  }
  const inserted = await insertRows(tx, resource, inserts);
  await updateRows(tx, resource, updates);
  await followRows(tx, resource, [...inserts.filter((row) => inserted.has(row.key)), ...updates]);
  return new Map(
    inserts.filter((row) => !inserted.has(row.key)).map((row) => [row.key, groups.get(row.key) as Seen[]]),
  );
}

function foldAll(stored: Stored | undefined, group: Seen[]): { outcome: Folded["outcome"]; next: Stored | null } {
  let current = stored;
  let outcome: Folded["outcome"] = "known";
  for (const seen of group) {
    const folded = fold(current, seen);
    if (folded.outcome !== "known") outcome = outcome === "tied" ? "tied" : folded.outcome;
    if (folded.outcome !== "known" && folded.next) current = folded.next;
  }
  return { outcome, next: current === stored ? null : (current ?? null) };
}

interface Row {
  key: string;
  seen: Seen;
  /** All that was observed of it in this transaction. */
  group: Seen[];
  stored: Stored;
  before?: Stored | undefined;
}

function groupByKey(seen: Seen[]): Map<string, Seen[]> {
  const sorted = [...seen].sort((a, b) => a.repositoryId - b.repositoryId || a.key - b.key);
  return Map.groupBy(sorted, keyOf);
}

function keyOf({ repositoryId, key }: Pick<Seen, "repositoryId" | "key">): string {
  return `${repositoryId}/${key}`;
}

function first(group: Seen[]): Seen {
  return group[0] as Seen;
}

function identity({ kind, repositoryId, key }: ResourceKey): ResourceKey {
  return { kind, repositoryId, key };
}

interface StoredRow {
  k: string;
  repository_id: string;
  document: Fields;
  detail: Fields | null;
  body: string | null;
  key_stamps: Record<string, [number, number, boolean]> | null;
  updated_ms: number | null;
  seen_ms: number;
  seen_by_read: boolean;
  deleted_ms: number | null;
}

async function readStored(
  tx: Transaction,
  resource: Resource,
  groups: Map<string, Seen[]>,
  forUpdate: boolean,
): Promise<Map<string, Stored>> {
  const { name, keyColumn, hasRepository } = layoutFor(resource);
  const keys = [...groups.values()].map((group) => ({ r: first(group).repositoryId, k: first(group).key }));
  const { rows } = await tx.execute<StoredRow & Record<string, unknown>>(sql`
    select t.${sql.raw(keyColumn)}::text as k, ${sql.raw(hasRepository ? "t.repository_id::text" : "'0'")} as repository_id,
      t.document, ${sql.raw(resource.detailKeys.size > 0 ? "t.detail" : "null::json")} as detail, ${sql.raw(resource.hasBody ? "t.body" : "null")} as body,
      t.key_stamps, t.seen_by_read, ${sql.raw(resource.isVersioned ? "(extract(epoch from t.updated_at) * 1000)::float8" : "0")} as updated_ms,
      (extract(epoch from t.seen_at) * 1000)::float8 as seen_ms, (extract(epoch from t.deleted_at) * 1000)::float8 as deleted_ms
    from json_to_recordset(${JSON.stringify(keys)}::json) as x(r bigint, k bigint)
    join ${sql.raw(name)} t on ${sql.raw(hasRepository ? "t.repository_id = x.r and " : "")} t.${sql.raw(keyColumn)} = x.k
    ${sql.raw(forUpdate ? `order by ${resource.keyColumns.map((column) => `t.${column}`).join(", ")} for no key update of t` : "")}`);
  return new Map(rows.map((row) => [`${row.repository_id}/${row.k}`, toStored(row)]));
}

function toStored(row: StoredRow): Stored {
  const fields: Fields = { ...row.document, ...row.detail };
  if (fields.body === "\u0004") fields.body = row.body;
  const keyStamps = Object.entries(row.key_stamps ?? {}).map(([key, [updatedAt, seenAt, read]]): [string, Stamp] => [
    key,
    { updatedAt, seenAt, read },
  ]);
  // A row that was only seen in part has an `updated_at` that is not its own; then no key has the row's stamp.
  const isWhole = resourceIsWhole(fields);
  return {
    fields,
    stamp: { updatedAt: isWhole ? (row.updated_ms ?? 0) : 0, seenAt: row.seen_ms, read: row.seen_by_read },
    keyStamps: Object.fromEntries(keyStamps),
    deletedAt: row.deleted_ms,
  };
}

function resourceIsWhole(fields: Fields): boolean {
  return fields.updated_at !== undefined;
}

async function insertRows(tx: Transaction, resource: Resource, rows: Row[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const { name, columns, hasRepository, keyColumn } = layoutFor(resource);
  const result = await tx.execute<{ k: string; r: string }>(sql`
    insert into ${sql.raw(name)} (${sql.raw(columns.join(", "))})
    select ${sql.raw(columns.join(", "))} from ${recordset(resource, rows)}
    on conflict (${sql.raw(resource.keyColumns.join(", "))}) do nothing
    returning ${sql.raw(hasRepository ? "repository_id::text" : "'0'")} as r, ${sql.raw(keyColumn)}::text as k`);
  return new Set(result.rows.map((row) => `${row.r}/${row.k}`));
}

async function updateRows(tx: Transaction, resource: Resource, rows: Row[]): Promise<void> {
  if (rows.length === 0) return;
  const { name, columns } = layoutFor(resource);
  const changed = columns.filter((column) => !resource.keyColumns.includes(column));
  await tx.execute(sql`
    update ${sql.raw(name)} t set ${sql.raw(changed.map((column) => `${column} = x.${column}`).join(", "))}, revision = nextval('revision')
    from ${recordset(resource, rows)}
    where ${sql.raw(resource.keyColumns.map((column) => `t.${column} = x.${column}`).join(" and "))}`);
}

/** What other tables hold of these rows: who carries a label, who is assigned, which names a repository had. */
async function followRows(tx: Transaction, resource: Resource, rows: Row[]): Promise<void> {
  if (rows.length === 0) return;
  touchRows(tx, resource, rows);
  if (resource.kind === "issue") {
    await followList(tx, rows, "labels", "issue_labels", "label_id");
    await followList(tx, rows, "assignees", "issue_assignees", "user_id");
    await buryChildren(tx, rows);
  }
  if (resource.kind === "repository") await rememberFormerNames(tx, rows);
  if (resource.kind === "issue" || resource.kind === "pull_request") await announceChanges(tx, rows.map(changeOf));
  const numberColumn = childNumberColumns[resource.kind];
  if (numberColumn)
    await buryOrphans(
      tx,
      layoutFor(resource).name,
      numberColumn,
      rows.filter((row) => !row.before),
    );
}

/** Nobody shows a person who is met for the first time but what is stored along with them. */
function touchRows(tx: Transaction, { kind }: Resource, rows: Row[]): void {
  if (kind === "user") {
    if (rows.some(({ before }) => before)) touch(tx, [PEOPLE]);
  } else if (kind === "repository") {
    const names = rows.flatMap(({ stored, before }) => [stored.fields.full_name, before?.fields.full_name]);
    touch(
      tx,
      rows.map(({ seen }) => seen.key),
      names.filter((name) => typeof name === "string"),
    );
  } else {
    touch(tx, new Set(rows.map(({ seen }) => seen.repositoryId)));
  }
}

/** A pull request is announced as one also when its issue side was changed. */
function changeOf({ seen, stored }: Row): Change {
  const isPull = seen.kind === "pull_request" || stored.fields.pull_request != null;
  return { repositoryId: seen.repositoryId, kind: isPull ? "pull_request" : "issue", number: seen.key };
}

/** What lies under an issue or pull request, and the column that says under which. */
const childNumberColumns: Partial<Record<Kind, string>> = {
  issue_comment: "issue_number",
  review: "pull_number",
  review_comment: "pull_number",
};

async function followList(tx: Transaction, rows: Row[], key: string, table: string, column: string): Promise<void> {
  const idsOf = (stored: Stored | undefined) => {
    const list = stored?.fields[key];
    return Array.isArray(list) ? [...new Set(list.map(referenceId).filter((id) => id !== null))] : [];
  };
  const gone: Json[] = [];
  const come: Json[] = [];
  for (const { seen, stored, before } of rows) {
    const [was, is] = [idsOf(before), idsOf(stored)];
    const row = (id: number) => ({ r: seen.repositoryId, i: id, n: seen.key });
    gone.push(...was.filter((id) => !is.includes(id)).map(row));
    come.push(...is.filter((id) => !was.includes(id)).map(row));
  }
  if (gone.length > 0) {
    await tx.execute(sql`delete from ${sql.raw(table)} t using json_to_recordset(${JSON.stringify(gone)}::json) as x(r bigint, i bigint, n integer)
      where t.repository_id = x.r and t.${sql.raw(column)} = x.i and t.number = x.n`);
  }
  if (come.length > 0) {
    await tx.execute(sql`insert into ${sql.raw(table)} (repository_id, ${sql.raw(column)}, number)
      select r, i, n from json_to_recordset(${JSON.stringify(come)}::json) as x(r bigint, i bigint, n integer) on conflict do nothing`);
  }
}

/** Upstream deletes what was said under an issue with it, and says so of the issue alone. Numbers are not used again. */
async function buryChildren(tx: Transaction, rows: Row[]): Promise<void> {
  const buried = rows.filter(({ before, stored }) => stored.deletedAt !== null && (before?.deletedAt ?? null) === null);
  if (buried.length === 0) return;
  const keys = JSON.stringify(
    buried.map(({ seen, stored }) => ({ r: seen.repositoryId, n: seen.key, at: new Date(stored.deletedAt as number) })),
  );
  for (const resource of resources) {
    const column = childNumberColumns[resource.kind];
    if (!column) continue;
    await tx.execute(sql`update ${sql.raw(layoutFor(resource).name)} t set deleted_at = x.at, revision = nextval('revision')
      from json_to_recordset(${keys}::json) as x(r bigint, n integer, at timestamptz)
      where t.repository_id = x.r and t.${sql.raw(column)} = x.n and t.deleted_at is null`);
  }
}

/** A delivery about a comment may come after the deletion of what it stood under. */
async function buryOrphans(tx: Transaction, table: string, column: string, rows: Row[]): Promise<void> {
  if (rows.length === 0) return;
  const keys = JSON.stringify(rows.map(({ seen }) => ({ r: seen.repositoryId, k: seen.key })));
  await tx.execute(sql`update ${sql.raw(table)} t set deleted_at = i.deleted_at
    from json_to_recordset(${keys}::json) as x(r bigint, k bigint), issues i
    where t.repository_id = x.r and t.id = x.k and i.repository_id = x.r and i.number = t.${sql.raw(column)}
      and i.deleted_at is not null and t.deleted_at is null`);
}

async function rememberFormerNames(tx: Transaction, rows: Row[]): Promise<void> {
  // Between the stored name and the newest there may have been others.
  const names = rows.flatMap(({ seen, group, stored, before }) =>
    [before, ...group].flatMap((one) => {
      const name = one?.fields.full_name;
      return typeof name === "string" && name !== stored.fields.full_name
        ? [{ id: seen.key, name: name.toLowerCase() }]
        : [];
    }),
  );
  if (names.length === 0) return;
  await tx.execute(sql`insert into former_names (full_name, repository_id)
    select name, id from json_to_recordset(${JSON.stringify(names)}::json) as x(name text, id bigint) on conflict do nothing`);
}

/** The rows as a table `x` of the statement: an array for each column, so that its text does not depend on their number. */
function recordset(resource: Resource, rows: Row[]): SQL {
  const { names, types, columns } = layoutFor(resource);
  const values = rows.map((row) => columnsOf(resource, row));
  const arrays = names.map(
    (name, index) => sql`${sql.param(values.map((row) => row[name] ?? null))}::${sql.raw(types[index] as string)}[]`,
  );
  return sql`unnest(${sql.join(arrays, sql`, `)}) as x(${sql.raw(columns.join(", "))})`;
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

const layouts = new WeakMap<Resource, ReturnType<typeof layoutOf>>();

function layoutFor(resource: Resource): ReturnType<typeof layoutOf> {
  const known = layouts.get(resource);
  if (known) return known;
  const layout = layoutOf(resource);
  layouts.set(resource, layout);
  return layout;
}

function layoutOf(resource: Resource) {
  const { name, columns } = getTableConfig(resource.table);
  const own = columns.filter((column) => column.name !== "revision" && !column.generated);
  const quoted = (column: string) => (column === "default" ? '"default"' : column);
  return {
    name,
    names: own.map((column) => column.name),
    columns: own.map((column) => quoted(column.name)),
    types: own.map((column) => column.getSQLType()),
    hasRepository: resource.keyColumns[0] === "repository_id",
    keyColumn: resource.keyColumns.at(-1) as string,
  };
}
