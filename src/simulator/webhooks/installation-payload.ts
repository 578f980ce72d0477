import { briefRepository, installationView } from "../views/app.ts";
import { simpleUser } from "../views/user.ts";
import type { Json, View } from "../views/view.ts";
import type { InstallationEvent } from "../world/apps.ts";

/** `installation` and `installation_repositories`: what an App hears without subscribing. */
export function installationPayload(view: View, event: InstallationEvent): Json {
  const { installation, repositories, added = [], removed = [] } = event;
  const list = (rows: InstallationEvent["added"] = []) => rows.map((one) => briefRepository(view, one));
  return {
    action: event.action,
    installation: installationView(view, installation),
    ...(event.event === "installation_repositories"
      ? {
          repository_selection: installation.repositoryIds === "all" ? "all" : "selected",
          repositories_added: list(added),
          repositories_removed: list(removed),
        }
      : {}),
    ...(repositories ? { repositories: list(repositories) } : {}),
    requester: null,
    sender: simpleUser(view, event.senderId),
  };
}
