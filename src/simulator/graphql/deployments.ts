/** Deployments and their statuses. */
import { latestStatus } from "../changes/deployments.ts";
import { time } from "../views/view.ts";
import { commitOf } from "../world/commits.ts";
import type { Repository } from "../world/records.ts";
import type { Deployment, DeploymentStatus } from "../world/records-code.ts";
import { type Call, requireRead } from "./call.ts";
import { commit } from "./commits.ts";
import { arraySource, connection } from "./connection.ts";
import { refNamed } from "./refs.ts";
import type { Fields } from "./resolvers.ts";

// The schema says of ABANDONED: "The pending deployment was not updated after 30 minutes."
const ABANDONED_AFTER_S = 1_800;

/**
 * The schema says of ACTIVE "currently active", and REST's docs that a transient one, made inactive, is shown as
 * destroyed; github/branch-deploy shows ACTIVE and INACTIVE. Unconfirmed: that all else is the last status's own state.
 * SUCCESS and WAITING do not occur here.
 */
function stateOf(call: Call, row: Deployment): string {
  const state = latestStatus(row)?.state ?? "pending";
  switch (state) {
    case "success":
      return "ACTIVE";
    case "inactive":
      return row.transientEnvironment ? "DESTROYED" : "INACTIVE";
    case "pending":
      return call.world.now() - row.updatedAt > ABANDONED_AFTER_S ? "ABANDONED" : "PENDING";
    default:
      return state.toUpperCase();
  }
}

/** Recorded as null where REST shows `{}`: github/branch-deploy#303. Unconfirmed: that all else is JSON. */
function payloadText({ payload }: Deployment): string | null {
  const isEmpty = typeof payload === "object" && Object.keys(payload).length === 0;
  return isEmpty ? null : JSON.stringify(payload);
}

export const deploymentFields: Fields<Deployment> = {
  id: (row, _, call) => call.world.nodeId("Deployment", row, row.repository.id, call.view.nextIds),
  databaseId: (row) => row.id,
  commit: (row, _, call) => {
    requireRead(call, row.repository, "contents");
    return commit(commitOf(call.world, row.repository, row.sha)?.sha ?? null, row.repository);
  },
  commitOid: (row) => row.sha,
  // The schema does not let it be null, so an account that is gone is the ghost.
  creator: (row, _, call) => call.world.user(row.creatorId),
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  latestEnvironment: (row) => row.environment,
  latestStatus: (row) => latestStatus(row) ?? null,
  payload: payloadText,
  ref: (row, _, call) => refNamed(call, row.repository, row.ref),
  state: (row, _, call) => stateOf(call, row),
  // Unconfirmed: newest first, as REST has them.
  statuses: (row, args, call, info) =>
    connection(call, info, args, arraySource(row.statuses, { keyOf: () => null, descending: true })),
};

export const deploymentStatusFields: Fields<DeploymentStatus> = {
  id: (row, _, call) => call.world.nodeId("DeploymentStatus", row, row.deployment.repository.id, call.view.nextIds),
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  creator: (row, _, call) => call.world.user(row.creatorId),
  deployment: (row, _, call) => call.world.lag.seen(row.deployment),
  environmentUrl: (row) => row.environmentUrl || null,
  logUrl: (row) => row.logUrl || null,
  state: (row) => row.state.toUpperCase(),
};

export const repositoryDeploymentFields: Fields<Repository> = {
  deployments: (row, args, call, info) => {
    requireRead(call, row, "deployments");
    const environments: readonly string[] | null | undefined = args.environments;
    const rows = call.world.lag
      .rows(call.world.code.of(row).deployments)
      .filter(({ environment }) => environments == null || environments.includes(environment));
    const descending = args.orderBy?.direction === "DESC";
    return connection(call, info, args, arraySource(rows, { keyOf: (one) => one.createdAt, descending, timed: true }));
  },
};
