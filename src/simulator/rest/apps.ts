/** What an App asks with its JWT, and an installation of itself. */

import { accessToken, appView, installationView, integration } from "../views/app.ts";
import { deliveryView, hookConfig } from "../views/hook.ts";
import { repositorySummary } from "../views/repository.ts";
import { type App, covers, type Installation } from "../world/apps.ts";
import { isJsonObject } from "../world/json.ts";
import { grants, type Level, type Permissions } from "../world/permissions.ts";
import type { Repository, User } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { texts } from "./body.ts";
import { type Answer, type Call, NO_CONTENT, notFound, ok, type RepositoryCall } from "./call.ts";
import { applyConfig, configOf, deliveriesOf, deliveryOf } from "./hooks.ts";
import { paged } from "./pagination.ts";

/** The router lets no other caller in. */
function appOf(call: Call): App {
  if (!call.app) throw new Error("A route for Apps was called without one");
  return call.app;
}

export function getApp(call: Call): Answer {
  const app = appOf(call);
  return ok(appView(call.view, app, call.apps.of(app).length));
}

/** What a new App's owner is told once: the App with its secrets. The code is all that the caller shows. */
export function postConversion({ manifests, params, view }: Call): Answer {
  const made = manifests.take(params.code ?? "");
  if (!made) throw notFound();
  const { app, clientSecret, webhookSecret, pem } = made;
  const secrets = { client_secret: clientSecret, webhook_secret: webhookSecret, pem };
  return { status: 201, body: { ...integration(view, app), ...secrets } };
}

/** `since`: updated at or after. `outdated`: those that have not accepted what the App asks for by now. */
export function listInstallations(call: Call): Answer {
  const app = appOf(call);
  const since = Date.parse(call.query.get("since") ?? "");
  const rows = call.apps
    .of(app)
    .filter((one) => Number.isNaN(since) || one.updatedAt * 1_000 >= since)
    .filter((one) => !call.query.has("outdated") || isOutdated(one));
  return paged(call, { rows, size: rows.length }, (one) => installationView(call.view, one));
}

function isOutdated({ app, permissions, events }: Installation): boolean {
  const text = (granted: Permissions) => JSON.stringify(Object.entries(granted).sort());
  return text(app.permissions) !== text(permissions) || [...app.events].sort().join() !== [...events].sort().join();
}

function installationOf(call: Call): Installation {
  const found = call.apps.installations.get(Number(call.params.id));
  if (!found || found.app !== call.app) throw notFound();
  return found;
}

export function getInstallation(call: Call): Answer {
  return ok(installationView(call.view, installationOf(call)));
}

export function getRepositoryInstallation(call: RepositoryCall): Answer {
  const found = call.apps.of(appOf(call)).find((one) => covers(one, call.repository));
  if (!found) throw notFound();
  return ok(installationView(call.view, found));
}

export function getOrganizationInstallation(call: Call): Answer {
  return accountInstallation(call, (account) => account.type === "Organization");
}

export function getUserInstallation(call: Call): Answer {
  return accountInstallation(call, (account) => account.type === "User");
}

function accountInstallation(call: Call, isOne: (account: User) => boolean): Answer {
  const account = call.world.userByLogin(call.params.login ?? "");
  const found = account && isOne(account) ? call.apps.ofAccount(appOf(call), account) : undefined;
  if (!found) throw notFound();
  return ok(installationView(call.view, found));
}

// GitHub docs: "up to 500 repositories".
const MAX_REPOSITORIES = 500;

export function postAccessToken(call: Call): Answer {
  const installation = installationOf(call);
  if (installation.suspendedAt !== null) throw suspended();
  const repositories = chosenRepositories(call, installation);
  const permissions = chosenPermissions(call, installation);
  const asked = call.headers["x-github-stateless-s2s-token"];
  const long = asked === "enabled" || (asked !== "disabled" && installation.app.longTokens);
  const repositoryIds = repositories && new Set(repositories.map(({ id }) => id));
  const bonus = () => call.apps.bonusOf(installation);
  const token = call.tokens.mint({ installation, repositoryIds, permissions, bonus }, long);
  return { status: 201, body: accessToken(call.view, token, repositories) };
}

export function suspended(): Refusal {
  return new Refusal(403, "This installation has been suspended");
}

/** Null: all of them. By name without the owner, or by id. */
function chosenRepositories(call: Call, installation: Installation): Repository[] | null {
  const names = texts(call.body, "repositories");
  const ids = call.body.repository_ids;
  if (ids !== undefined && !isIds(ids)) {
    throw new Refusal(422, "Invalid request.\n\nFor 'properties/repository_ids', this is not an array of integers.");
  }
  if (!names && !ids) return null;
  const all = call.apps.repositoriesOf(installation);
  const found = [
    ...(names ?? []).map((name) => all.find((one) => one.name.toLowerCase() === name.toLowerCase())),
    ...(ids ?? []).map((id) => all.find((one) => one.id === id)),
  ];
  if (found.length > MAX_REPOSITORIES) {
    throw new Refusal(422, `You may not choose more than ${MAX_REPOSITORIES} repositories; you chose ${found.length}.`);
  }
  if (found.length === 0) return null;
  const chosen = found.filter((one) => one !== undefined);
  if (chosen.length < found.length) {
    const message =
      "There is at least one repository that does not exist or is not accessible to the parent installation.";
    throw new Refusal(422, message);
  }
  return [...new Set(chosen)];
}

function isIds(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((id) => Number.isSafeInteger(id));
}

function chosenPermissions(call: Call, installation: Installation): Permissions {
  const { permissions } = call.body;
  if (permissions === undefined || permissions === null) return installation.permissions;
  if (!isJsonObject(permissions))
    throw new Refusal(422, "Invalid request.\n\nFor 'properties/permissions', this is not an object.");
  const chosen: Record<string, Level> = {};
  for (const [permission, level] of Object.entries(permissions)) {
    if (level !== "read" && level !== "write" && level !== "admin")
      throw new Refusal(422, `Invalid request.\n\n${JSON.stringify(level)} is not a level of ${permission}.`);
    if (!grants(installation.permissions, [{ permission, level }]))
      throw new Refusal(422, "The permissions requested are not granted to this installation.");
    chosen[permission] = level;
  }
  return { ...chosen, metadata: "read" };
}

function grantOf(call: Call) {
  if (!call.token) throw new Refusal(401, "Requires authentication");
  if (!call.token.grant) {
    const message =
      "You must authenticate with an installation access token in order to list repositories for an installation.";
    throw new Refusal(403, message);
  }
  return call.token.grant;
}

export function listInstallationRepositories(call: Call): Answer {
  const { installation, repositoryIds } = grantOf(call);
  const rows = call.apps.repositoriesOf(installation).filter(({ id }) => !repositoryIds || repositoryIds.has(id));
  const answer = paged(call, { rows, size: rows.length }, (one) => {
    const seen = call.world.lag.seen(one);
    return seen && repositorySummary(call.view, seen);
  });
  const selection = repositoryIds || installation.repositoryIds !== "all" ? "selected" : "all";
  return {
    ...answer,
    body: { total_count: rows.length, repository_selection: selection, repositories: answer.body },
  };
}

export function deleteInstallationToken(call: Call): Answer {
  grantOf(call);
  call.tokens.delete(call.token?.value ?? "");
  return NO_CONTENT;
}

export function getHookConfig(call: Call): Answer {
  return ok(hookConfig(appOf(call).hook));
}

export function patchHookConfig(call: Call): Answer {
  const { hook } = appOf(call);
  applyConfig(hook, configOf(call.body, call));
  hook.updatedAt = call.world.now();
  return ok(hookConfig(hook));
}

export function listDeliveries(call: Call): Answer {
  return deliveriesOf(call, appOf(call).hook.id);
}

export function getDelivery(call: Call): Answer {
  return ok(deliveryView(deliveryOf(call, appOf(call).hook.id)));
}

export function postAttempt(call: Call): Answer {
  const { hook } = appOf(call);
  call.webhooks.redeliver(hook, deliveryOf(call, hook.id));
  return { status: 202, body: {} };
}
