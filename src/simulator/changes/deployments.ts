/** Deployments: asked for, told how they go, and deleted. */
import { shaNamed } from "../world/commits.ts";
import type { Repository, Seconds } from "../world/records.ts";
import type { Deployment, DeploymentStatus, DeploymentStatusState } from "../world/records-code.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";

export interface DeploymentInput {
  readonly repository: Repository;
  /** A branch, a tag or a sha. */
  readonly ref: string;
  /** Default `deploy`. */
  readonly task?: string;
  /** Default `{}`, as webhooks show one that was made without. A string stays a string: google/go-github#1116. */
  readonly payload?: Deployment["payload"];
  /** Default `production`. */
  readonly environment?: string;
  readonly description?: string | null;
  /** Default false. */
  readonly transientEnvironment?: boolean;
  /** Default: whether the environment is `production`. */
  readonly productionEnvironment?: boolean;
  /** When it was made. Default: now. */
  readonly at?: Seconds;
}

/** Tells `created`. Nothing of this world holds a deployment back: no context is required, and nothing is merged. */
export function createDeployment(world: World, by: number, input: DeploymentInput): Deployment {
  const deployment = addDeployment(world, by, input);
  const { repository } = input;
  world.emit({ event: "deployment", action: "created", repository, senderId: by, deployment });
  return deployment;
}

/** Puts a deployment in its place and tells nobody: for worlds that are generated. */
export function addDeployment(world: World, by: number, input: DeploymentInput): Deployment {
  const { repository, ref, environment = "production", at = world.now() } = input;
  const sha = shaNamed(world, repository, ref);
  // In the words that clients have recorded, as all refusals here.
  if (sha === undefined) throw new Refusal(422, `No ref found for: ${ref}`);
  const deployment: Deployment = {
    id: world.nextId("deployment"),
    repository,
    creatorId: by,
    sha,
    ref,
    task: input.task ?? "deploy",
    payload: input.payload ?? {},
    originalEnvironment: environment,
    environment,
    description: input.description ?? null,
    transientEnvironment: input.transientEnvironment ?? false,
    productionEnvironment: input.productionEnvironment ?? environment === "production",
    createdAt: at,
    updatedAt: at,
    statuses: [],
    deleted: false,
  };
  world.code.of(repository).deployments.set(deployment.id, deployment);
  world.code.deployments.set(deployment.id, deployment);
  world.lag.created(deployment);
  return deployment;
}

export interface DeploymentStatusInput {
  readonly state: DeploymentStatusState;
  readonly description?: string;
  /** Default: the deployment's present one. */
  readonly environment?: string;
  readonly logUrl?: string;
  readonly environmentUrl?: string;
  /** Whether a success takes the place of earlier ones. Default true. */
  readonly autoInactive?: boolean;
  /** When it was said. Default: now. */
  readonly at?: Seconds;
}

/**
 * Tells `created`. GitHub docs: "A webhook event is not fired for deployment statuses with an `inactive` state."
 */
export function createDeploymentStatus(
  world: World,
  by: number,
  deployment: Deployment,
  input: DeploymentStatusInput,
): DeploymentStatus {
  const deploymentStatus = addDeploymentStatus(world, by, deployment, input);
  if (deploymentStatus.state !== "inactive") {
    const { repository } = deployment;
    const about = { deployment, deploymentStatus };
    world.emit({ event: "deployment_status", action: "created", repository, senderId: by, ...about });
  }
  return deploymentStatus;
}

/** Puts a status in its place, with what follows from it, and tells nobody: for worlds that are generated. */
export function addDeploymentStatus(
  world: World,
  by: number,
  deployment: Deployment,
  input: DeploymentStatusInput,
): DeploymentStatus {
  const { state, description = "", environmentUrl = "", logUrl = "", at = world.now() } = input;
  checkStatus(description, environmentUrl);
  const status: DeploymentStatus = {
    id: world.nextId("deploymentStatus"),
    deployment,
    creatorId: by,
    state,
    description,
    environment: input.environment ?? deployment.environment,
    logUrl,
    environmentUrl,
    createdAt: at,
    updatedAt: at,
    deleted: false,
  };
  // The webhooks-examples show that the deployment's `updated_at` is then its status's `created_at`.
  world.changing(deployment);
  deployment.statuses = [...deployment.statuses, status];
  deployment.environment = status.environment;
  deployment.updatedAt = at;
  world.code.deploymentStatuses.set(status.id, status);
  world.lag.created(status);
  if (state === "success" && input.autoInactive !== false) {
    // Unconfirmed: that all is blank in such a status, and who is its creator.
    for (const one of replacedBy(world, deployment)) addDeploymentStatus(world, by, one, { state: "inactive", at });
  }
  return status;
}

/**
 * GitHub docs, `auto_inactive`: all prior non-transient, non-production deployments to the same environment that had a
 * success. Unconfirmed: that prior ones are those that were made before, and that the success must be their last
 * status.
 */
function replacedBy(world: World, { id, repository, environment }: Deployment): readonly Deployment[] {
  return [...world.code.of(repository).deployments.values()].filter(
    (one) =>
      one.id < id &&
      one.environment === environment &&
      !one.transientEnvironment &&
      !one.productionEnvironment &&
      isActive(one),
  );
}

// GitHub docs: "The maximum description length is 140 characters."
const MAX_DESCRIPTION = 140;

function checkStatus(description: string, environmentUrl: string): void {
  const refused = { resource: "DeploymentStatus", code: "custom" } as const;
  if ([...description].length > MAX_DESCRIPTION) {
    const message = `description is too long (maximum is ${MAX_DESCRIPTION} characters)`;
    throw invalid({ ...refused, field: "description", message });
  }
  if (environmentUrl !== "" && !/^https?:/.test(environmentUrl))
    throw invalid({ ...refused, field: "environment_url", message: "environment_url must use http(s) scheme" });
}

/**
 * Its statuses go with it, and nobody is told. GitHub docs refuse an active one "if the repository has more than one
 * deployment"; the service's own words speak of the environment, and these are taken.
 */
export function deleteDeployment(world: World, deployment: Deployment): void {
  const { deployments } = world.code.of(deployment.repository);
  const others = [...deployments.values()].some(
    (one) => one !== deployment && one.environment === deployment.environment,
  );
  if (isActive(deployment) && others) {
    const why = "We cannot delete an active deployment unless it is the only deployment in a given environment.";
    throw new Refusal(422, "Validation Failed", [why]);
  }
  world.changing(deployment);
  deployment.deleted = true;
  world.lag.delete(deployments, deployment);
  world.lag.delete(world.code.deployments, deployment);
  for (const status of deployment.statuses) {
    world.changing(status);
    status.deleted = true;
    world.lag.delete(world.code.deploymentStatuses, status);
  }
}

export function latestStatus({ statuses }: Deployment): DeploymentStatus | undefined {
  return statuses.at(-1);
}

/**
 * GitHub docs: "any non-successful deployment status" makes it inactive. Unconfirmed: that a deployment without a
 * status is not active.
 */
function isActive(deployment: Deployment): boolean {
  return latestStatus(deployment)?.state === "success";
}
