import type { Deployment, DeploymentStatus } from "../world/records-code.ts";
import { simpleUser } from "./user.ts";
import { type Json, repositoryUrl, time, type View } from "./view.ts";

/** deployment. */
export function deploymentView(view: View, deployment: Deployment): Json {
  const { repository } = deployment;
  const repository_url = repositoryUrl(view, repository);
  const url = `${repository_url}/deployments/${deployment.id}`;
  return {
    url,
    id: deployment.id,
    node_id: view.world.nodeId("Deployment", deployment, repository.id, view.nextIds),
    task: deployment.task,
    original_environment: deployment.originalEnvironment,
    environment: deployment.environment,
    description: deployment.description,
    created_at: time(deployment.createdAt),
    updated_at: time(deployment.updatedAt),
    statuses_url: `${url}/statuses`,
    repository_url,
    creator: simpleUser(view, deployment.creatorId),
    sha: deployment.sha,
    ref: deployment.ref,
    payload: deployment.payload,
    transient_environment: deployment.transientEnvironment,
    production_environment: deployment.productionEnvironment,
    performed_via_github_app: null,
  };
}

/** deployment-status. GitHub docs: `log_url` sets `target_url` to the same value. */
export function deploymentStatusView(view: View, status: DeploymentStatus): Json {
  const { repository, id } = status.deployment;
  const repository_url = repositoryUrl(view, repository);
  const deployment_url = `${repository_url}/deployments/${id}`;
  return {
    url: `${deployment_url}/statuses/${status.id}`,
    id: status.id,
    node_id: view.world.nodeId("DeploymentStatus", status, repository.id, view.nextIds),
    state: status.state,
    creator: simpleUser(view, status.creatorId),
    description: status.description,
    environment: status.environment,
    target_url: status.logUrl,
    created_at: time(status.createdAt),
    updated_at: time(status.updatedAt),
    deployment_url,
    repository_url,
    environment_url: status.environmentUrl,
    log_url: status.logUrl,
    performed_via_github_app: null,
  };
}
