import { peopleOfTeam } from "../world/people.ts";
import type { Repository, RepositoryRole, Team } from "../world/records.ts";
import { organization as organizationView, simpleUser } from "./user.ts";
import { type Json, time, type View } from "./view.ts";

const RANK: readonly RepositoryRole[] = ["pull", "triage", "push", "maintain", "admin"];
const ROLE_NAMES: Readonly<Record<RepositoryRole, string>> = {
  admin: "admin",
  maintain: "maintain",
  push: "write",
  triage: "triage",
  pull: "read",
};

function permissionsOf(role: RepositoryRole): Json {
  const rank = RANK.indexOf(role);
  return { admin: rank >= 4, maintain: rank >= 3, push: rank >= 2, triage: rank >= 1, pull: true };
}

/** collaborator: whose permissions are those of the person, and not of the reader. */
export function collaboratorView(view: View, id: number, role: RepositoryRole): Json {
  return { ...simpleUser(view, id), permissions: permissionsOf(role), role_name: ROLE_NAMES[role] };
}

/** repository-collaborator-permission. Null: the person has no access. */
export function permissionView(view: View, id: number, role: RepositoryRole | null): Json {
  const none = { admin: false, maintain: false, push: false, triage: false, pull: false };
  const legacy = role === null ? "none" : role === "admin" ? "admin" : RANK.indexOf(role) >= 2 ? "write" : "read";
  const user =
    role === null
      ? { ...simpleUser(view, id), permissions: none, role_name: "none" }
      : collaboratorView(view, id, role);
  return { permission: legacy, user, role_name: role === null ? "none" : ROLE_NAMES[role] };
}

/** team-simple. */
function teamSimple(view: View, team: Team): Json {
  const url = `${view.apiUrl}/organizations/${team.organizationId}/team/${team.id}`;
  const organization = view.world.user(team.organizationId);
  return {
    name: team.name,
    id: team.id,
    node_id: view.world.nodeId("Team", team, undefined, view.nextIds),
    slug: team.slug,
    description: team.description,
    privacy: team.privacy,
    notification_setting: "notifications_enabled",
    url,
    html_url: `${view.htmlUrl}/orgs/${organization.login}/teams/${team.slug}`,
    members_url: `${url}/members{/member}`,
    repositories_url: `${url}/repos`,
    type: "organization",
    organization_id: team.organizationId,
    permission: "pull",
  };
}

/** team, as in lists. `repository`: the one whose teams are listed. */
export function teamView(view: View, team: Team, repository: Repository | null = null): Json {
  const parent = team.parentId === null ? undefined : view.world.teams.get(team.parentId);
  const role = repository && team.repositories.get(repository.id);
  return {
    ...teamSimple(view, team),
    ...(role ? { permission: role, permissions: permissionsOf(role) } : {}),
    parent: parent ? teamSimple(view, parent) : null,
  };
}

/** team-full: the team alone. */
export function fullTeam(view: View, team: Team): Json {
  return {
    ...teamView(view, team),
    created_at: time(team.createdAt),
    updated_at: time(team.updatedAt),
    members_count: peopleOfTeam(view.world, team).length,
    repos_count: team.repositories.size,
    organization: organizationView(view, view.world.user(team.organizationId)),
  };
}
