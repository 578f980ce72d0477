import { askForSending } from "../../../events/asks.ts";
import { latestDelivery } from "../../../events/latest.ts";
import { wakeTargets, wantsChanged } from "../../../events/log.ts";
import { lastSent } from "../../../events/sent.ts";
import {
  changeTarget,
  createTarget,
  findTarget,
  listTargets,
  removeTarget,
  type Target,
  type TargetConfig,
} from "../../../events/target.ts";
import { type Answer, type Call, ok } from "../../call.ts";
import { notFound } from "../../dialect/fault.ts";
import { numberedLink } from "../../dialect/paging.ts";
import { askedPage, numberParam } from "../page.ts";
import { ZEN } from "../root.ts";
import { invalidHook, readConfigBody, readHookBody } from "./hook-body.ts";
import type { HookPlace } from "./hook-place.ts";
import { configView, hookView } from "./hook-view.ts";

/** What one operation on hooks does, in a place that the caller may administer. */
export type HookOperation = (call: Call, place: HookPlace) => Promise<Answer>;

const NO_CONTENT: Answer = { status: 204, body: null, isUncached: true };

export const listHooks: HookOperation = async (call, place) => {
  const all = await listTargets(call.ctx, place.scope);
  const { page, limit, offset } = askedPage(call.query);
  const shown = all.filter(({ madeBy }) => madeBy === "api").slice(offset, offset + limit);
  const last = await lastSent(
    call.ctx,
    shown.map(({ id }) => id),
  );
  const link = numberedLink(place.address, call.query, { page, last: Math.ceil(all.length / limit) });
  return ok(JSON.stringify(shown.map((target) => hookView(target, place, last.get(target.id)))), { link });
};

export const createHook: HookOperation = async (call, place) => {
  const { name, events = ["push"], active = true, ...body } = readHookBody(call);
  if (place.login !== null && name === undefined) throw invalidHook({ field: "name", code: "missing_field" });
  const { url, contentType = "form", insecureSsl = false, secret = null, rewriteTo = null } = body;
  if (url === undefined) throw invalidHook({ field: "url", code: "missing_field" });
  const config: TargetConfig = { url, contentType, insecureSsl, secret, events, active, rewriteTo };
  await requireNew(call, place, config, null);
  const target = await createTarget(call.ctx, { scope: place.scope, madeBy: "api", ...config });
  await wantsChanged(call.ctx);
  await ping(call, place, target);
  return {
    status: 201,
    body: JSON.stringify(hookView(target, place, undefined)),
    headers: { Location: `${place.address}/${target.id}` },
  };
};

/** The service's rule: one hook for the same config and an event. @throws ApiFault 422 */
async function requireNew(
  { ctx }: Call,
  { scope, login }: HookPlace,
  { url, contentType, insecureSsl, events }: Pick<TargetConfig, "url" | "contentType" | "insecureSsl" | "events">,
  except: number | null,
): Promise<void> {
  const others = await listTargets(ctx, scope);
  const isSame = (other: Target) =>
    other.madeBy === "api" &&
    other.id !== except &&
    other.url === url &&
    other.contentType === contentType &&
    other.insecureSsl === insecureSsl &&
    (events.includes("*") || other.events.some((event) => event === "*" || events.includes(event)));
  if (!others.some(isSame)) return;
  const whose = login === null ? "repository" : "organization";
  throw invalidHook({ code: "custom", message: `Hook already exists on this ${whose}` });
}

export const getHook: HookOperation = async (call, place) => {
  const target = await requireTarget(call, place);
  const last = (await lastSent(call.ctx, [target.id])).get(target.id);
  return ok(JSON.stringify(hookView(target, place, last)), { lastModified: target.updatedAt });
};

export const changeHook: HookOperation = async (call, place) => {
  const before = await requireTarget(call, place);
  const { name: _, hasConfig, addEvents = [], removeEvents = [], ...change } = readHookBody(call);
  const isListed = place.login === null && addEvents.length + removeEvents.length > 0;
  const events = isListed
    ? [...new Set([...(change.events ?? before.events), ...addEvents])].filter((one) => !removeEvents.includes(one))
    : change.events;
  // GitHub docs: a config without the secret removes it.
  const secret = hasConfig ? { secret: change.secret ?? null } : {};
  return hookAnswer(
    call,
    place,
    await changedHook(call, place, before, { ...change, ...secret, ...(events && { events }) }),
  );
};

async function changedHook(
  call: Call,
  place: HookPlace,
  before: Target,
  change: Partial<TargetConfig>,
): Promise<Target> {
  await requireNew(call, place, { ...before, ...change }, before.id);
  const target = await changeTarget(call.ctx, before.id, change);
  if (!target) throw notFound();
  if (change.events || change.active !== undefined) await wantsChanged(call.ctx);
  if (change.active) await wakeTargets(call.ctx, [target.id]);
  return target;
}

async function hookAnswer(call: Call, place: HookPlace, target: Target): Promise<Answer> {
  const last = (await lastSent(call.ctx, [target.id])).get(target.id);
  return ok(JSON.stringify(hookView(target, place, last)));
}

export const removeHook: HookOperation = async (call, place) => {
  const { id } = await requireTarget(call, place);
  await removeTarget(call.ctx, id);
  await wantsChanged(call.ctx);
  return NO_CONTENT;
};

export const getConfig: HookOperation = async (call, place) =>
  ok(JSON.stringify(configView(await requireTarget(call, place))));

/** Changes a hook's config. Keys that the body leaves out keep their values, the secret included. */
export const changeConfig: HookOperation = async (call, place) => {
  const before = await requireTarget(call, place);
  return ok(JSON.stringify(configView(await changedHook(call, place, before, readConfigBody(call)))));
};

export const pingHook: HookOperation = async (call, place) => {
  if (!(await ping(call, place, await requireTarget(call, place)))) throw notFound();
  return NO_CONTENT;
};

/** Sends the last push that is still known, if the hook wants pushes. */
export const testHook: HookOperation = async (call, place) => {
  const target = await requireTarget(call, place);
  const wants = target.events.includes("push") || target.events.includes("*");
  const push = wants ? await latestDelivery(call.ctx, place.scope.id, "push") : null;
  if (push !== null) {
    const ask = { event: "push", deliveryId: push, payload: null, repositoryId: place.scope.id };
    if (!(await askForSending(call.ctx, target.id, ask))) throw notFound();
    await wakeTargets(call.ctx, [target.id]);
  }
  return NO_CONTENT;
};

/** The hook that is asked for. @throws ApiFault 404 */
export async function requireTarget({ ctx, params }: Call, { scope }: HookPlace): Promise<Target> {
  const id = numberParam(params.id);
  const target = id === null ? null : await findTarget(ctx, id, scope);
  // Only the operator may change a hook that the operator has named.
  if (target?.madeBy !== "api") throw notFound();
  return target;
}

/** Sends a ping. False: the hook was removed meanwhile. */
async function ping(call: Call, place: HookPlace, target: Target): Promise<boolean> {
  const hook = hookView(target, place, undefined);
  const payload = JSON.stringify({
    zen: ZEN,
    hook_id: target.id,
    hook,
    ...(await place.about()),
  });
  const repositoryId = place.login === null ? place.scope.id : null;
  const ask = { event: "ping", payload: Buffer.from(payload), deliveryId: null, repositoryId };
  const isAsked = await askForSending(call.ctx, target.id, ask);
  if (isAsked) await wakeTargets(call.ctx, [target.id]);
  return isAsked;
}
