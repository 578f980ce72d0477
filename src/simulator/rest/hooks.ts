import { deliveryItem, deliveryView, hookConfig, hookView } from "../views/hook.ts";
import type { Delivery } from "../world/delivery-log.ts";
import { isJsonObject } from "../world/json.ts";
import type { Endpoint, Hook } from "../world/records.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { flag, oneOf, text, texts } from "./body.ts";
import { type Answer, type Call, created, NO_CONTENT, needAdmin, notFound, ok, type RepositoryCall } from "./call.ts";
import { link, paged, pageSize } from "./pagination.ts";

const MAX_HOOKS_PER_EVENT = 20;

function findHook(call: RepositoryCall): Hook {
  admin(call);
  const hook = call.repository.rows.hooks.get(Number(call.params.id));
  if (!hook) throw notFound();
  return hook;
}

/** A caller who may not administer the repository does not learn that there are hooks. */
function admin(call: RepositoryCall): void {
  if (!call.token || call.role !== "admin") throw notFound();
}

export function listHooks(call: RepositoryCall): Answer {
  admin(call);
  const { hooks } = call.repository.rows;
  return paged(call, { rows: hooks.values(), size: hooks.size }, (hook) => hookView(call.view, hook));
}

export function getHook(call: RepositoryCall): Answer {
  const hook = findHook(call);
  return ok(hookView(call.view, hook), { lastModified: hook.updatedAt });
}

export function postHook(call: RepositoryCall): Answer {
  admin(call);
  const by = needAdmin(call);
  const { body, world, repository } = call;
  if (text(body, "name") !== undefined && text(body, "name") !== "web")
    throw invalid({ resource: "Hook", code: "custom", field: "name", message: "name must be web" });
  const config = configOf(call.body.config, call);
  const url = config.url ?? missingUrl();
  const events = texts(body, "events") ?? ["push"];
  checkEvents(call, events);
  for (const other of repository.rows.hooks.values()) {
    if (other.url === url && sameEvents(other.events, events) && other.contentType === (config.contentType ?? "form")) {
      throw invalid({ resource: "Hook", code: "custom", message: "Hook already exists on this repository" });
    }
  }
  for (const event of events) {
    const same = [...repository.rows.hooks.values()].filter((hook) => hook.events.includes(event));
    if (same.length >= MAX_HOOKS_PER_EVENT) {
      throw invalid({
        resource: "Hook",
        code: "custom",
        message: `The "${event}" event cannot have more than ${MAX_HOOKS_PER_EVENT} hooks`,
      });
    }
  }
  const hook = world.addHook({ repository, events, active: flag(body, "active") ?? true, ...config, url });
  call.webhooks.ping(hook, by);
  return created(hookView(call.view, hook));
}

function missingUrl(): never {
  throw invalid({ resource: "Hook", code: "missing_field", field: "url" });
}

interface HookConfig {
  readonly url?: string;
  readonly contentType?: "json" | "form";
  readonly secret?: string | null;
  readonly insecureSsl?: "0" | "1";
}

export function configOf(value: unknown, call: Call): HookConfig {
  if (value === undefined) return {};
  if (!isJsonObject(value))
    throw new Refusal(422, "Invalid request.\n\nFor 'properties/config', this is not an object.");
  const url = text(value, "url");
  if (url !== undefined) checkUrl(url, call);
  const contentType = oneOf(value, "content_type", ["json", "form"]);
  const secret = value.secret === null ? null : text(value, "secret");
  const insecure = value.insecure_ssl;
  return {
    ...(url === undefined ? {} : { url }),
    ...(contentType === undefined ? {} : { contentType }),
    ...(secret === undefined ? {} : { secret: secret === "" ? null : secret }),
    ...(insecure === undefined ? {} : { insecureSsl: String(insecure) === "1" ? "1" : "0" }),
  };
}

function checkUrl(url: string, call: Call): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:") {
    throw invalid({ resource: "Hook", code: "custom", field: "url", message: "url must be a valid URL" });
  }
  if (call.refuseLocalHooks && /^(localhost|127\.|\[::1\]|0\.0\.0\.0)/.test(parsed.hostname)) {
    const message = `url is not supported because it isn't reachable over the public Internet (${parsed.hostname})`;
    throw invalid({ resource: "Hook", code: "custom", field: "url", message });
  }
}

// GitHub docs: "Webhook events and payloads"; those that repositories can have.
const EVENTS = new Set(
  (
    "* branch_protection_configuration branch_protection_rule check_run check_suite code_scanning_alert commit_comment create delete " +
    "dependabot_alert deploy_key deployment deployment_status discussion discussion_comment fork gollum issue_comment issue_dependencies " +
    "issues label member merge_group meta milestone package page_build ping project project_card project_column public pull_request " +
    "pull_request_review pull_request_review_comment pull_request_review_thread push registry_package release repository " +
    "repository_advisory repository_import repository_ruleset repository_vulnerability_alert secret_scanning_alert " +
    "secret_scanning_alert_location security_and_analysis star status sub_issues team_add watch workflow_job workflow_run"
  ).split(" "),
);

function checkEvents({ webhooks }: Call, events: readonly string[]): void {
  for (const event of events) {
    if (!EVENTS.has(event) || !webhooks.knows(event))
      throw invalid({ resource: "Hook", code: "custom", field: "events", message: `"${event}" is not a valid event` });
  }
}

function sameEvents(a: readonly string[], b: readonly string[]): boolean {
  return [...a].sort().join() === [...b].sort().join();
}

export function patchHook(call: RepositoryCall): Answer {
  const hook = findHook(call);
  needAdmin(call);
  const { body } = call;
  const events = texts(body, "events");
  const add = texts(body, "add_events") ?? [];
  const remove = texts(body, "remove_events") ?? [];
  checkEvents(call, [...(events ?? []), ...add]);
  const config = configOf(body.config, call);
  hook.events = [...new Set([...(events ?? hook.events), ...add])].filter((event) => !remove.includes(event));
  hook.active = flag(body, "active") ?? hook.active;
  // GitHub docs: a config without the secret removes it.
  applyConfig(hook, body.config === undefined || config.secret !== undefined ? config : { ...config, secret: null });
  hook.updatedAt = call.world.now();
  return ok(hookView(call.view, hook));
}

export function applyConfig(hook: Endpoint, config: HookConfig): void {
  hook.url = config.url ?? hook.url;
  hook.contentType = config.contentType ?? hook.contentType;
  hook.insecureSsl = config.insecureSsl ?? hook.insecureSsl;
  if (config.secret !== undefined) hook.secret = config.secret;
}

export function deleteHook(call: RepositoryCall): Answer {
  const hook = findHook(call);
  call.webhooks.farewell(hook, needAdmin(call));
  hook.deleted = true;
  call.repository.rows.hooks.delete(hook.id);
  call.world.hooks.delete(hook.id);
  return NO_CONTENT;
}

export function getHookConfig(call: RepositoryCall): Answer {
  return ok(hookConfig(findHook(call)));
}

export function patchHookConfig(call: RepositoryCall): Answer {
  const hook = findHook(call);
  needAdmin(call);
  applyConfig(hook, configOf(call.body, call));
  hook.updatedAt = call.world.now();
  return ok(hookConfig(hook));
}

export function pingHook(call: RepositoryCall): Answer {
  const hook = findHook(call);
  call.webhooks.ping(hook, needAdmin(call));
  return NO_CONTENT;
}

export function testHook(call: RepositoryCall): Answer {
  const hook = findHook(call);
  const by = needAdmin(call);
  if (hook.events.includes("push") || hook.events.includes("*")) call.webhooks.test(hook, by);
  return NO_CONTENT;
}

export function listDeliveries(call: RepositoryCall): Answer {
  return deliveriesOf(call, findHook(call).id);
}

/** By cursor (opaque to clients: the id of the last one shown), newest first; `page` means nothing here. */
export function deliveriesOf(call: Call, hookId: number): Answer {
  const { query } = call;
  const cursor = query.get("cursor");
  const [, digits] = cursor === null ? [] : (/^v1_(\d+)$/.exec(cursor) ?? []);
  if (cursor !== null && digits === undefined) throw new Refusal(422, "Invalid cursor");
  const before = digits === undefined ? undefined : BigInt(digits);
  const status = query.get("status");
  if (status !== null && status !== "success" && status !== "failure")
    throw new Refusal(422, `Invalid status: ${status}`);
  const size = pageSize(query);
  const found = call.webhooks.log.list(hookId, {
    ...(before === undefined ? {} : { before }),
    ...(status === null ? {} : { status }),
  });
  const page = found.slice(0, size);
  const last = page.at(-1);
  const links = last && found.length > size ? [link(call, { cursor: `v1_${last.id}` }, "next")] : [];
  return ok(page.map(deliveryItem), { links });
}

export function getDelivery(call: RepositoryCall): Answer {
  return ok(deliveryView(deliveryOf(call, findHook(call).id)));
}

export function deliveryOf(call: Call, hookId: number): Delivery {
  const delivery = call.webhooks.log.find(hookId, BigInt(call.params.delivery ?? ""));
  if (!delivery) throw notFound();
  return delivery;
}

export function postAttempt(call: RepositoryCall): Answer {
  const hook = findHook(call);
  needAdmin(call);
  call.webhooks.redeliver(hook, deliveryOf(call, hook.id));
  return { status: 202, body: {} };
}
