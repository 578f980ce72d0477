/**
 * Tells the hooks what happened in the world: one GUID per event, a signed request per hook, ten seconds to answer,
 * no retries, a log of three days. Nothing here is waited for by the change itself; `quiet()` waits for all of it.
 */
import { createHmac, randomUUID } from "node:crypto";
import { Agent, request } from "undici";
import type { Faults } from "../faults/faults.ts";
import { appHookView, simpleInstallation } from "../views/app.ts";
import { hookView } from "../views/hook.ts";
import { repositorySummary } from "../views/repository.ts";
import { simpleUser } from "../views/user.ts";
import { openView, type View } from "../views/view.ts";
import type { App, AppHook, Apps, Installation, InstallationEvent } from "../world/apps.ts";
import { type Delivery, DeliveryLog, packed } from "../world/delivery-log.ts";
import type { WorldEvent } from "../world/event.ts";
import { grants, permissionOfEvent } from "../world/permissions.ts";
import type { Hook, Repository } from "../world/records.ts";
import type { World } from "../world/world.ts";
import { installationPayload } from "./installation-payload.ts";
import { payloadOf } from "./payload.ts";

export interface WebhookOptions {
  /** Default 10,000, as the service. */
  readonly timeoutMs?: number;
  /** Requests on their way at once. Default 16. */
  readonly concurrency?: number;
}

export interface WebhookTally {
  /** Events that at least one hook wanted. */
  events: number;
  /** Requests sent, duplicates and redeliveries included. */
  sent: number;
  failed: number;
  dropped: number;
  redeliveries: number;
}

/** What is to be sent to one hook. */
interface Letter {
  readonly hook: Hook | AppHook;
  readonly repositoryId: number | null;
  readonly installationId: number | null;
  readonly guid: string;
  readonly event: string;
  readonly action: string | null;
  readonly json: string;
  readonly redelivery: boolean;
  readonly throttledAt?: number;
}

// GitHub: bigger payloads are not sent at all.
const MAX_PAYLOAD = 25 * 1024 * 1024;
const MAX_RESPONSE_KEPT = 64 * 1024;
/** Of the size that the service's ids of deliveries have had since February 2026: no double holds them. */
const FIRST_DELIVERY_ID = 3_804_004_623_172_239_366n;

export class Webhooks {
  readonly log: DeliveryLog;
  readonly tally: WebhookTally = { events: 0, sent: 0, failed: 0, dropped: 0, redeliveries: 0 };
  readonly #world: World;
  readonly #apps: Apps;
  readonly #faults: Faults;
  readonly #view: () => View;
  readonly #timeoutMs: number;
  readonly #concurrency: number;
  readonly #agent: Agent;
  readonly #stop = new AbortController();
  readonly #unsubscribe: readonly (() => void)[];
  readonly #waiting: Letter[] = [];
  /** Held back until another letter has gone out, or their timer ends. */
  readonly #held = new Map<Letter, NodeJS.Timeout>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #running = 0;
  #quiet: (() => void)[] = [];

  /** `base` gives the addresses that payloads carry, as soon as the server knows them. */
  constructor(
    world: World,
    apps: Apps,
    faults: Faults,
    base: () => { apiUrl: string; htmlUrl: string },
    options: WebhookOptions = {},
  ) {
    this.#world = world;
    this.#apps = apps;
    this.#faults = faults;
    this.#view = () => openView({ world, ...base() });
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#concurrency = options.concurrency ?? 16;
    this.#agent = new Agent({ connections: this.#concurrency });
    this.log = new DeliveryLog(world.clock);
    this.#unsubscribe = [world.onEvent((event) => this.#tell(event)), apps.onEvent((event) => this.#tellApp(event))];
  }

  knows(event: string): boolean {
    return !this.#faults.lacksEvents.includes(event);
  }

  #tell(event: WorldEvent): void {
    if (!this.knows(event.event)) return;
    const { onlyApp } = event;
    // GitHub: a repository's deletion is for organisations' hooks and Apps. Its own hooks are gone with it.
    const isForHooks = onlyApp === undefined && !(event.event === "repository" && event.action === "deleted");
    const hooks = [...event.repository.rows.hooks.values()].filter((hook) => isForHooks && wants(hook, event.event));
    const installations = this.#apps
      .covering(event.repository)
      .filter((one) => (onlyApp === undefined ? hears(one, event.event) : isAsked(one, onlyApp)));
    if (hooks.length === 0 && installations.length === 0) return;
    const payload = payloadOf(this.#view(), event);
    const json = JSON.stringify(payload);
    if (Buffer.byteLength(json) > MAX_PAYLOAD) return;
    this.tally.events += 1;
    const guid = randomUUID();
    const letter = { guid, event: event.event, action: event.action, redelivery: false };
    const repositoryId = event.repository.id;
    for (const hook of hooks) this.#post({ ...letter, hook, repositoryId, installationId: null, json });
    for (const one of installations) {
      const forApp = JSON.stringify({ ...payload, installation: simpleInstallation(one) });
      this.#post({ ...letter, hook: one.app.hook, repositoryId, installationId: one.id, json: forApp });
    }
  }

  /** Apps hear of their installations without a subscription. */
  #tellApp(event: InstallationEvent): void {
    const { app, id } = event.installation;
    if (app.hook.url === "") return;
    this.tally.events += 1;
    this.#post({
      hook: app.hook,
      guid: randomUUID(),
      event: event.event,
      action: event.action,
      repositoryId: null,
      installationId: id,
      json: JSON.stringify(installationPayload(this.#view(), event)),
      redelivery: false,
    });
  }

  /** GitHub: when an App is made with a webhook. */
  pingApp(app: App): void {
    if (app.hook.url === "") return;
    const view = this.#view();
    const payload = {
      zen: "Speak like a human.",
      hook_id: app.hook.id,
      hook: appHookView(view, app),
      sender: simpleUser(view, app.ownerId),
    };
    this.#postAlone(app.hook, "ping", null, payload);
  }

  /** A webhook's last event, sent if it subscribes to `meta`. Call this before the webhook is gone. */
  farewell(hook: Hook, senderId: number): void {
    if (!wants(hook, "meta")) return;
    const view = this.#view();
    const { type, id, name, active, events, config, updated_at, created_at } = hookView(view, hook);
    this.#postAlone(hook, "meta", "deleted", {
      action: "deleted",
      hook_id: hook.id,
      hook: { type, id, name, active, events, config, updated_at, created_at },
      repository: repositorySummary(view, hook.repository),
      sender: simpleUser(view, senderId),
    });
  }

  #postAlone(hook: Hook | AppHook, event: string, action: string | null, payload: object): void {
    this.#post({
      hook,
      guid: randomUUID(),
      event,
      action,
      repositoryId: "repository" in hook ? hook.repository.id : null,
      installationId: null,
      json: JSON.stringify(payload),
      redelivery: false,
    });
  }

  /** GitHub: on creation, and when asked for. */
  ping(hook: Hook, senderId: number): void {
    const view = this.#view();
    const payload = {
      zen: "Speak like a human.",
      hook_id: hook.id,
      hook: hookView(view, hook),
      repository: repositorySummary(view, hook.repository),
      sender: simpleUser(view, senderId),
    };
    this.#postAlone(hook, "ping", null, payload);
  }

  /** Sends the default branch's head as a push to one hook. */
  test(hook: Hook, senderId: number): void {
    const { repository } = hook;
    const sha = headOf(repository);
    const event: WorldEvent = {
      event: "push",
      action: null,
      repository,
      senderId,
      push: { ref: `refs/heads/${repository.defaultBranch}`, before: sha, after: sha },
    };
    this.#postAlone(hook, "push", null, payloadOf(this.#view(), event));
  }

  /** Same GUID, same payload, a new delivery. */
  redeliver(hook: Hook | AppHook, delivery: Delivery): void {
    this.tally.redeliveries += 1;
    const { guid, event, action, repositoryId, installationId } = delivery;
    const json = delivery.payload();
    this.#enqueue({ hook, guid, event, action, repositoryId, installationId, json, redelivery: true });
  }

  /** Ends when nothing is on its way, held back or delayed. */
  async quiet(): Promise<void> {
    if (this.#idle()) return;
    await new Promise<void>((resolve) => this.#quiet.push(resolve));
  }

  /** Gives up what has not been sent and what is on its way. */
  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#stop.abort();
    this.#waiting.length = 0;
    for (const timer of [...this.#timers, ...this.#held.values()]) clearTimeout(timer);
    this.#timers.clear();
    this.#held.clear();
    this.#settle();
    await this.#agent.destroy();
  }

  /** Where faults strike; redeliveries are spared. */
  #post(letter: Letter): void {
    const faults = this.#faults;
    if (faults.webhook("drop")) {
      this.tally.dropped += 1;
      return;
    }
    if (faults.webhook("duplicate")) this.#enqueue(letter);
    const throttled = faults.webhook("throttle");
    if (throttled || faults.webhook("delay")) {
      const late = throttled ? { ...letter, throttledAt: this.#world.clock.now() } : letter;
      const waitMs = faults.random.int(0, faults.webhooks.delayMs ?? 1_000);
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.#enqueue(late);
      }, waitMs);
      this.#timers.add(timer);
      return;
    }
    if (faults.webhook("reorder")) {
      // Nothing may follow: then it goes by itself.
      this.#held.set(
        letter,
        setTimeout(() => this.#release(letter), faults.webhooks.delayMs ?? 1_000),
      );
      return;
    }
    this.#enqueue(letter);
  }

  #release(letter: Letter): void {
    clearTimeout(this.#held.get(letter));
    if (this.#held.delete(letter)) this.#enqueue(letter);
  }

  #enqueue(letter: Letter): void {
    if (this.#stop.signal.aborted) return;
    this.#waiting.push(letter);
    this.#next();
  }

  #next(): void {
    while (this.#running < this.#concurrency) {
      const letter = this.#waiting.shift();
      if (!letter) break;
      this.#running += 1;
      void this.#send(letter).finally(() => {
        this.#running -= 1;
        for (const held of [...this.#held.keys()]) this.#release(held);
        this.#next();
        this.#settle();
      });
    }
  }

  #idle(): boolean {
    return this.#running === 0 && this.#waiting.length === 0 && this.#held.size === 0 && this.#timers.size === 0;
  }

  #settle(): void {
    if (!this.#idle() && !this.#stop.signal.aborted) return;
    const waiting = this.#quiet;
    this.#quiet = [];
    for (const resolve of waiting) resolve();
  }

  async #send(letter: Letter): Promise<void> {
    const { hook } = letter;
    const body = hook.contentType === "json" ? letter.json : new URLSearchParams({ payload: letter.json }).toString();
    const headers = headersOf(letter, body);
    const startedAt = performance.now();
    const outcome = this.#faults.webhook("fail") ? UNREACHABLE : await this.#exchange(hook.url, headers, body);
    if (this.#stop.signal.aborted) return;
    const late = outcome.status === "OK" && this.#faults.webhook("timeout");
    const { status, statusCode, responseHeaders, responsePayload } = late ? TIMED_OUT : outcome;
    this.tally.sent += 1;
    if (status !== "OK") this.tally.failed += 1;
    hook.lastResponse = { code: statusCode || null, status: status === "OK" ? "active" : status, message: status };
    this.log.add({
      id: FIRST_DELIVERY_ID + BigInt(this.#world.nextId("delivery")),
      guid: letter.guid,
      hookId: hook.id,
      repositoryId: letter.repositoryId,
      installationId: letter.installationId,
      event: letter.event,
      action: letter.action,
      deliveredAt: this.#world.clock.now(),
      redelivery: letter.redelivery,
      throttledAt: letter.throttledAt ?? null,
      durationMs: Math.round(performance.now() - startedAt),
      status,
      statusCode,
      url: hook.url,
      requestHeaders: headers,
      responseHeaders,
      responsePayload,
      payload: packed(letter.json),
    });
  }

  async #exchange(url: string, headers: Record<string, string>, body: string): Promise<Outcome> {
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      const response = await request(url, {
        method: "POST",
        headers,
        body,
        dispatcher: this.#agent,
        signal: AbortSignal.any([this.#stop.signal, timeout]),
      });
      const text = await response.body.text();
      const { statusCode } = response;
      const responseHeaders = Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
      );
      return {
        status: statusCode >= 200 && statusCode < 300 ? "OK" : `Invalid HTTP Response: ${statusCode}`,
        statusCode,
        responseHeaders,
        responsePayload: text.slice(0, MAX_RESPONSE_KEPT),
      };
    } catch {
      // The log shows as outcome what kept the request from being answered.
      return timeout.aborted ? TIMED_OUT : UNREACHABLE;
    }
  }
}

type Outcome = Pick<Delivery, "status" | "statusCode" | "responseHeaders" | "responsePayload">;
const TIMED_OUT: Outcome = { status: "timed out", statusCode: 504, responseHeaders: null, responsePayload: null };
const UNREACHABLE: Outcome = {
  status: "failed to connect to host",
  statusCode: 502,
  responseHeaders: null,
  responsePayload: null,
};

function wants(hook: Hook | AppHook, event: string): boolean {
  return hook.active && hook.url !== "" && (hook.events.includes("*") || hook.events.includes(event));
}

/** Only events and permissions that the installation has accepted count. */
function hears({ app, events, permissions }: Installation, event: string): boolean {
  if (!app.hook.active || app.hook.url === "" || !(events.includes("*") || events.includes(event))) return false;
  return grants(
    permissions,
    permissionOfEvent(event).map((permission) => ({ permission, level: "read" as const })),
  );
}

/** An App that makes checks is asked for more of them without a subscription. */
function isAsked({ app, permissions }: Installation, id: number): boolean {
  return app.id === id && app.hook.active && app.hook.url !== "" && permissions.checks === "write";
}

function headOf(repository: Repository): string {
  return repository.branches.get(repository.defaultBranch) ?? "0".repeat(40);
}

function headersOf(letter: Letter, body: string): Record<string, string> {
  const { hook } = letter;
  const sign = (algorithm: string, secret: string) =>
    `${algorithm}=${createHmac(algorithm, secret).update(body).digest("hex")}`;
  return {
    Accept: "*/*",
    "Content-Type": hook.contentType === "json" ? "application/json" : "application/x-www-form-urlencoded",
    "User-Agent": "GitHub-Hookshot/5e1f2a7",
    "X-GitHub-Delivery": letter.guid,
    "X-GitHub-Event": letter.event,
    "X-GitHub-Hook-ID": String(hook.id),
    "X-GitHub-Hook-Installation-Target-ID": String("appId" in hook ? hook.appId : hook.repository.id),
    "X-GitHub-Hook-Installation-Target-Type": "appId" in hook ? "integration" : "repository",
    ...(hook.secret === null
      ? {}
      : { "X-Hub-Signature": sign("sha1", hook.secret), "X-Hub-Signature-256": sign("sha256", hook.secret) }),
  };
}
