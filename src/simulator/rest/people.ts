/** Who works in a repository, and who belongs to organisations and teams. */
import { collaboratorView, fullTeam, permissionView, teamView } from "../views/team.ts";
import { simpleUser } from "../views/user.ts";
import { seesCollaborators } from "../world/access.ts";
import { actsForMember, collaboratorsOf, peopleOfTeam, present, seesTeam, teamsOf } from "../world/people.ts";
import type { Team, User } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { findOrganization } from "./accounts.ts";
import { type Answer, type Call, NO_CONTENT, notFound, ok, type RepositoryCall } from "./call.ts";
import { paged } from "./pagination.ts";

/** Everybody with access counts as assignable; GitHub does not say who does. */
export function listAssignees(call: RepositoryCall): Answer {
  const rows = collaboratorsOf(call.world, call.repository);
  return paged(call, { rows, size: rows.length }, ({ user }) => simpleUser(call.view, user.id));
}

export function checkAssignee(call: RepositoryCall): Answer {
  const id = call.world.userByLogin(call.params.assignee ?? "")?.id;
  if (!collaboratorsOf(call.world, call.repository).some(({ user }) => user.id === id)) throw notFound();
  return NO_CONTENT;
}

/** The messages are as clients recorded them: yegor256/rultor#1407, dsoftwareinc/ghactions-manager#271. */
function needCollaborators({ world, token, repository }: RepositoryCall, what: string): void {
  if (!token) throw new Refusal(401, "Requires authentication");
  if (!seesCollaborators(world, token, repository)) throw new Refusal(403, `Must have push access to view ${what}.`);
}

export function listCollaborators(call: RepositoryCall): Answer {
  needCollaborators(call, "repository collaborators");
  const { query, world, repository } = call;
  const direct = (id: number) => repository.collaborators.has(id);
  const outside = (id: number) => direct(id) && !world.user(repository.ownerId).memberIds.includes(id);
  const of = query.get("affiliation") === "direct" ? direct : query.get("affiliation") === "outside" ? outside : null;
  const rows = collaboratorsOf(world, repository).filter(({ user }) => of === null || of(user.id));
  return paged(call, { rows, size: rows.length }, ({ user, role }) => collaboratorView(call.view, user.id, role));
}

function named({ world, params }: Call): User {
  const user = world.userByLogin(params.username ?? "");
  if (!user) throw notFound();
  return user;
}

export function checkCollaborator(call: RepositoryCall): Answer {
  needCollaborators(call, "repository collaborators");
  const { id } = named(call);
  if (!collaboratorsOf(call.world, call.repository).some(({ user }) => user.id === id)) throw notFound();
  return NO_CONTENT;
}

export function getPermission(call: RepositoryCall): Answer {
  needCollaborators(call, "collaborator permission");
  const { id } = named(call);
  const found = collaboratorsOf(call.world, call.repository).find(({ user }) => user.id === id);
  const open = call.repository.visibility === "public" ? "pull" : null;
  return ok(permissionView(call.view, id, found?.role ?? open));
}

/** GitHub does not say who may ask. Here it takes what reading the teams of the organisation takes. */
export function listRepositoryTeams(call: RepositoryCall): Answer {
  const { world, token, repository, view } = call;
  const owner = world.user(repository.ownerId);
  if (owner.type === "Organization" && !actsForMember(token, owner)) throw notFound();
  const rows = teamsOf(world, owner).filter(
    (team) => team.repositories.has(repository.id) && seesTeam(world, token, team),
  );
  return paged(call, { rows, size: rows.length }, (team) => teamView(view, team, repository));
}

export function listMembers(call: Call): Answer {
  const organization = findOrganization(call);
  const { world, token, query, view } = call;
  const isInside = actsForMember(token, organization);
  const role = query.get("role");
  const ids = isInside ? organization.memberIds : organization.publicMemberIds;
  const rows = present(world, ids).filter(
    ({ id }) => (role !== "admin" && role !== "member") || organization.ownerIds.includes(id) === (role === "admin"),
  );
  return paged(call, { rows, size: rows.length }, ({ id }) => simpleUser(view, id));
}

export function listPublicMembers(call: Call): Answer {
  const { world, view } = call;
  const rows = present(world, findOrganization(call).publicMemberIds);
  return paged(call, { rows, size: rows.length }, ({ id }) => simpleUser(view, id));
}

export function checkMember(call: Call): Answer {
  const organization = findOrganization(call);
  const { view, params, token } = call;
  if (!actsForMember(token, organization)) {
    const location = `${view.apiUrl}/organizations/${organization.id}/public_members/${params.username}`;
    return { status: 302, headers: { Location: location } };
  }
  if (!organization.memberIds.includes(named(call).id)) throw notFound();
  return NO_CONTENT;
}

export function checkPublicMember(call: Call): Answer {
  if (!findOrganization(call).publicMemberIds.includes(named(call).id)) throw notFound();
  return NO_CONTENT;
}

/** The organisation, to those who may read its teams. Everybody else is refused: GitHub's OpenAPI has a 403 here. */
function needTeams(call: Call): User {
  const organization = findOrganization(call);
  if (!call.token) throw new Refusal(401, "Requires authentication");
  if (!actsForMember(call.token, organization)) throw new Refusal(403, "Must be a member of the organization.");
  return organization;
}

export function listTeams(call: Call): Answer {
  const { world, token, view } = call;
  const rows = teamsOf(world, needTeams(call)).filter((team) => seesTeam(world, token, team));
  return paged(call, { rows, size: rows.length }, (team) => teamView(view, team));
}

function teamNamed(call: Call): Team {
  const { world, params, token } = call;
  if (!token) throw new Refusal(401, "Requires authentication");
  const team = teamsOf(world, findOrganization(call)).find(({ id, slug }) =>
    params.team === undefined ? slug === params.slug : id === Number(params.team),
  );
  if (!team || !seesTeam(world, token, team)) throw notFound();
  return team;
}

export function getTeam(call: Call): Answer {
  return ok(fullTeam(call.view, teamNamed(call)));
}

export function listTeamMembers(call: Call): Answer {
  const role = call.query.get("role");
  const rows = peopleOfTeam(call.world, teamNamed(call)).filter(
    (one) => (role !== "member" && role !== "maintainer") || one.role === role,
  );
  return paged(call, { rows, size: rows.length }, ({ user, role: is, inherited }) => ({
    ...simpleUser(call.view, user.id),
    role: is,
    inherited,
  }));
}

export function getTeamMembership(call: Call): Answer {
  const team = teamNamed(call);
  const { id, login } = named(call);
  const found = peopleOfTeam(call.world, team).find(({ user }) => user.id === id);
  if (!found) throw notFound();
  const url = `${call.view.apiUrl}/organizations/${team.organizationId}/team/${team.id}/memberships/${login}`;
  return ok({ state: "active", role: found.role, url });
}
