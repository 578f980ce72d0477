import type { Database, Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { deploymentStatus } from "../../kinds/deployment-status/kind.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { type CountedBounds, findNumberedPage, type PageBounds } from "./numbered-pages.ts";
import type { PageSource } from "./pages.ts";

/** Of these repositories, those whose list of deployments is here. */
export async function findWithDeployments(db: Queries, repositoryIds: readonly number[]): Promise<boolean[]> {
  const rows = await db.prepared<{ id: number }>(sql`
    select l.repository_id as id from deployment_lists l
      where l.repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[]) and l.read_at is not null`);
  const held = new Set(rows.map(({ id }) => id));
  return repositoryIds.map((id) => held.has(id));
}

/** The values that a list's rows must have, by their columns. */
export type DeploymentFilter = Partial<Record<"sha" | "ref" | "task" | "environment", string>>;

/** A page of deployments, the newest first, and how many there are. */
export async function findDeployments(
  db: Database,
  repositoryId: number,
  { filter, ...page }: CountedBounds & { filter: DeploymentFilter },
): Promise<{ rows: StoredDocument[]; total: number }> {
  const wanted = Object.entries(filter).map(([column, value]) => sql`${sql.identifier(`t.${column}`)} = ${value}`);
  const matching = sql`from deployments t where ${sql.and([
    sql`t.repository_id = ${repositoryId} and t.deleted_at is null`,
    ...wanted,
  ])}`;
  return await findNumberedPage(db, repositoryId, { matching, order: sql`t.created_at desc, t.id desc`, ...page });
}

/** These deployments. Null: there is no such one. */
export async function findDeploymentsById(
  db: Queries,
  deployments: readonly { repositoryId: number; id: number }[],
): Promise<(StoredDocument | null)[]> {
  const repositoryIds = deployments.map(({ repositoryId }) => repositoryId);
  const ids = deployments.map(({ id }) => id);
  const rows = await db.prepared<{ at: number; document: string }>(sql`
    select x.at, t.document::text as document
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(ids, "bigint")}) with ordinality as x(r, i, at)
      join deployments t on t.repository_id = x.r and t.id = x.i and t.deleted_at is null`);
  return documentsAt(deployments, rows);
}

export async function findDeployment(db: Queries, repositoryId: number, id: number): Promise<StoredDocument | null> {
  const [found = null] = await findDeploymentsById(db, [{ repositoryId, id }]);
  return found;
}

/** The documents of rows that were asked for by place. */
function documentsAt(
  asked: readonly { repositoryId: number }[],
  rows: readonly { at: number; document: string }[],
): (StoredDocument | null)[] {
  const found = new Map(rows.map(({ at, document }) => [at - 1, document]));
  return asked.map(({ repositoryId }, at) => {
    const document = found.get(at);
    return document === undefined ? null : { repositoryId, document };
  });
}

/** Of these deployments, those whose list of statuses is here. */
export async function findWithStatuses(
  db: Queries,
  deployments: readonly { repositoryId: number; id: number }[],
): Promise<boolean[]> {
  const repositoryIds = deployments.map(({ repositoryId }) => repositoryId);
  const ids = deployments.map(({ id }) => id);
  const isCurrent = deploymentStatus.listBelow?.isCurrent ?? sql`false`;
  const rows = await db.prepared<{ name: string }>(sql`
    select p.repository_id || '/' || p.id as name
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(ids, "bigint")}) as x(r, i)
      join deployments p on p.repository_id = x.r and p.id = x.i
      join deployment_status_lists l on l.repository_id = p.repository_id and l.parent_id = p.id
      where l.read_at is not null and ${isCurrent}`);
  const held = new Set(rows.map(({ name }) => name));
  return deployments.map(({ repositoryId, id }) => held.has(`${repositoryId}/${id}`));
}

/** A page of a deployment's statuses, the newest first, and how many there are. */
export async function findDeploymentStatuses(
  db: Database,
  { repositoryId, deploymentId }: { repositoryId: number; deploymentId: number },
  page: PageBounds,
): Promise<{ rows: StoredDocument[]; total: number }> {
  const matching = sql`from deployment_statuses t where t.repository_id = ${repositoryId}
    and t.deployment_id = ${deploymentId} and t.deleted_at is null`;
  return await findNumberedPage(db, repositoryId, { matching, order: sql`t.id desc`, ...page });
}

export async function findDeploymentStatus(
  db: Database,
  { repositoryId, deploymentId }: { repositoryId: number; deploymentId: number },
  id: number,
): Promise<StoredDocument | null> {
  const [row] = await db.prepared<{ document: string }>(sql`
    select t.document::text as document from deployment_statuses t where t.repository_id = ${repositoryId}
      and t.deployment_id = ${deploymentId} and t.id = ${id} and t.deleted_at is null`);
  return row ? { repositoryId, ...row } : null;
}

/** The newest status of each of these deployments. */
export async function findLatestStatuses(
  db: Database,
  deployments: readonly { repositoryId: number; id: number }[],
): Promise<(StoredDocument | null)[]> {
  const repositoryIds = deployments.map(({ repositoryId }) => repositoryId);
  const ids = deployments.map(({ id }) => id);
  const rows = await db.prepared<{ at: number; document: string }>(sql`
    select distinct on (x.at) x.at, t.document::text as document
      from unnest(${sql.array(repositoryIds, "bigint")}, ${sql.array(ids, "bigint")}) with ordinality as x(r, i, at)
      join deployment_statuses t on t.repository_id = x.r and t.deployment_id = x.i and t.deleted_at is null
      order by x.at, t.id desc`);
  return documentsAt(deployments, rows);
}

/** Deployments for GraphQL's lists. @param environments null: all */
export function deploymentSource(environments: readonly string[] | null, direction: "asc" | "desc"): PageSource {
  return {
    from: sql`deployments t`,
    repositoryId: sql`t.repository_id`,
    document: sql`t.document`,
    conditions: [
      sql`t.repository_id = x.r and t.deleted_at is null`,
      ...(environments === null ? [] : [sql`t.environment = any(${[...environments]}::text[])`]),
    ],
    key: sql`t.created_at`,
    keyType: sql`timestamptz`,
    rowId: sql`t.id`,
    direction,
  };
}

/** The statuses of a deployment for GraphQL's lists, the newest first. */
export const statusSource: PageSource = {
  from: sql`deployment_statuses t`,
  repositoryId: sql`t.repository_id`,
  document: sql`t.document`,
  conditions: [sql`t.repository_id = x.r and t.deployment_id = x.n and t.deleted_at is null`],
  key: sql`t.id`,
  keyType: sql`bigint`,
  rowId: sql`t.id`,
  direction: "desc",
};
