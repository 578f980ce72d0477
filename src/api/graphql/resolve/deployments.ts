/** The field of repositories that shows deployments, and the fields of these and of their statuses. */
import { type Fields, isObject, type Json, numberOf } from "../../../json.ts";
import { deploymentSource, statusSource } from "../../../mirror/read/deployments.ts";
import { direction, type Order } from "../../../mirror/read/pages.ts";
import {
  findNewestBelow,
  findResources,
  findWithList,
  findWithListBelow,
  type ResourcePlace,
} from "../../../mirror/read/resources.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { type PageArguments, storedConnection } from "./connection.ts";
import {
  commitNode,
  databaseId,
  enumValue,
  lacking,
  nodeId,
  ofRepository,
  type Resolver,
  readsCodeOf,
  rest,
  type TypeResolvers,
} from "./fields.ts";
import { refNamed } from "./refs.ts";

/** @throws GraphQLError as `lacking`, if the mirror does not hold the list of deployments */
async function requireList(call: GraphqlCall, repositoryId: number): Promise<void> {
  const isHeld =
    (await readsCodeOf(call, repositoryId, "deployments")) &&
    (await call
      .loader<number, boolean>("with deployments", (ids, db) => findWithList(db, "deployment", ids))
      .load(repositoryId));
  if (!isHeld) lacking(call, "deployments");
}

type DeploymentArguments = PageArguments & { environments?: readonly string[] | null; orderBy?: Order | null };

export const repositoryDeployments: TypeResolvers = {
  deployments: async ({ repositoryId }, args: DeploymentArguments, call, info) => {
    await requireList(call, repositoryId);
    const source = deploymentSource(args.environments ?? null, direction(args.orderBy));
    return storedConnection(call, info, args, { kind: "Deployment", source, parent: { r: repositoryId, n: 0 } });
  },
};

const placeOf = ({ repositoryId, rest: { id } }: Node): ResourcePlace => ({ repositoryId, id: numberOf(id) ?? 0 });

/** @throws GraphQLError as `lacking`, if the mirror does not hold the statuses of this deployment */
async function requireStatuses(call: GraphqlCall, deployment: Node): Promise<void> {
  const loader = call.loader<ResourcePlace, boolean>("with statuses", (places, db) =>
    findWithListBelow(db, "deployment_status", places),
  );
  if (!(await loader.load(placeOf(deployment)))) lacking(call, "deployments");
}

async function latestOf(call: GraphqlCall, deployment: Node): Promise<Node | null> {
  await requireStatuses(call, deployment);
  const loader = call.loader<ResourcePlace, Node | null>("latest statuses", async (places, db) =>
    call.unfoldEach("DeploymentStatus", await findNewestBelow(db, "deployment_status", places)),
  );
  return await loader.load(placeOf(deployment));
}

/** How long a pending deployment is not called abandoned (GitHub's GraphQL schema, `DeploymentState`). */
const ABANDONED_AFTER_MS = 30 * 60_000;

/**
 * GitHub's GraphQL schema, `DeploymentState`: what each stands for. A deployment without a status is pending.
 * Unconfirmed: that all others are called as their last status.
 */
async function stateOf(call: GraphqlCall, deployment: Node): Promise<string | null> {
  const latest = await latestOf(call, deployment);
  const state = latest?.rest.state ?? "pending";
  if (state === "success") return "ACTIVE";
  if (state === "inactive") return deployment.rest.transient_environment === true ? "DESTROYED" : "INACTIVE";
  if (state !== "pending") return enumValue(state);
  call.dependsOnTime();
  const age = call.ctx.clock.now().getTime() - Date.parse(String(deployment.rest.updated_at));
  return age > ABANDONED_AFTER_MS ? "ABANDONED" : "PENDING";
}

/** Upstream was recorded to show null for `{}`. Unconfirmed: that all else is JSON. */
function payloadText(payload: Json | undefined): string | null {
  if (payload == null || (isObject(payload) && Object.keys(payload).length === 0)) return null;
  return JSON.stringify(payload);
}

const creator: Resolver = ({ rest: { creator: account } }, _args, call) =>
  actorOf(account) ?? lacking(call, "deployments");
const orNull =
  (key: string): Resolver =>
  ({ rest: { [key]: value } }: { rest: Fields }) =>
    value || null;

export const deploymentResolvers: Readonly<Record<string, TypeResolvers>> = {
  Deployment: {
    ...ofRepository,
    id: nodeId,
    databaseId,
    commitOid: rest("sha"),
    commit: ({ repositoryId, rest: { sha } }) => commitNode(repositoryId, sha),
    ref: ({ repositoryId, rest: { ref } }, _args, call) => refNamed(call, repositoryId, String(ref)),
    createdAt: rest("created_at"),
    creator,
    description: rest("description"),
    environment: rest("environment"),
    latestEnvironment: rest("environment"),
    latestStatus: (node, _args, call) => latestOf(call, node),
    originalEnvironment: rest("original_environment"),
    payload: ({ rest: { payload } }) => payloadText(payload),
    state: (node, _args, call) => stateOf(call, node),
    statuses: async (node, args: PageArguments, call, info) => {
      await requireStatuses(call, node);
      const { repositoryId, id } = placeOf(node);
      return storedConnection(call, info, args, {
        kind: "DeploymentStatus",
        source: statusSource,
        parent: { r: repositoryId, n: id },
      });
    },
    task: rest("task"),
    updatedAt: rest("updated_at"),
  },
  DeploymentStatus: {
    id: nodeId,
    createdAt: rest("created_at"),
    creator,
    deployment: async ({ repositoryId, rest: { deployment_url } }, _args, call) => {
      const id = Number(String(deployment_url).split("/").at(-1));
      const loader = call.loader<ResourcePlace, Node | null>("deployments by id", async (places, db) =>
        call.unfoldEach("Deployment", await findResources(db, "deployment", places)),
      );
      return (await loader.load({ repositoryId, id })) ?? lacking(call, "deployments");
    },
    description: rest("description"),
    environment: rest("environment"),
    environmentUrl: orNull("environment_url"),
    logUrl: orNull("log_url"),
    state: ({ rest: { state } }) => enumValue(state),
    updatedAt: rest("updated_at"),
  },
};
