import type { Database, Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Kind, ListBelow, Resource } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { findDocuments, findWhether } from "./each.ts";
import { type CountedBounds, findNumberedPage } from "./numbered-pages.ts";
import type { PageSource, SortKey } from "./pages.ts";

/** Where a resource is that is known by an id. */
export interface ResourcePlace {
  repositoryId: number;
  id: number;
}

/** Of these repositories, those whose list of the kind is here. */
export async function findWithList(db: Queries, kind: Kind, repositoryIds: readonly number[]): Promise<boolean[]> {
  const { list } = resourceOf(kind);
  if (!list) throw new Error(`The mirror holds no list of ${kind}`);
  const repositories = repositoryIds.map((repositoryId) => ({ repositoryId }));
  return await findWhether(
    db,
    repositories,
    ["repositoryId"],
    (x) => sql`
    select x.at from ${x} join ${list.table} l on l.repository_id = x.repository_id and l.read_at is not null`,
  );
}

/** Of these resources, those whose list of resources of the kind below them is here. */
export async function findWithListBelow(
  db: Queries,
  kind: Kind,
  parents: readonly ResourcePlace[],
): Promise<boolean[]> {
  const { list, above } = belowOf(resourceOf(kind));
  return await findWhether(
    db,
    parents,
    ["repositoryId", "id"],
    (x) => sql`
    select x.at from ${x} join ${above.table} p on p.repository_id = x.repository_id and p.id = x.id
      join ${list.table} l on l.repository_id = p.repository_id and l.parent_id = p.id
      where l.read_at is not null and ${list.isCurrent}`,
  );
}

function belowOf({ kind, listBelow: list, parent }: Resource): { list: ListBelow; above: Resource } {
  if (!list || !parent) throw new Error(`The mirror holds no lists of ${kind} below others`);
  return { list, above: resourceOf(parent.kind) };
}

/** These resources. Null: there is no such one. @param among only rows `t` that fulfil these conditions */
export async function findResources(
  db: Queries,
  kind: Kind,
  places: readonly ResourcePlace[],
  among: readonly SQL[] = [],
): Promise<(StoredDocument | null)[]> {
  return await findDocuments(
    db,
    places,
    ["repositoryId", "id"],
    (x) => sql`
    select x.at, t.document::text as document from ${x} join ${resourceOf(kind).table} t
      on t.repository_id = x.repository_id and t.id = x.id and t.deleted_at is null and ${sql.and(among)}`,
  );
}

export async function findResource(
  db: Queries,
  kind: Kind,
  place: ResourcePlace,
  among?: readonly SQL[],
): Promise<StoredDocument | null> {
  const [found = null] = await findResources(db, kind, [place], among);
  return found;
}

/** The newest resource of the kind below each of these. Ids grow with creation. */
export async function findNewestBelow(
  db: Queries,
  kind: Kind,
  parents: readonly ResourcePlace[],
): Promise<(StoredDocument | null)[]> {
  const { table, parent } = resourceOf(kind);
  if (!parent) throw new Error(`Nothing is above ${kind}`);
  return await findDocuments(
    db,
    parents,
    ["repositoryId", "id"],
    (x) => sql`
    select distinct on (x.at) x.at, t.document::text as document from ${x} join ${table} t
      on t.repository_id = x.repository_id and ${sql.identifier(`t.${parent.column}`)} = x.id and t.deleted_at is null
      order by x.at, t.id desc`,
  );
}

const ORDERS = {
  newest: sql`t.created_at desc, t.id desc`,
  /** Ids grow with creation. */
  lastMade: sql`t.id desc`,
  firstMade: sql`t.id`,
};

/** A page of a repository's resources, and how many there are. @param page.among as in `findResources` */
export async function findResourcePage(
  db: Database,
  kind: Kind,
  repositoryId: number,
  { among = [], order, ...page }: CountedBounds & { among?: readonly SQL[]; order: keyof typeof ORDERS },
): Promise<{ rows: StoredDocument[]; total: number }> {
  const isOne = sql.and([sql`t.repository_id = ${repositoryId} and t.deleted_at is null`, ...among]);
  const matching = sql`from ${resourceOf(kind).table} t where ${isOne}`;
  return await findNumberedPage(db, repositoryId, { matching, order: ORDERS[order], ...page });
}

/** Resources for GraphQL's lists. @param order.among as in `findResources` */
export function resourceSource(
  kind: Kind,
  { among = [], ...order }: SortKey & Pick<PageSource, "direction"> & { among?: readonly SQL[] },
): PageSource {
  return {
    from: sql`${resourceOf(kind).table} t`,
    repositoryId: sql`t.repository_id`,
    document: sql`t.document`,
    conditions: [sql`t.repository_id = x.r and t.deleted_at is null`, ...among],
    rowId: sql`t.id`,
    ...order,
  };
}

export const BY_ID: SortKey = { key: sql`t.id`, keyType: sql`bigint` };
export const BY_CREATION: SortKey = { key: sql`t.created_at`, keyType: sql`timestamptz` };
