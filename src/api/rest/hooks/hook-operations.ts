import { isRead } from "../../../http/reply.ts";
import type { Answer, Call } from "../../call/call.ts";
import type { Operation, ServedOperation } from "../../call/operation.ts";
import { ApiFault } from "../../dialect/fault.ts";
import { beginRecord } from "../../record/write-record.ts";
import * as deliveries from "./hook-deliveries.ts";
import { type HookPlace, organizationPlace, repositoryPlace } from "./hook-place.ts";
import * as hooks from "./hooks.ts";

/** Operations below `/repos/{owner}/{repo}/hooks`. These hooks live in this mirror. */
const OF_REPOSITORIES: readonly [Operation["method"], string, hooks.HookOperation][] = [
  ["GET", "", hooks.listHooks],
  ["POST", "", hooks.createHook],
  ["GET", "/:id", hooks.getHook],
  ["PATCH", "/:id", hooks.changeHook],
  ["DELETE", "/:id", hooks.removeHook],
  ["GET", "/:id/config", hooks.getConfig],
  ["PATCH", "/:id/config", hooks.changeConfig],
  ["POST", "/:id/pings", hooks.pingHook],
  ["POST", "/:id/tests", hooks.testHook],
  ["GET", "/:id/deliveries", deliveries.listHookDeliveries],
  ["GET", "/:id/deliveries/:delivery", deliveries.getHookDelivery],
  ["POST", "/:id/deliveries/:delivery/attempts", deliveries.resendHookDelivery],
];

/** The same operations below `/orgs/{org}/hooks`, where there is no test. */
const OF_ORGANIZATIONS = OF_REPOSITORIES.filter(([, path]) => path !== "/:id/tests");

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
  ...OF_REPOSITORIES.map(([method, path, operation]) => ({
    path: `/hooks${path}`,
    route: {
      ...{ method, isFree: false, isOurs: true },
      run: {
        of: "repository",
        takes: "metadata",
        with: async (call) =>
          recorded(call, await repositoryPlace(call), `/repos/{owner}/{repo}/hooks${path}`, operation),
      },
    } satisfies Operation,
  })),
  ...OF_ORGANIZATIONS.map(([method, path, operation]) => ({
    path: `/orgs/:org/hooks${path}`,
    route: {
      ...{ method, isFree: false, isOurs: true },
      run: {
        of: "service",
        with: async (call) => recorded(call, await organizationPlace(call), `/orgs/{org}/hooks${path}`, operation),
      },
    } satisfies Operation,
  })),
];
