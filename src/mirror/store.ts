import type { Transaction } from "../../db/connection.ts";
import { announceChanges, type Change } from "./announcement.ts";
import { childNumberColumns, followRows } from "./follow-rows.ts";
import { type Folded, fold, type Stored } from "./merge-rule.ts";
import type { Observed, Seen } from "./observation.ts";
import { type Kind, type Resource, type ResourceKey, resources } from "./resource.ts";
import { type Known, type KnownRow, knownOf, layoutFor, type Row, recordset, selectKnown } from "./rows.ts";
import { inTransaction } from "./statement.ts";

export type { Transaction } from "../../db/connection.ts";

export interface Merged extends ResourceKey {
  outcome: Folded["outcome"];
}

/** All that was observed of each resource of one kind, by `repositoryId/key`, in the order of their keys. */
type Groups = Map<string, Seen[]>;

/** Rows that others change or insert at the same moment are folded again; each round is lost to another's progress. */
const MAX_ROUNDS = 10;

/**
 * Merges observations in one transaction and says for each what came of it. Upstream should be asked about the tied
 * ones (refresh). All is read and folded first and rows are locked only to be written, in one order: two workers that
 * merge the same resources wait for each other's writing, but never deadlock.
 */
export async function mergeObserved(tx: Transaction, { seen, shapes }: Observed): Promise<Merged[]> {
  const groups = new Map<Kind, Groups>();
  for (const [kind, ofKind] of Map.groupBy(seen, (one) => one.kind)) groups.set(kind, groupByKey(ofKind));
  const known = await readKnown(tx, groups);
  const merged: Merged[] = [];
  const changes: Change[] = [];
  for (const resource of resources) {
    const ofKind = groups.get(resource.kind);
    if (!ofKind) continue;
    const { outcomes, written } = await mergeKind(tx, resource, ofKind, known.get(resource.kind) ?? new Map());
    merged.push(...outcomes);
    if (resource.kind === "issue" || resource.kind === "pull_request") changes.push(...written.map(changeOf));
  }
  await storeShapes(tx, shapes);
  await announceChanges(tx, changes);
  return merged;
}

/** What is stored of these resources of one kind, by `repositoryId/key`; tombstones are among them. */
export async function findStored(tx: Transaction, kind: Kind, keys: readonly Seen[]): Promise<Map<string, Stored>> {
  const known = await readKnown(tx, new Map([[kind, groupByKey([...keys])]]));
  return new Map([...(known.get(kind) ?? [])].map(([key, { stored }]) => [key, stored]));
}

async function storeShapes(tx: Transaction, shapes: Map<string, string>): Promise<void> {
  if (shapes.size === 0) return;
  const ids = [...shapes.keys()].sort();
  const known = await inTransaction<{ id: string }>(tx, "select id from shapes where id = any($1::text[])", [ids]);
  const unknown = ids.filter((id) => !known.some((row) => row.id === id));
  if (unknown.length === 0) return;
  await inTransaction(
    tx,
    "insert into shapes (id, keys) select id, keys from unnest($1::text[], $2::text[]) as x(id, keys) on conflict do nothing",
    [unknown, unknown.map((id) => shapes.get(id))],
  );
}

async function mergeKind(
  tx: Transaction,
  resource: Resource,
  groups: Groups,
  found: Map<string, Known>,
): Promise<{ outcomes: Merged[]; written: Row[] }> {
  const outcomes = new Map<string, Merged>();
  const written: Row[] = [];
  let [left, known] = [groups, found];
  for (let round = 0; left.size > 0; round++) {
    if (round === MAX_ROUNDS)
      throw new Error(`${left.size} rows of ${resource.kind} were changed by others ${MAX_ROUNDS} times over`);
    if (round > 0) known = (await readKnown(tx, new Map([[resource.kind, left]]))).get(resource.kind) ?? new Map();
    const rows: Row[] = [];
    for (const [key, group] of left) {
      const before = known.get(key);
      const { outcome, next } = foldAll(before?.stored, group);
      outcomes.set(key, { ...identity(first(group)), outcome });
      if (next) rows.push({ key, seen: first(group), group, stored: next, before });
    }
    const lost = await writeRows(tx, resource, rows);
    const kept = rows.filter((row) => !lost.has(row.key));
    await followRows(tx, resource, kept);
    written.push(...kept);
    left = new Map([...left].filter(([key]) => lost.has(key)));
  }
  return { outcomes: [...outcomes.values()], written };
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

function groupByKey(seen: Seen[]): Groups {
  const sorted = [...seen].sort((a, b) => a.repositoryId - b.repositoryId || a.key - b.key);
  return Map.groupBy(sorted, ({ repositoryId, key }) => `${repositoryId}/${key}`);
}

function first(group: Seen[]): Seen {
  return group[0] as Seen;
}

function identity({ kind, repositoryId, key }: ResourceKey): ResourceKey {
  return { kind, repositoryId, key };
}

/** A pull request is announced as one also when its issue side was changed. */
function changeOf({ seen, stored }: Row): Change {
  const isPull = seen.kind === "pull_request" || stored.fields.pull_request != null;
  return { repositoryId: seen.repositoryId, kind: isPull ? "pull_request" : "issue", number: seen.key };
}

/** One statement for all kinds. Nothing is locked. */
async function readKnown(tx: Transaction, groups: Map<Kind, Groups>): Promise<Map<Kind, Map<string, Known>>> {
  const values = resources.flatMap(({ kind }) => {
    const asked = [...(groups.get(kind)?.values() ?? [])].map(first);
    return [asked.map(({ repositoryId }) => repositoryId), asked.map(({ key }) => key)];
  });
  const known = new Map<Kind, Map<string, Known>>();
  for (const row of await inTransaction<KnownRow>(tx, selectKnown, values)) {
    const ofKind = known.get(row.kind) ?? new Map<string, Known>();
    known.set(row.kind, ofKind.set(`${row.r}/${row.k}`, knownOf(row)));
  }
  return known;
}

/** Answers the keys of those that another transaction has changed since they were read; these were not written. */
async function writeRows(tx: Transaction, resource: Resource, rows: Row[]): Promise<Set<string>> {
  const inserts = rows.filter(({ before }) => !before);
  const inserted = await insertRows(tx, resource, inserts);
  const updates = rows.filter(({ before }) => before);
  const unchanged = await lockUnchanged(tx, resource, updates);
  const texts = TEXTS.filter((name) => layoutFor(resource).names.includes(name));
  const isReworded = ({ stored, before }: Row) =>
    texts.some((name) => stored.fields[name] !== before?.stored.fields[name]);
  const locked = updates.filter(({ key }) => unchanged.has(key));
  await updateRows(tx, resource, locked.filter(isReworded));
  await updateRows(
    tx,
    resource,
    locked.filter((row) => !isReworded(row)),
    texts,
  );
  return new Set(rows.map(({ key }) => key).filter((key) => !inserted.has(key) && !unchanged.has(key)));
}

/** What few changes change, and what is dear to write: it may be long, and words to search by are made of it. */
const TEXTS = ["title", "body"];

async function insertRows(tx: Transaction, resource: Resource, rows: Row[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const { table, hasRepository, keyColumn } = layoutFor(resource);
  const { table: x, columns, values } = recordset(resource, rows);
  // A delivery about a comment may come after the deletion of what it stood under.
  const parent = childNumberColumns[resource.kind];
  const sources = columns.map((column) =>
    parent && column === "deleted_at" ? "coalesce(x.deleted_at, i.deleted_at)" : `x.${column}`,
  );
  const join = parent ? ` left join issues i on i.repository_id = x.repository_id and i.number = x.${parent}` : "";
  const inserted = await inTransaction<{ key: string }>(
    tx,
    `insert into ${table} (${columns.join(", ")}) select ${sources.join(", ")} from ${x}${join}
      on conflict (${resource.keyColumns.join(", ")}) do nothing
      returning ${hasRepository ? "repository_id" : "0"} || '/' || ${keyColumn} as key`,
    values,
  );
  return new Set(inserted.map(({ key }) => key));
}

/**
 * Locks the rows and answers those that are still as they were read. A second worker that does the same at this moment waits
 * here, and then finds a new revision at what the first has written.
 */
async function lockUnchanged(tx: Transaction, resource: Resource, rows: Row[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const { table, hasRepository, keyColumn } = layoutFor(resource);
  const locked = await inTransaction<{ key: string; revision: string }>(
    tx,
    `select ${hasRepository ? "t.repository_id" : "0"} || '/' || t.${keyColumn} as key, t.revision::text as revision
      from unnest($1::bigint[], $2::bigint[]) as x(r, k)
      join ${table} t on ${hasRepository ? "t.repository_id = x.r and " : ""}t.${keyColumn} = x.k
      order by ${resource.keyColumns.map((column) => `t.${column}`).join(", ")} for no key update of t`,
    [rows.map(({ seen }) => seen.repositoryId), rows.map(({ seen }) => seen.key)],
  );
  const revisions = new Map(locked.map(({ key, revision }) => [key, revision]));
  return new Set(rows.filter(({ key, before }) => revisions.get(key) === before?.revision).map(({ key }) => key));
}

async function updateRows(
  tx: Transaction,
  resource: Resource,
  rows: Row[],
  without: readonly string[] = [],
): Promise<void> {
  if (rows.length === 0) return;
  const { table: x, columns, values } = recordset(resource, rows, { without });
  const changed = columns.filter((column) => !resource.keyColumns.includes(column));
  await inTransaction(
    tx,
    `update ${layoutFor(resource).table} t set ${changed.map((column) => `${column} = x.${column}`).join(", ")}, revision = nextval('revision')
      from ${x} where ${resource.keyColumns.map((column) => `t.${column} = x.${column}`).join(" and ")}`,
    values,
  );
}
