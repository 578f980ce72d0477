import { type Transaction, together } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Kind, Resource, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import { type LastSaid, noteFound } from "./found.ts";
import { type Folded, fold, outdatedKeys, type Stored } from "./merge-rule.ts";
import type { Observed, Seen } from "./observation.ts";
import {
  followRows,
  type Known,
  type KnownRow,
  knownOf,
  layoutFor,
  type RowWrite,
  recordset,
  selectKnown,
} from "./rows.ts";

export interface Merged extends ResourceKey {
  outcome: Folded["outcome"];
  /** The keys whose values contradict each other. Empty: no conflict. */
  conflicting: readonly string[];
  /** The stored row as it is now; undefined where there is none. */
  stored: Stored | undefined;
}

/** The observations of one kind, grouped by resource (`repositoryId/key`), in the order of the keys. */
type Groups<One extends ResourceKey = Seen> = Map<string, One[]>;

/**
 * A row that disappears before it is locked is folded again in another round. Each round means that another transaction
 * has made progress.
 */
const MAX_ROUNDS = 10;

/**
 * Merges observations in one transaction and says for each what came of it. Upstream should be asked about the conflicting
 * ones (refresh). All rows are read and folded first. Then the rows to write are locked in one order. So two workers
 * that merge the same resources wait for each other and do not deadlock.
 * @param told the values that this transaction's webhooks gave; events are made of all other changes
 */
export async function mergeObserved(
  tx: Transaction,
  { seen, shapes }: Observed,
  told: LastSaid = NOTHING_TOLD,
): Promise<Merged[]> {
  const merged = new Map<string, Merged>();
  let left = groupByKind(seen);
  for (let round = 0; left.size > 0; round++) {
    if (round === MAX_ROUNDS) throw new Error(`Rows came and went ${MAX_ROUNDS} times over`);
    const folded = foldKnown(left, await readKnown(tx, left), merged);
    const { own, lost } = await takeRows(tx, folded, merged);
    // A deletion also deletes the rows below it, so those have to be written first.
    await together([
      ...own.map(({ resource, rows }) => updateRows(tx, resource, rows)),
      ...own.map(({ resource, rows }) => followRows(tx, resource, rows)),
      ...own.map(({ resource, rows }) => noteFound(tx, resource.kind, rows, told)),
      // Shapes come last, since two transactions with the same new shape wait for each other.
      round === 0 ? storeShapes(tx, shapes) : Promise.resolve(),
    ]);
    left = lost;
  }
  return [...merged.values()];
}

const NOTHING_TOLD: ReadonlyMap<string, never> = new Map<string, never>();

/** The stored rows of these resources of one kind, by `repositoryId/key`; tombstones are among them. */
export async function findStored(
  tx: Transaction,
  kind: Kind,
  keys: readonly ResourceKey[],
): Promise<Map<string, Stored>> {
  const known = await readKnown(tx, groupByKind(keys));
  return new Map([...(known.get(kind) ?? [])].map(([key, { stored }]) => [key, stored]));
}

/** Looks up the stored rows of these resources, of whatever kinds; tombstones are among them. */
export async function findAllStored(
  tx: Transaction,
  keys: readonly ResourceKey[],
): Promise<(one: ResourceKey) => Stored | undefined> {
  if (keys.length === 0) return () => undefined;
  const known = await readKnown(tx, groupByKind(keys));
  return ({ kind, repositoryId, key }) => known.get(kind)?.get(`${repositoryId}/${key}`)?.stored;
}

async function storeShapes(tx: Transaction, shapes: Map<string, string>): Promise<void> {
  if (shapes.size === 0) return;
  await tx.prepared(sql`
    insert into shapes (id, keys)
      select x.id, x.keys from unnest(${[...shapes.keys()]}::text[], ${[...shapes.values()]}::text[]) as x(id, keys)
        where not exists (select from shapes known where known.id = x.id) order by x.id
      on conflict do nothing`);
}

/** The rows of one kind that are to be written. */
interface RowsOfKind {
  resource: Resource;
  rows: RowWrite[];
}

/** Notes each outcome in `merged`. Answers the rows to write, in the order of their locks. */
function foldKnown(
  groups: Map<Kind, Groups>,
  known: Map<Kind, Map<string, Known>>,
  merged: Map<string, Merged>,
): RowsOfKind[] {
  return resources.map((resource) => {
    const rows: RowWrite[] = [];
    for (const [key, group] of groups.get(resource.kind) ?? []) {
      const before = known.get(resource.kind)?.get(key);
      const { outcome, next, conflicting } = foldAll(before?.stored, group);
      merged.set(`${resource.kind} ${key}`, {
        ...identity(first(group)),
        outcome,
        conflicting,
        stored: next ?? before?.stored,
      });
      if (next) rows.push({ key, seen: first(group), group, stored: next, before });
    }
    return { resource, rows };
  });
}

/**
 * Inserts new rows and locks known ones. Rows that another transaction has inserted or changed since they were read are
 * folded again. `lost`: rows that no longer exist.
 */
async function takeRows(
  tx: Transaction,
  folded: RowsOfKind[],
  merged: Map<string, Merged>,
): Promise<{ own: RowsOfKind[]; lost: Map<Kind, Groups> }> {
  const lost = new Map<Kind, Groups>();
  const changed = new Map<Kind, Groups>();
  const take = async ({ resource, rows }: RowsOfKind): Promise<RowsOfKind> => {
    const [inserted, locked] = await together([
      insertRows(
        tx,
        resource,
        rows.filter(({ before }) => !before),
      ),
      // This also locks rows that another transaction has just inserted. Locking those after later rows in the order
      // could deadlock.
      lockRows(tx, resource, rows),
    ]);
    const isLost = ({ key }: RowWrite) => !inserted.has(key) && !locked.has(key);
    const isChanged = ({ key, before }: RowWrite) => !inserted.has(key) && locked.get(key) !== before?.revision;
    const among = (some: RowWrite[]): Groups => new Map(some.map(({ key, group }) => [key, group]));
    const [gone, moved] = [rows.filter(isLost), rows.filter((row) => !isLost(row) && isChanged(row))];
    if (gone.length > 0) lost.set(resource.kind, among(gone));
    if (moved.length > 0) changed.set(resource.kind, among(moved));
    return { resource, rows: rows.filter((row) => !isLost(row) && !isChanged(row)) };
  };
  const own = await together(folded.map(take));
  if (changed.size === 0) return { own, lost };
  const again = foldKnown(changed, await readKnown(tx, changed), merged);
  return {
    own: own.map(({ resource, rows }, at) => ({ resource, rows: [...rows, ...(again[at]?.rows ?? [])] })),
    lost,
  };
}

function foldAll(
  stored: Stored | undefined,
  group: Seen[],
): Pick<Merged, "outcome" | "conflicting"> & { next: Stored | null } {
  let current = stored;
  const conflicting = new Set<string>();
  let outcome: Folded["outcome"] = "known";
  for (const seen of group) {
    const folded = fold(current, seen);
    if (folded.outcome !== "known") outcome = outcome === "conflict" ? "conflict" : folded.outcome;
    if (folded.outcome === "conflict") for (const key of folded.keys) conflicting.add(key);
    if (folded.outcome !== "known" && folded.next) current = folded.next;
  }
  if (current === stored) return { outcome, conflicting: [...conflicting], next: null };
  for (const key of stored && current ? outdatedKeys(stored, current) : []) conflicting.add(key);
  return { outcome: conflicting.size > 0 ? "conflict" : outcome, conflicting: [...conflicting], next: current ?? null };
}

function groupByKind<One extends ResourceKey>(seen: readonly One[]): Map<Kind, Groups<One>> {
  const sorted = [...seen].sort((a, b) => a.repositoryId - b.repositoryId || a.key - b.key);
  const groups = new Map<Kind, Groups<One>>();
  for (const [kind, ofKind] of Map.groupBy(sorted, (one) => one.kind))
    groups.set(
      kind,
      Map.groupBy(ofKind, ({ repositoryId, key }) => `${repositoryId}/${key}`),
    );
  return groups;
}

function first<One>(group: One[]): One {
  // `Map.groupBy` makes no empty groups, so the first member exists. TypeScript does not know that.
  return group[0] as One;
}

function identity({ kind, repositoryId, key }: ResourceKey): ResourceKey {
  return { kind, repositoryId, key };
}

/** Reads the stored rows of all kinds in one statement, without locks. */
async function readKnown(
  tx: Transaction,
  groups: Map<Kind, Groups<ResourceKey>>,
): Promise<Map<Kind, Map<string, Known>>> {
  const asked = new Map([...groups].map(([kind, ofKind]) => [kind, [...ofKind.values()].map(first)]));
  const known = new Map<Kind, Map<string, Known>>();
  const now = tx.now().getTime();
  for (const row of await tx.prepared<KnownRow>(selectKnown(asked))) {
    const ofKind = known.get(row.kind) ?? new Map<string, Known>();
    known.set(row.kind, ofKind.set(`${row.r}/${row.k}`, knownOf(row, now)));
  }
  return known;
}

/** Answers the keys of the rows that it inserted. */
async function insertRows(tx: Transaction, resource: Resource, rows: RowWrite[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const { table, repositoryId, key, keyColumns } = layoutFor(resource);
  const { table: x, columns } = recordset(resource, rows);
  // A delivery about a comment may come after the deletion of its issue or pull request.
  const { parent: stands } = resource;
  const buriedWith = stands?.buriedWith ? resourceOf(stands.buriedWith) : null;
  const values = columns.map((column) =>
    buriedWith && column === "deleted_at" ? sql`coalesce(x.deleted_at, p.deleted_at)` : of("x", column),
  );
  const parent =
    stands && buriedWith
      ? sql`left join ${buriedWith.table} p
        on p.repository_id = x.repository_id and ${of("p", buriedWith.keyColumn)} = ${of("x", stands.column)}`
      : sql``;
  const inserted = await tx.prepared<{ key: string }>(sql`
    insert into ${table} as t (${sql.join(columns.map(sql.identifier))}) select ${sql.join(values)} from ${x} ${parent}
      on conflict (${sql.join(keyColumns.map(sql.identifier))}) do nothing
      returning ${repositoryId} || '/' || ${key} as key`);
  return new Set(inserted.map(({ key }) => key));
}

/**
 * Locks the rows that were not inserted just before, and answers their revisions. A second worker that does the same
 * waits here. It then finds a new revision on each row that the first worker wrote.
 */
async function lockRows(tx: Transaction, resource: Resource, rows: RowWrite[]): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const { table, repositoryId, key, isRow, keyColumns } = layoutFor(resource);
  const repositoryIds = rows.map(({ seen }) => seen.repositoryId);
  const keys = rows.map(({ seen }) => seen.key);
  const areKnown = rows.map(({ before }) => before !== undefined);
  const locked = await tx.prepared<{ key: string; revision: string }>(sql`
    select ${repositoryId} || '/' || ${key} as key, t.revision::text as revision
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(keys, "bigint")}, ${sql.array(areKnown, "boolean")})
        as x(r, k, is_known)
      join ${table} t on ${isRow}
      where x.is_known or t.xmin <> pg_current_xact_id()::xid
      order by ${sql.join(keyColumns.map((column) => of("t", column)))} for no key update of t`);
  return new Map(locked.map(({ key, revision }) => [key, revision]));
}

/** Columns that change seldom and are expensive to write: they may be long, and the search index covers them. */
const TEXTS: readonly string[] = ["title", "body"];

/** Updates rows that existed before; they are locked. */
async function updateRows(tx: Transaction, resource: Resource, rows: RowWrite[]): Promise<void> {
  const texts = TEXTS.filter((name) => name in layoutFor(resource).types);
  const isReworded = ({ stored, before }: RowWrite) =>
    texts.some((name) => stored.fields[name] !== before?.stored.fields[name]);
  const updates = rows.filter(({ before }) => before);
  await together([
    update(tx, resource, updates.filter(isReworded)),
    update(
      tx,
      resource,
      updates.filter((row) => !isReworded(row)),
      texts,
    ),
  ]);
}

async function update(
  tx: Transaction,
  resource: Resource,
  rows: RowWrite[],
  without: readonly string[] = [],
): Promise<void> {
  if (rows.length === 0) return;
  const { table: x, columns } = recordset(resource, rows, { without });
  const { table, keyColumns } = layoutFor(resource);
  const changed = columns.filter((column) => !keyColumns.includes(column));
  const news = changed.map((column) => sql`${sql.identifier(column)} = ${newValue(column)}`);
  const isRow = keyColumns.map((column) => sql`${of("t", column)} = ${of("x", column)}`);
  await tx.prepared(sql`
    update ${table} t set ${sql.join(news)}, revision = nextval('revision')
      from ${x} where ${sql.and(isRow)}`);
}

/**
 * Two workers may write in another order than they have seen. The answer to a write counts as seen later than it was
 * (`writtenAt`), which is no date to show.
 */
function newValue(column: string): SQL {
  if (column !== "changed_at") return of("x", column);
  // `least` skips a null, which says that nothing became another.
  return sql`greatest(t.changed_at, case when x.changed_at is not null
    then least(x.changed_at, date_trunc('second', clock_timestamp()) + interval '1 second') end)`;
}

function of(alias: "p" | "t" | "x", column: string): SQL {
  return sql.identifier(`${alias}.${column}`);
}
