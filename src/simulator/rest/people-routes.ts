/** Routes of people and teams. An organisation is named by its login or its id, a team by its slug or its id. */
import type { Answer, Call } from "./call.ts";
import * as people from "./people.ts";
import { inRepository, type Route } from "./router.ts";

function below(path: string, docs: string, run: (call: Call) => Answer): Route[] {
  return ["/orgs/:login", "/organizations/:id"].map((named) => ({
    ...{ method: "GET", pattern: named + path, docs, run },
  }));
}

function ofTeam(path: string, docs: string, run: (call: Call) => Answer): Route[] {
  return [`/orgs/:login/teams/:slug${path}`, `/organizations/:id/team/:team${path}`].map((pattern) => ({
    ...{ method: "GET", pattern, docs, run },
  }));
}

export const PEOPLE_ROUTES: readonly Route[] = [
  inRepository("GET", "/assignees", "issues/assignees#list-assignees", people.listAssignees),
  inRepository("GET", "/assignees/:assignee", "issues/assignees#check-if-a-user-can-be-assigned", people.checkAssignee),
  inRepository(
    "GET",
    "/collaborators",
    "collaborators/collaborators#list-repository-collaborators",
    people.listCollaborators,
  ),
  inRepository(
    "GET",
    "/collaborators/:username",
    "collaborators/collaborators#check-if-a-user-is-a-repository-collaborator",
    people.checkCollaborator,
  ),
  inRepository(
    "GET",
    "/collaborators/:username/permission",
    "collaborators/collaborators#get-repository-permissions-for-a-user",
    people.getPermission,
  ),
  inRepository("GET", "/teams", "repos/repos#list-repository-teams", people.listRepositoryTeams),
  ...below("/members", "orgs/members#list-organization-members", people.listMembers),
  ...below("/members/:username", "orgs/members#check-organization-membership-for-a-user", people.checkMember),
  ...below("/public_members", "orgs/members#list-public-organization-members", people.listPublicMembers),
  ...below(
    "/public_members/:username",
    "orgs/members#check-public-organization-membership-for-a-user",
    people.checkPublicMember,
  ),
  ...below("/teams", "teams/teams#list-teams", people.listTeams),
  ...ofTeam("", "teams/teams#get-a-team-by-name", people.getTeam),
  ...ofTeam("/members", "teams/members#list-team-members", people.listTeamMembers),
  ...ofTeam("/memberships/:username", "teams/members#get-team-membership-for-a-user", people.getTeamMembership),
];
