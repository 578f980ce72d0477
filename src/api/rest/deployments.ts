import { type DeploymentFilter, deploymentsAmong, statusesAmong } from "../../mirror/read/deployments.ts";
import { findResource, findResourcePage, findWithListBelow, type ResourcePlace } from "../../mirror/read/resources.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { notFound, unread } from "../dialect/fault.ts";
import { boundedPage, numberedPage, numberParam, pageDb } from "./page.ts";
import { requireHeldList, requireResource } from "./resources.ts";

const FILTERS = ["sha", "ref", "task", "environment"] as const;

export async function listDeployments(call: RepositoryCall): Promise<Answer> {
  const { repository, query } = call;
  await requireHeldList(call, "deployment");
  // GitHub docs: "none" stands for no filter.
  const given = FILTERS.flatMap((name) => {
    const value = query.get(name);
    return value === null || value === "" || value === "none" ? [] : [[name, value] as const];
  });
  const filter: DeploymentFilter = Object.fromEntries(given);
  const isFiltered = given.length > 0;
  const { rows, total } = await findResourcePage(pageDb(call, { isFiltered }), "deployment", repository.id, {
    ...boundedPage(call, isFiltered ? null : "deployments"),
    among: deploymentsAmong(filter),
    order: "newest",
  });
  return await numberedPage(call, rows, total);
}

export async function getDeployment(call: RepositoryCall): Promise<Answer> {
  return ok(await showOne(call, (await requireResource(call, "deployment")).found));
}

export async function listDeploymentStatuses(call: RepositoryCall): Promise<Answer> {
  const place = await requireStatuses(call);
  const { rows, total } = await findResourcePage(pageDb(call), "deployment_status", place.repositoryId, {
    ...boundedPage(call, null),
    among: statusesAmong(place.id),
    order: "lastMade",
  });
  return await numberedPage(call, rows, total);
}

export async function getDeploymentStatus(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const place = await requireStatuses(call);
  const id = numberParam(params.status);
  const status = id !== null && { repositoryId: repository.id, id };
  const found = status && (await findResource(ctx.db, "deployment_status", status, statusesAmong(place.id)));
  if (!found) throw notFound();
  return ok(await showOne(call, found));
}

/** The deployment that the path names, if its statuses are here. @throws UnreadFault, ApiFault 404 */
async function requireStatuses(call: RepositoryCall): Promise<ResourcePlace> {
  const { place } = await requireResource(call, "deployment");
  const [isHeld] = await findWithListBelow(call.ctx.db, "deployment_status", [place]);
  if (!isHeld) throw unread();
  return place;
}
