/**
 * Who belongs to organisations and teams, who works in a repository, and who is told of it. GitHub docs: "Collaborators",
 * "Organization members", "Teams". What they leave open is decided strictly here, and says so.
 */
import { GHOST_ID, type Repository, type RepositoryRole, type Team, type TeamRole, type User } from "./records.ts";
import { hasScopes, isIntegration, type Token } from "./tokens.ts";
import type { World } from "./world.ts";

const RANK: readonly RepositoryRole[] = ["pull", "triage", "push", "maintain", "admin"];

/** Whether the token acts for a member. That needs the scope `read:org`; an App's is nobody's. */
export function actsForMember(token: Token | null, organization: User): boolean {
  if (token === null || isIntegration(token)) return false;
  return isOwner(token, organization) || (organization.memberIds.includes(token.userId) && readsOrganizations(token));
}

/** A token for all that there is may do what the organisation's owners may. */
export function isOwner(token: Token | null, organization: User): boolean {
  if (token === null) return false;
  if (token.repositoryIds === "all" && token.ownerId === null) return true;
  return organization.ownerIds.includes(token.userId) && readsOrganizations(token);
}

/** GitHub docs, "Scopes for OAuth apps". */
export function readsOrganizations(token: Token): boolean {
  return !hasScopes(token) || token.scopes.some((scope) => /^(read|write|admin):org$/.test(scope));
}

export function seesTeam(world: World, token: Token | null, team: Team): boolean {
  const organization = world.user(team.organizationId);
  if (!actsForMember(token, organization)) return false;
  return team.privacy === "closed" || isOwner(token, organization) || team.members.has(token?.userId ?? 0);
}

export function teamsOf(world: World, organization: User): Team[] {
  return [...world.teams.values()].filter((team) => team.organizationId === organization.id);
}

/** The team and all below it: their people count as the team's. */
function withChildren(world: World, team: Team): Team[] {
  const children = [...world.teams.values()].filter(({ parentId }) => parentId === team.id);
  return [team, ...children.flatMap((child) => withChildren(world, child))];
}

export function peopleOfTeam(world: World, team: Team): { user: User; role: TeamRole; inherited: boolean }[] {
  const ids = new Set(withChildren(world, team).flatMap(({ members }) => [...members.keys()]));
  const owners = world.user(team.organizationId).ownerIds;
  return present(world, ids).map((user) => ({
    user,
    // GitHub docs: "The role for organization owners is set to maintainer."
    role: owners.includes(user.id) ? "maintainer" : (team.members.get(user.id) ?? "member"),
    inherited: !team.members.has(user.id),
  }));
}

/** Accounts that exist, by login. */
export function present(world: World, ids: Iterable<number>): User[] {
  return [...ids]
    .flatMap((id) => (id === GHOST_ID ? [] : (world.users.get(id) ?? [])))
    .sort((a, b) => (a.login.toLowerCase() < b.login.toLowerCase() ? -1 : 1));
}

/** Everybody with a role in the repository, by login, from all sources of it. */
export function collaboratorsOf(world: World, repository: Repository): { user: User; role: RepositoryRole }[] {
  const owner = world.user(repository.ownerId);
  const roles = new Map<number, RepositoryRole>();
  const give = (id: number, role: RepositoryRole) => {
    const known = roles.get(id);
    if (known === undefined || RANK.indexOf(role) > RANK.indexOf(known)) roles.set(id, role);
  };
  if (owner.type === "User") give(owner.id, "admin");
  for (const id of owner.memberIds) give(id, "admin");
  for (const [id, role] of repository.collaborators) give(id, role);
  for (const team of world.teams.values()) {
    const role = team.repositories.get(repository.id);
    if (role) for (const { user } of peopleOfTeam(world, team)) give(user.id, role);
  }
  return present(world, roles.keys())
    .filter(({ type }) => type === "User")
    .map((user) => ({ user, role: roles.get(user.id) ?? "pull" }));
}
