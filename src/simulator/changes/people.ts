/** People join and leave repositories, organisations and teams. */
import type { Repository, RepositoryRole, Team, TeamRole, User } from "../world/records.ts";
import type { World } from "../world/world.ts";

/** Gives or takes a role in the repository. Tells `member`. */
export function setCollaborator(
  world: World,
  by: number,
  repository: Repository,
  userId: number,
  role: RepositoryRole | null,
): void {
  const was = repository.collaborators.get(userId);
  if (role === null) repository.collaborators.delete(userId);
  else repository.collaborators.set(userId, role);
  const action = role === null ? "removed" : was === undefined ? "added" : "edited";
  const changes = role === null ? {} : { changes: { permission: { ...(was && { from: was }), to: role } } };
  world.emit({ event: "member", action, repository, senderId: by, memberId: userId, ...changes });
}

interface NewTeam {
  readonly organization: User;
  readonly name: string;
  readonly privacy?: Team["privacy"];
  readonly parentId?: number;
  readonly members?: Iterable<readonly [number, TeamRole]>;
}

/** Tells nobody: only the hooks of organisations hear of it, and these are not modelled. */
export function addTeam(
  world: World,
  { organization, name, privacy = "closed", parentId, members = [] }: NewTeam,
): Team {
  const at = world.now();
  const team: Team = {
    id: world.nextId("team"),
    organizationId: organization.id,
    slug: slugOf(name),
    name,
    description: null,
    privacy,
    parentId: parentId ?? null,
    members: new Map(members),
    repositories: new Map(),
    createdAt: at,
    updatedAt: at,
  };
  world.teams.set(team.id, team);
  return team;
}

export function renameTeam(world: World, team: Team, name: string): void {
  team.name = name;
  team.slug = slugOf(name);
  team.updatedAt = world.now();
}

function slugOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, "-");
}

/** Gives the team a role in the repository. Tells `team_add`. */
export function giveTeam(world: World, by: number, team: Team, repository: Repository, role: RepositoryRole): void {
  team.repositories.set(repository.id, role);
  world.emit({ event: "team_add", action: null, repository, senderId: by, team });
}

/** They leave the organisation and all its teams. Nobody hears of it here, as of a webhook that was lost. */
export function leaveOrganization(world: World, organization: User, userId: number): void {
  const without = (ids: readonly number[]) => ids.filter((id) => id !== userId);
  organization.memberIds = without(organization.memberIds);
  organization.ownerIds = without(organization.ownerIds);
  organization.publicMemberIds = without(organization.publicMemberIds);
  for (const team of world.teams.values()) if (team.organizationId === organization.id) team.members.delete(userId);
}
