/** Users, organisations, bots, and the repositories they have. */

import { time } from "../views/view.ts";
import { actsForMember, isOwner, readsOrganizations, seesTeam, teamsOf } from "../world/people.ts";
import type { Repository, Team, User } from "../world/records.ts";
import { type Call, notFound, pathOf, readable, typedError } from "./call.ts";
import { arraySource, connection, type Key } from "./connection.ts";
import type { Fields } from "./resolvers.ts";

type Affiliation = "OWNER" | "COLLABORATOR" | "ORGANIZATION_MEMBER";

interface RepositoriesArguments {
  readonly affiliations?: readonly Affiliation[] | null;
  readonly ownerAffiliations?: readonly Affiliation[] | null;
  readonly privacy?: "PUBLIC" | "PRIVATE" | null;
  readonly visibility?: "PUBLIC" | "PRIVATE" | "INTERNAL" | null;
  readonly isArchived?: boolean | null;
  readonly isFork?: boolean | null;
  readonly isLocked?: boolean | null;
  readonly hasIssuesEnabled?: boolean | null;
  readonly orderBy?: { readonly field: RepositoryOrderField; readonly direction: "ASC" | "DESC" } | null;
}

type RepositoryOrderField = "CREATED_AT" | "UPDATED_AT" | "PUSHED_AT" | "NAME" | "STARGAZERS";

const ORDER_KEYS: Readonly<Record<RepositoryOrderField, (repository: Repository) => Key>> = {
  CREATED_AT: (repository) => repository.createdAt,
  UPDATED_AT: (repository) => repository.updatedAt,
  PUSHED_AT: (repository) => repository.pushedAt,
  NAME: (repository) => repository.name.toLowerCase(),
  STARGAZERS: (repository) => repository.stargazers,
};

/** As in REST: what a token was given by name counts as its account's collaboration. */
function affiliationOf(call: Call, user: User, repository: Repository): Affiliation | undefined {
  if (repository.ownerId === user.id) return "OWNER";
  if (call.world.user(repository.ownerId).memberIds.includes(user.id)) return "ORGANIZATION_MEMBER";
  if (repository.collaborators.has(user.id)) return "COLLABORATOR";
  return user.id === call.viewer.id && call.caller.wasGiven(repository) ? "COLLABORATOR" : undefined;
}

function repositoriesOf(call: Call, user: User, args: RepositoriesArguments): Repository[] {
  const found: Repository[] = [];
  // `affiliations` is about the viewer, `ownerAffiliations` about the account whose repositories these are.
  const ownerAffiliations = args.ownerAffiliations ?? ["OWNER", "COLLABORATOR"];
  for (const repository of call.world.repositories.values()) {
    const own = affiliationOf(call, user, repository);
    if (!own || !ownerAffiliations.includes(own)) continue;
    if (args.affiliations) {
      const viewers = affiliationOf(call, call.viewer, repository);
      if (!viewers || !args.affiliations.includes(viewers)) continue;
    }
    if (args.privacy && (repository.visibility === "public") !== (args.privacy === "PUBLIC")) continue;
    if (args.visibility && repository.visibility.toUpperCase() !== args.visibility) continue;
    if (args.isArchived != null && repository.archived !== args.isArchived) continue;
    if (args.isFork != null && repository.fork !== args.isFork) continue;
    if (args.isLocked != null && repository.disabled !== args.isLocked) continue;
    if (args.hasIssuesEnabled != null && repository.hasIssues !== args.hasIssuesEnabled) continue;
    if (readable(call, repository)) found.push(repository);
  }
  return found;
}

const owner: Fields<User> = {
  repositories: (user, args, call, info) => {
    const rows = repositoriesOf(call, user, args);
    const field: RepositoryOrderField = args.orderBy?.field ?? "CREATED_AT";
    const source = arraySource(rows, {
      keyOf: ORDER_KEYS[field],
      descending: args.orderBy?.direction === "DESC",
      timed: field.endsWith("_AT"),
    });
    const totalDiskUsage = () => rows.reduce((sum, repository) => sum + repository.size, 0);
    return { ...connection(call, info, args, source), totalDiskUsage };
  },
  repository: (user, args, call) => repositoryNamed(call, user.login, args.name, args.followRenames ?? true),
};

/** Throws NOT_FOUND, also for what the caller may not see. */
export function repositoryNamed(call: Call, login: string, name: string, followRenames: boolean): Repository {
  const found = call.world.repositoryByName(login, name);
  const repository = found && (followRenames || !found.moved) ? readable(call, found.repository) : null;
  if (!repository) throw notFound(`a Repository with the name '${login}/${name}'.`);
  return repository;
}

const account: Fields<User> = {
  id: (user, _, call) => call.world.nodeId(user.type, user, undefined, call.view.nextIds),
  databaseId: (user) => user.id,
  avatarUrl: (user, { size }) => `https://avatars.githubusercontent.com/u/${user.id}?${size ? `s=${size}&` : ""}v=4`,
  url: (user, _, call) => page(call, user),
  resourcePath: (user, _, call) => pathOf(call, page(call, user)),
  createdAt: (user) => time(user.createdAt),
  updatedAt: (user) => time(user.updatedAt),
};

function page(call: Call, user: User): string {
  return user.type === "Bot"
    ? `${call.view.htmlUrl}/apps/${user.login.replace("[bot]", "")}`
    : `${call.view.htmlUrl}/${user.login}`;
}

export const accountFields: Readonly<Record<"User" | "Organization" | "Bot" | "Mannequin", Fields<User>>> = {
  User: {
    ...account,
    ...owner,
    isSiteAdmin: (user) => user.siteAdmin,
    isViewer: (user, _, call) => user.id === call.viewer.id,
    email: (user) => user.email ?? "",
    websiteUrl: (user) => user.blog || null,
    twitterUsername: () => null,
  },
  Organization: {
    ...account,
    ...owner,
    description: (user) => user.bio,
    isVerified: () => false,
    viewerIsAMember: (user, _, call) => user.memberIds.includes(call.viewer.id),
    viewerCanAdminister: (user, _, call) => isOwner(call.caller.token, user),
    // What others hear is not confirmed of GitHub: the scope is named in such errors, and Apps without it are refused.
    teams: (user, args, call, info) => {
      const { token } = call.caller;
      const isMember = actsForMember(token, user);
      if (!isMember && !(token && readsOrganizations(token)))
        throw typedError("INSUFFICIENT_SCOPES", "Your token has not been granted the required scopes: read:org");
      const teams = isMember ? teamsOf(call.world, user).filter((team) => seesTeam(call.world, token, team)) : [];
      return connection(call, info, args, arraySource(teams, { keyOf: ({ slug }) => slug }));
    },
    websiteUrl: (user) => user.blog || null,
  },
  // REST shows `name[bot]`, GraphQL the bare name.
  Bot: { ...account, login: (user) => user.login.replace("[bot]", "") },
  Mannequin: account,
};

export const teamFields: Fields<Team> = {
  id: (team, _, call) => call.world.nodeId("Team", team, undefined, call.view.nextIds),
  databaseId: (team) => team.id,
};
