import { type SQL, sql } from "../../../db/sql.ts";
import type { PageSource } from "./pages.ts";
import { BY_CREATION, BY_ID, resourceSource } from "./resources.ts";

/** The values that a list's rows must have, by their columns. */
export type DeploymentFilter = Partial<Record<"sha" | "ref" | "task" | "environment", string>>;

/** Of the rows `t` of deployments: those that pass the filter. */
export function deploymentsAmong(filter: DeploymentFilter): SQL[] {
  return Object.entries(filter).map(([column, value]) => sql`${sql.identifier(`t.${column}`)} = ${value}`);
}

/** Of the rows `t` of statuses: those of the deployment. */
export function statusesAmong(deploymentId: number): SQL[] {
  return [sql`t.deployment_id = ${deploymentId}`];
}

/** Deployments for GraphQL's lists. @param environments null: all */
export function deploymentSource(environments: readonly string[] | null, direction: "asc" | "desc"): PageSource {
  const among = environments === null ? [] : [sql`t.environment = any(${[...environments]}::text[])`];
  return resourceSource("deployment", { among, ...BY_CREATION, direction });
}

/** The statuses of a deployment for GraphQL's lists, the newest first. */
export const statusSource = resourceSource("deployment_status", {
  ...{ among: [sql`t.deployment_id = x.n`], ...BY_ID, direction: "desc" },
});
