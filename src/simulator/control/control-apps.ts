/** Apps and installations in the control interface: what people do on the service's pages. */
import { type App, type AppInput, type Installation, type InstallationInput, repositoryOf } from "../world/apps.ts";
import { trusted } from "../world/json.ts";
import type { Permissions } from "../world/permissions.ts";
import { Refusal } from "../world/refusal.ts";
import type { Simulator } from "./running.ts";

type Json = Readonly<Record<string, unknown>>;

function shownInstallation({ world, apps }: Simulator, installation: Installation) {
  return {
    id: installation.id,
    app: installation.app.id,
    account: world.user(installation.accountId).login,
    selection: installation.repositoryIds === "all" ? "all" : "selected",
    repositories: apps.repositoriesOf(installation).map((repository) => world.fullName(repository)),
    permissions: installation.permissions,
    events: installation.events,
    suspended: installation.suspendedAt !== null,
  };
}

/** Without its secrets. */
export function shownApp(simulator: Simulator, app: App) {
  return {
    id: app.id,
    clientId: app.clientId,
    slug: app.slug,
    permissions: app.permissions,
    events: app.events,
    webhook: { id: app.hook.id, url: app.hook.url, signed: app.hook.secret !== null },
    longTokens: app.longTokens,
    installations: simulator.apps.of(app).map((one) => shownInstallation(simulator, one)),
  };
}

/** The private key is told once, when the simulator made the pair. Its hook is pinged. */
export function createApp(simulator: Simulator, body: Json) {
  const { app, privateKey } = simulator.apps.create(trusted<AppInput>(body));
  simulator.webhooks.pingApp(app);
  return { ...shownApp(simulator, app), ...(privateKey === null ? {} : { privateKey }) };
}

export function editApp(simulator: Simulator, id: string, body: Json) {
  const app = appOf(simulator, id);
  simulator.apps.edit(app, trusted<AppInput>(body));
  return shownApp(simulator, app);
}

export function deleteApp(simulator: Simulator, id: string): void {
  const app = appOf(simulator, id);
  simulator.apps.delete(app, app.ownerId);
}

function appOf({ apps }: Simulator, id: unknown): App {
  const app = apps.byIssuer(String(id));
  if (!app) throw new Refusal(404, `There is no App ${id}`);
  return app;
}

/** `{app, account, repositories?, permissions?, events?, id?, by?}`. */
export function install(simulator: Simulator, body: Json) {
  const input = trusted<InstallationInput>(body);
  const account = simulator.world.userByLogin(input.account ?? "");
  if (!account) throw new Refusal(422, `There is no account ${input.account}`);
  const installation = simulator.apps.install(appOf(simulator, body.app), senderOf(simulator, body, account.id), input);
  return shownInstallation(simulator, installation);
}

/**
 * Takes any of these, and applies them in this order in the name of `by`: `suspended` (boolean), `repositories` ("all"
 * or full names: replaces), `add` and `remove` (full names), and `accept` (true: everything that the App asks for now;
 * or `{permissions, events}`).
 */
export function editInstallation(simulator: Simulator, id: string, body: Json) {
  const { apps } = simulator;
  const known = ["suspended", "repositories", "add", "remove", "accept", "by"];
  const unknown = Object.keys(body).filter((name) => !known.includes(name));
  if (unknown.length > 0 || Object.keys(body).length === 0)
    throw new Refusal(422, `An installation takes ${known.join(", ")}; not ${unknown.join(", ") || "nothing"}`);
  const installation = installationOf(simulator, id);
  const by = senderOf(simulator, body, installation.accountId);
  const { suspended, repositories, add, remove, accept } = body;
  if (typeof suspended === "boolean") apps.suspend(installation, by, suspended);
  if (repositories === "all") apps.choose(installation, by, "all");
  else if (repositories !== undefined) apps.choose(installation, by, repositoriesNamed(simulator, repositories));
  if (add !== undefined || remove !== undefined) {
    const removed = new Set(repositoriesNamed(simulator, remove ?? []));
    const chosen = new Set([...apps.repositoriesOf(installation), ...repositoriesNamed(simulator, add ?? [])]);
    apps.choose(installation, by, [...chosen.difference(removed)]);
  }
  if (accept === true) apps.acceptPermissions(installation, by);
  else if (typeof accept === "object" && accept !== null)
    apps.acceptPermissions(
      installation,
      by,
      trusted<{ permissions?: Permissions; events?: readonly string[] }>(accept),
    );
  return shownInstallation(simulator, installation);
}

export function uninstall(simulator: Simulator, id: string, body: Json): void {
  const installation = installationOf(simulator, id);
  simulator.apps.uninstall(installation, senderOf(simulator, body, installation.accountId));
}

function installationOf({ apps }: Simulator, id: string): Installation {
  const found = apps.installations.get(Number(id));
  if (!found) throw new Refusal(404, `There is no installation ${id}`);
  return found;
}

function repositoriesNamed({ world }: Simulator, names: unknown) {
  if (!Array.isArray(names)) throw new Refusal(422, "Repositories should be an array of full names");
  return names.map((name) => repositoryOf(world, String(name)));
}

/** Who does it: `by` (a login), or the account itself. */
function senderOf({ world }: Simulator, { by }: Json, accountId: number): number {
  if (by === undefined) return accountId;
  const user = world.userByLogin(String(by));
  if (!user) throw new Refusal(422, `There is no account ${by}`);
  return user.id;
}
