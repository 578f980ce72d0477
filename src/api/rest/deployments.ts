import {
  type DeploymentFilter,
  findDeployment,
  findDeploymentStatus,
  findDeploymentStatuses,
  findDeployments,
  findWithDeployments,
  findWithStatuses,
} from "../../mirror/read/deployments.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { notFound, unread } from "../dialect/fault.ts";
import { boundedPage, numberedPage, numberParam, pageDb } from "./page.ts";

const FILTERS = ["sha", "ref", "task", "environment"] as const;

export async function listDeployments(call: RepositoryCall): Promise<Answer> {
  const { repository, query } = call;
  await requireList(call);
  // GitHub docs: "none" stands for no filter.
  const given = FILTERS.flatMap((name) => {
    const value = query.get(name);
    return value === null || value === "" || value === "none" ? [] : [[name, value] as const];
  });
  const filter: DeploymentFilter = Object.fromEntries(given);
  const isFiltered = given.length > 0;
  const page = boundedPage(call, isFiltered ? null : "deployments");
  const { rows, total } = await findDeployments(pageDb(call, { isFiltered }), repository.id, { filter, ...page });
  return await numberedPage(call, rows, total);
}

export async function getDeployment(call: RepositoryCall): Promise<Answer> {
  await requireList(call);
  return ok(await showOne(call, (await requireDeployment(call)).found));
}

export async function listDeploymentStatuses(call: RepositoryCall): Promise<Answer> {
  const { place } = await requireStatuses(call);
  const { rows, total } = await findDeploymentStatuses(pageDb(call), place, boundedPage(call, null));
  return await numberedPage(call, rows, total);
}

export async function getDeploymentStatus(call: RepositoryCall): Promise<Answer> {
  const { ctx, params } = call;
  const { place } = await requireStatuses(call);
  const id = numberParam(params.status);
  const found = id === null ? null : await findDeploymentStatus(ctx.db, place, id);
  if (!found) throw notFound();
  return ok(await showOne(call, found));
}

/** @throws UnreadFault if the mirror does not hold the list of deployments */
async function requireList({ ctx, repository }: RepositoryCall): Promise<void> {
  const [isHeld] = await findWithDeployments(ctx.db, [repository.id]);
  if (!isHeld) throw unread();
}

/** The deployment that the path names. @throws ApiFault 404 */
async function requireDeployment({ ctx, repository, params }: RepositoryCall): Promise<{
  found: StoredDocument;
  place: { repositoryId: number; deploymentId: number };
}> {
  const id = numberParam(params.id);
  const found = id === null ? null : await findDeployment(ctx.db, repository.id, id);
  if (id === null || !found) throw notFound();
  return { found, place: { repositoryId: repository.id, deploymentId: id } };
}

/** The same, if its statuses are here. @throws UnreadFault, ApiFault 404 */
async function requireStatuses(call: RepositoryCall): ReturnType<typeof requireDeployment> {
  await requireList(call);
  const required = await requireDeployment(call);
  const { repositoryId, deploymentId } = required.place;
  const [isHeld] = await findWithStatuses(call.ctx.db, [{ repositoryId, id: deploymentId }]);
  if (!isHeld) throw unread();
  return required;
}
