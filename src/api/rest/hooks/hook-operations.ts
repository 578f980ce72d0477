import { isRead } from "../../../http/reply.ts";
import type { Answer, Call } from "../../call/call.ts";
import type { Operation, ServedOperation } from "../../call/operation.ts";
import { ApiFault, REST_DOCS } from "../../dialect/fault.ts";
import { beginRecord } from "../../record/write-record.ts";
import * as deliveries from "./hook-deliveries.ts";
import { type HookPlace, organizationPlace, repositoryPlace } from "./hook-place.ts";
import * as hooks from "./hooks.ts";

/** Operations below `/repos/{owner}/{repo}/hooks`. These hooks live in this mirror. */
const OF_REPOSITORIES: readonly [Operation["method"], string, hooks.HookOperation, string][] = [
  ["GET", "", hooks.listHooks, "repos/webhooks#list-repository-webhooks"],
  ["POST", "", hooks.createHook, "repos/webhooks#create-a-repository-webhook"],
  ["GET", "/:id", hooks.getHook, "repos/webhooks#get-a-repository-webhook"],
  ["PATCH", "/:id", hooks.changeHook, "repos/webhooks#update-a-repository-webhook"],
  ["DELETE", "/:id", hooks.removeHook, "repos/webhooks#delete-a-repository-webhook"],
  ["GET", "/:id/config", hooks.getConfig, "repos/webhooks#get-a-webhook-configuration-for-a-repository"],
  ["PATCH", "/:id/config", hooks.changeConfig, "repos/webhooks#update-a-webhook-configuration-for-a-repository"],
  ["POST", "/:id/pings", hooks.pingHook, "repos/webhooks#ping-a-repository-webhook"],
  ["POST", "/:id/tests", hooks.testHook, "repos/webhooks#test-the-push-repository-webhook"],
  ["GET", "/:id/deliveries", deliveries.listHookDeliveries, "repos/webhooks#list-deliveries-for-a-repository-webhook"],
  [
    "GET",
    "/:id/deliveries/:delivery",
    deliveries.getHookDelivery,
    "repos/webhooks#get-a-delivery-for-a-repository-webhook",
  ],
  [
    "POST",
    "/:id/deliveries/:delivery/attempts",
    deliveries.resendHookDelivery,
    "repos/webhooks#redeliver-a-delivery-for-a-repository-webhook",
  ],
];

/** The same operations below `/orgs/{org}/hooks`, where there is no test. */
const OF_ORGANIZATIONS = OF_REPOSITORIES.filter(([, path]) => path !== "/:id/tests");

/** The service's page about an organization's hooks, by the page about a repository's. */
function ofOrganization(docs: string): string {
  return docs
    .replace("repos/webhooks", "orgs/webhooks")
    .replace("repository-webhooks", "organization-webhooks")
    .replace("a-repository-webhook", "an-organization-webhook")
    .replace("for-a-repository", "for-an-organization");
}

/** Runs the operation. A change stands in the record of writes, though upstream hears nothing of it. */
async function recorded(call: Call, place: HookPlace, form: string, operation: hooks.HookOperation): Promise<Answer> {
  const { ctx, caller, method, path, requestId } = call;
  if (isRead(method) || caller.kind !== "user") return await operation(call, place);
  const route = form.replace(/:(\w+)/g, (_, name: string) => `{${name === "id" ? "hook_id" : "delivery_id"}}`);
  const repositoryId = place.scope.kind === "repository" ? place.scope.id : null;
  const record = await beginRecord({ ctx, caller, requestId }, { method, route, path, repositoryId });
  try {
    const answer = await operation(call, place);
    record.heard({ status: answer.status, headers: {} });
    return answer;
  } catch (error) {
    if (error instanceof ApiFault) record.heard({ status: error.status, headers: {} });
    throw error;
  } finally {
    await record.end();
  }
}

export const HOOK_OPERATIONS: readonly ServedOperation[] = [
  ...OF_REPOSITORIES.map(([method, path, operation, docs]) => ({
    path: `/hooks${path}`,
    route: {
      ...{ method, docs: `${REST_DOCS}/${docs}`, isFree: false, isOurs: true },
      run: {
        of: "repository",
        takes: "metadata",
        with: async (call) =>
          recorded(call, await repositoryPlace(call), `/repos/{owner}/{repo}/hooks${path}`, operation),
      },
    } satisfies Operation,
  })),
  ...OF_ORGANIZATIONS.map(([method, path, operation, docs]) => ({
    path: `/orgs/:org/hooks${path}`,
    route: {
      ...{ method, docs: `${REST_DOCS}/${ofOrganization(docs)}`, isFree: false, isOurs: true },
      run: {
        of: "service",
        with: async (call) => recorded(call, await organizationPlace(call), `/orgs/{org}/hooks${path}`, operation),
      },
    } satisfies Operation,
  })),
];
