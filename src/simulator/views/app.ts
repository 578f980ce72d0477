import type { App, Installation } from "../world/apps.ts";
import { legacyNodeId } from "../world/node-id.ts";
import type { Repository } from "../world/records.ts";
import type { CheckApp } from "../world/records-code.ts";
import type { Token } from "../world/tokens.ts";
import { hookConfig } from "./hook.ts";
import { repositorySummary } from "./repository.ts";
import { simpleUser, simpleUserOrNull } from "./user.ts";
import { type Json, time, timeOrNull, type View } from "./view.ts";

/** What the App itself sees. */
export function appView(view: View, app: App, installations: number): Json {
  return { ...integration(view, app), installations_count: installations };
}

/** integration, as others see it. */
export function integration(view: View, app: CheckApp): Json {
  return {
    id: app.id,
    client_id: app.clientId,
    slug: app.slug,
    node_id: legacyNodeId("Integration", app.id),
    owner: simpleUser(view, app.ownerId),
    name: app.name,
    description: "",
    external_url: `${view.htmlUrl}/apps/${app.slug}`,
    html_url: `${view.htmlUrl}/apps/${app.slug}`,
    created_at: time(app.createdAt),
    updated_at: time(app.updatedAt),
    permissions: app.permissions,
    events: app.events,
  };
}

export function installationView(view: View, installation: Installation): Json {
  const { app } = installation;
  const account = view.world.user(installation.accountId);
  const settings = account.type === "Organization" ? `organizations/${account.login}/settings` : "settings";
  return {
    id: installation.id,
    account: simpleUser(view, account.id),
    repository_selection: installation.repositoryIds === "all" ? "all" : "selected",
    access_tokens_url: `${view.apiUrl}/app/installations/${installation.id}/access_tokens`,
    repositories_url: `${view.apiUrl}/installation/repositories`,
    html_url: `${view.htmlUrl}/${settings}/installations/${installation.id}`,
    app_id: app.id,
    client_id: app.clientId,
    app_slug: app.slug,
    target_id: account.id,
    target_type: account.type,
    permissions: installation.permissions,
    events: installation.events,
    created_at: time(installation.createdAt),
    updated_at: time(installation.updatedAt),
    single_file_name: null,
    has_multiple_single_files: false,
    single_file_paths: [],
    suspended_by: simpleUserOrNull(view, installation.suspendedById),
    suspended_at: timeOrNull(installation.suspendedAt),
  };
}

/** `{id, node_id}`: the installation that an App's delivery is for. */
export function simpleInstallation({ id }: Installation): Json {
  return { id, node_id: legacyNodeId("IntegrationInstallation", id) };
}

/** installation-token; `repositories` only when the request chose some. */
export function accessToken(view: View, token: Token, repositories: readonly Repository[] | null): Json {
  const { grant, expiresAt } = token;
  return {
    token: token.value,
    expires_at: time(Math.floor((expiresAt ?? 0) / 1_000)),
    permissions: grant?.permissions,
    repository_selection: repositories || grant?.installation.repositoryIds !== "all" ? "selected" : "all",
    ...(repositories ? { repositories: repositories.map((one) => repositorySummary(view, one)) } : {}),
  };
}

/** What `installation` events list. */
export function briefRepository(view: View, repository: Repository): Json {
  const { world } = view;
  return {
    id: repository.id,
    node_id: world.nodeId("Repository", repository, undefined, view.nextIds),
    name: repository.name,
    full_name: world.fullName(repository),
    private: repository.visibility !== "public",
  };
}

/** As pings of an App's hook show it. */
export function appHookView(view: View, { hook, id }: App): Json {
  return {
    type: "App",
    id: hook.id,
    name: "web",
    active: hook.active,
    events: hook.events,
    config: hookConfig(hook),
    updated_at: time(hook.updatedAt),
    created_at: time(hook.createdAt),
    app_id: id,
    deliveries_url: `${view.apiUrl}/app/hook/deliveries`,
  };
}
