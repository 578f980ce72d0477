import { askForSending } from "../../../events/asks.ts";
import { latestDelivery } from "../../../events/latest.ts";
import { wakeTargets, wantsChanged } from "../../../events/log.ts";
import { lastSent } from "../../../events/sent.ts";
import {
  changeTarget,
  createTarget,
  findTarget,
  listTargets,
  type Maker,
  removeTarget,
  type Target,
  type TargetConfig,
} from "../../../events/target.ts";
import { recordAct } from "../../../work/audit-log.ts";
import { type Answer, type Call, ok } from "../../call/call.ts";
import { auditActor } from "../../callers/permissions.ts";
import { type ApiFault, notFound } from "../../dialect/fault.ts";
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
  // Targets that an operator named are not counted either: `Link` would tell how many there are.
  const all = (await listTargets(call.ctx, place.scope)).filter(({ madeBy }) => madeBy === "api");
  const { page, limit, offset } = askedPage(call.query);
  const shown = all.slice(offset, offset + limit);
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
  const made = { scope: place.scope, madeBy: "api", maker: makerOf(call), ...config } as const;
  const make = () => createTarget(call.ctx, made, (others) => requireFit(place, config, others));
  const target = await recordHook(call, "create", null, make, ({ id }) => String(id));
  await wantsChanged(call.ctx);
  await ping(call, place, target);
  return {
    status: 201,
    body: JSON.stringify(hookView(target, place, undefined)),
    headers: { Location: `${place.address}/${target.id}` },
  };
};

/** Who answers for a hook that is made or resumed. */
function makerOf({ caller }: Call): Maker | null {
  if (caller.kind !== "user") return null;
  const { userId, by } = caller;
  return { userId, tokenOf: by.of, token: by.of === "own" ? by.token.id : by.fingerprint };
}

/** GitHub docs, "Creating webhooks": twenty for each event of a repository or organization. */
const MOST_FOR_EVENT = 20;
/** The service has no such limit. With it, each place has a bounded number of hooks, whatever their events. */
const MOST_HOOKS = 50;

/** The service's rules: one hook for the same config and an event, and so many for each event. @throws ApiFault 422 */
function requireFit(
  { login }: HookPlace,
  config: Pick<TargetConfig, "url" | "contentType" | "insecureSsl" | "events">,
  all: readonly Target[],
): void {
  const { url, contentType, insecureSsl, events } = config;
  const others = all.filter(({ madeBy }) => madeBy === "api");
  const hears = (other: Target, event: string) => event === "*" || wants(other, event);
  const isSame = (other: Target) =>
    other.url === url &&
    other.contentType === contentType &&
    other.insecureSsl === insecureSsl &&
    events.some((event) => hears(other, event));
  const whose = login === null ? "repository" : "organization";
  if (others.some(isSame)) throw customFault(`Hook already exists on this ${whose}`);
  if (others.length >= MOST_HOOKS) throw customFault(`This ${whose} cannot have more than ${MOST_HOOKS} hooks`);
  const full = events.find((event) => others.filter((other) => hears(other, event)).length >= MOST_FOR_EVENT);
  if (full !== undefined) throw customFault(`The "${full}" event cannot have more than ${MOST_FOR_EVENT} hooks`);
}

function wants({ events }: Target, event: string): boolean {
  return events.includes("*") || events.includes(event);
}

function customFault(message: string): ApiFault {
  return invalidHook({ code: "custom", message });
}

export const getHook: HookOperation = async (call, place) => {
  const target = await requireTarget(call, place);
  const last = (await lastSent(call.ctx, [target.id])).get(target.id);
  return {
    ...ok(JSON.stringify(hookView(target, place, last)), { lastModified: target.updatedAt }),
    ...pausedOf(target),
  };
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
  const changed = { ...before, ...change };
  // Where there are more than there may be, each can still be ended, or given another secret.
  const { url, contentType, insecureSsl, events, active } = change;
  const isJudged = active === true || [url, contentType, insecureSsl, events].some((one) => one !== undefined);
  const require = isJudged ? (others: readonly Target[]) => requireFit(place, changed, others) : null;
  const target = await recordHook(call, "change", before.id, () =>
    changeTarget(call.ctx, before.id, change, { maker: makerOf(call), require }),
  );
  if (!target) throw notFound();
  if (change.events || change.active !== undefined) await wantsChanged(call.ctx);
  if (change.active) await wakeTargets(call.ctx, [target.id]);
  return target;
}

/** Enters in the audit log what a caller does to a hook. While it cannot be entered, it is not done. */
async function recordHook<T>(
  { ctx, caller, requestId }: Call,
  does: "create" | "change" | "delete",
  id: number | null,
  run: () => Promise<T>,
  objectOf?: (made: T) => string,
): Promise<T> {
  const actor = auditActor(caller);
  const act = { actor, action: `hook.${does}`, object: id === null ? null : String(id), requestId };
  return await recordAct(ctx, act, run, Boolean, objectOf);
}

/** An organization's hook has no key in which it could say why it is paused, so every hook says it in a header, too. */
function pausedOf({ pausedWhy }: Target): Pick<Answer, "headers"> {
  return pausedWhy === null ? {} : { headers: { "X-Tain-Paused": pausedWhy } };
}

async function hookAnswer(call: Call, place: HookPlace, target: Target): Promise<Answer> {
  const last = (await lastSent(call.ctx, [target.id])).get(target.id);
  return ok(JSON.stringify(hookView(target, place, last)));
}

export const removeHook: HookOperation = async (call, place) => {
  const { id } = await requireTarget(call, place);
  await recordHook(call, "delete", id, () => removeTarget(call.ctx, id));
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
