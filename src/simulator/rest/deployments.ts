import {
  createDeployment,
  createDeploymentStatus,
  type DeploymentInput,
  type DeploymentStatusInput,
  deleteDeployment,
} from "../changes/deployments.ts";
import { deploymentStatusView, deploymentView } from "../views/deployment.ts";
import { isJsonObject } from "../world/json.ts";
import { DEPLOYMENT_STATES, type Deployment } from "../world/records-code.ts";
import { Refusal } from "../world/refusal.ts";
import { flag, oneOf, required, text, textOrNull, texts } from "./body.ts";
import { type Answer, created, NO_CONTENT, needPush, notFound, ok, type RepositoryCall } from "./call.ts";
import { paged } from "./pagination.ts";

/** Newest first: the service does so, and documents no order. */
export function listDeployments(call: RepositoryCall): Answer {
  const { query, repository, world } = call;
  const asked = (["sha", "ref", "task", "environment"] as const).flatMap((name) => {
    const value = query.get(name);
    return value === null ? [] : [{ name, value }];
  });
  const rows = world.lag
    .rows(world.code.of(repository).deployments)
    .filter((row) => asked.every(({ name, value }) => row[name] === value))
    .sort((a, b) => b.id - a.id);
  return paged(call, { rows, size: rows.length }, (row) => deploymentView(call.view, row));
}

function find({ world, repository, params }: RepositoryCall): Deployment {
  const deployment = world.lag.find(world.code.of(repository).deployments, Number(params.id));
  const seen = deployment && world.lag.seen(deployment);
  if (!seen || seen.deleted) throw notFound();
  return seen;
}

function toWrite({ world, repository, params }: RepositoryCall): Deployment {
  const deployment = world.code.of(repository).deployments.get(Number(params.id));
  if (!deployment) throw notFound();
  return deployment;
}

export function getDeployment(call: RepositoryCall): Answer {
  return ok(deploymentView(call.view, find(call)));
}

export function postDeployment(call: RepositoryCall): Answer {
  const by = needPush(call);
  const { repository, world, view } = call;
  return created(deploymentView(view, createDeployment(world, by, { repository, ...inputOf(call) })));
}

function inputOf({ body }: RepositoryCall): Omit<DeploymentInput, "repository"> {
  const ref = required(text(body, "ref"), "ref");
  // Checked, and without effect: see `createDeployment`.
  flag(body, "auto_merge");
  texts(body, "required_contexts");
  const task = text(body, "task");
  const payload = payloadOf(body.payload);
  const environment = text(body, "environment");
  const description = textOrNull(body, "description");
  const transientEnvironment = flag(body, "transient_environment");
  const productionEnvironment = flag(body, "production_environment");
  return {
    ref,
    ...(task === undefined ? {} : { task }),
    ...(payload === undefined ? {} : { payload }),
    ...(environment === undefined ? {} : { environment }),
    ...(description === undefined ? {} : { description }),
    ...(transientEnvironment === undefined ? {} : { transientEnvironment }),
    ...(productionEnvironment === undefined ? {} : { productionEnvironment }),
  };
}

function payloadOf(value: unknown): Deployment["payload"] | undefined {
  if (value === undefined || typeof value === "string" || isJsonObject(value)) return value;
  const why = `For 'properties/payload', ${JSON.stringify(value)} is neither an object nor a string.`;
  throw new Refusal(422, `Invalid request.\n\nNo subschema in "oneOf" matched.\n${why}`);
}

export function removeDeployment(call: RepositoryCall): Answer {
  needPush(call);
  deleteDeployment(call.world, toWrite(call));
  return NO_CONTENT;
}

/** Newest first, as the deployments. */
export function listStatuses(call: RepositoryCall): Answer {
  const rows = find(call).statuses.toReversed();
  return paged(call, { rows, size: rows.length }, (row) => deploymentStatusView(call.view, row));
}

export function getStatus(call: RepositoryCall): Answer {
  const status = find(call).statuses.find(({ id }) => id === Number(call.params.status));
  if (!status) throw notFound();
  return ok(deploymentStatusView(call.view, status));
}

export function postStatus(call: RepositoryCall): Answer {
  const by = needPush(call);
  const status = createDeploymentStatus(call.world, by, toWrite(call), statusOf(call));
  return created(deploymentStatusView(call.view, status));
}

function statusOf({ body }: RepositoryCall): DeploymentStatusInput {
  const state = required(oneOf(body, "state", DEPLOYMENT_STATES), "state");
  const description = text(body, "description");
  const environment = text(body, "environment");
  const targetUrl = text(body, "target_url");
  const logUrl = text(body, "log_url") ?? targetUrl;
  const environmentUrl = text(body, "environment_url");
  const autoInactive = flag(body, "auto_inactive");
  return {
    state,
    ...(description === undefined ? {} : { description }),
    ...(environment === undefined ? {} : { environment }),
    ...(logUrl === undefined ? {} : { logUrl }),
    ...(environmentUrl === undefined ? {} : { environmentUrl }),
    ...(autoInactive === undefined ? {} : { autoInactive }),
  };
}
