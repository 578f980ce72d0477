/**
 * What a token may do in a repository, by kind of resource. REST, GraphQL and search all decide by this rule, and tests
 * may ask it. It judges the repository as it stands now, even where a lagging replica still shows an older one.
 */
import { covers, type Installation } from "./apps.ts";
import { actsForMember, peopleOfTeam } from "./people.ts";
import { grants, has, type Needed, type Permissions, within } from "./permissions.ts";
import type { Issue, Repository, RepositoryRole } from "./records.ts";
import { type Grant, hasScopes, isIntegration, mayPush, type Token } from "./tokens.ts";
import type { World } from "./world.ts";

/** The permission that an issue or a pull request takes. */
export type Kind = "issues" | "pull_requests";

/** The permissions that make an access. */
type Reached = Kind | "checks" | "statuses" | "contents" | "deployments" | "actions";

export type Reach = "none" | "read" | "write";

/**
 * "write": the service takes changes of this kind from the token, such as a new issue. The account's role can narrow
 * that further. Repositories that are archived or taken down refuse everybody alike and are not considered.
 */
export interface Access {
  readonly metadata: boolean;
  readonly issues: Reach;
  readonly pulls: Reach;
  readonly checks: Reach;
  readonly statuses: Reach;
  readonly contents: Reach;
  readonly deployments: Reach;
  readonly actions: Reach;
  /** Whether drafts of releases are shown. */
  readonly drafts: boolean;
}

export const NO_ACCESS: Access = {
  metadata: false,
  issues: "none",
  pulls: "none",
  checks: "none",
  statuses: "none",
  contents: "none",
  deployments: "none",
  actions: "none",
  drafts: false,
};

/** Null is a caller without a token. */
export function accessOf(world: World, token: Token | null, repository: Repository): Access {
  const reach = (permission: Reached): Reach => {
    if (allows(world, token, repository, [{ permission, level: "write" }])) return "write";
    return allows(world, token, repository, [{ permission, level: "read" }]) ? "read" : "none";
  };
  const role = roleOf(world, token, repository);
  const contents = reach("contents");
  return {
    metadata: role !== undefined,
    issues: reach("issues"),
    pulls: reach("pull_requests"),
    checks: reach("checks"),
    statuses: reach("statuses"),
    contents,
    deployments: reach("deployments"),
    actions: reach("actions"),
    drafts: contents === "write" && role !== undefined && RANK.indexOf(role) >= RANK.indexOf("push"),
  };
}

/**
 * Whether any one of `needed` is within the token's permissions or scopes. Its account's role can still narrow a write.
 */
export function allows(world: World, token: Token | null, repository: Repository, needed: Needed): boolean {
  const now = world.repositories.get(repository.id);
  if (!now || roleOf(world, token, now, needed) === undefined) return false;
  if (now.visibility === "public" && needed.some(isPublicData)) return true;
  if (!token) return false;
  // GitHub: what a fine-grained token may be given has no checks in it.
  if (token.kind === "fine-grained" && needed.every(({ permission }) => permission === "checks")) return false;
  const reads = needed.some(({ level }) => level === "read");
  if (!reads && !token.write) return false;
  const permissions = permissionsOf(token, now);
  if (permissions) return ownRole(world, token, now) !== undefined && grants(permissions, needed);
  return reads || !hasScopes(token) || writesByScope(token, now, needed);
}

/**
 * Public data is served without the permission. Unconfirmed: GitHub's page for new fine-grained tokens says "public
 * repositories" of them, and the docs of single routes say it of Apps. GraphQL is taken to do the same as REST.
 */
function isPublicData({ permission, level }: Needed[number]): boolean {
  return level === "read" && permission !== "repository_hooks";
}

/** Null: scopes and roles alone decide. */
function permissionsOf(token: Token, repository: Repository): Permissions | null {
  const { grant, installations, permissions } = token;
  if (grant) return within(grant.permissions, grant.installation.permissions);
  return installations ? (installationOf(token, repository)?.permissions ?? {}) : permissions;
}

/** Of an App's user token: where its App may work on the repository. */
function installationOf({ installations }: Token, repository: Repository): Installation | undefined {
  return installations?.().find((one) => one.suspendedAt === null && covers(one, repository));
}

/**
 * What a caller is to a repository: undefined when it may not even know of it. A narrow scope may open a private one
 * for what is `needed` alone.
 */
export function roleOf(
  world: World,
  token: Token | null,
  repository: Repository,
  needed: Needed = [],
): RepositoryRole | undefined {
  const now = world.repositories.get(repository.id);
  if (!now || (token?.grant && token.grant.installation.suspendedAt !== null)) return undefined;
  const open = now.visibility === "public" ? "pull" : undefined;
  const role = (token && ownRole(world, token, now, needed)) ?? open;
  if (!token || !role) return role;
  return token.write || RANK.indexOf(role) < RANK.indexOf("push") ? role : "pull";
}

const RANK: readonly RepositoryRole[] = ["pull", "triage", "push", "maintain", "admin"];

/** Undefined when the token was not given the repository: then it has no more than anybody. */
function ownRole(world: World, token: Token, repository: Repository, needed: Needed = []): RepositoryRole | undefined {
  const { visibility } = repository;
  if (hasScopes(token) && visibility !== "public" && !token.scopes.includes("repo") && !hasNarrowScope(token, needed))
    return undefined;
  if (wasGiven(token, repository)) {
    const permissions = isIntegration(token) ? permissionsOf(token, repository) : null;
    // A token that was given a repository may work in it, apart from its account's rights.
    return permissions ? roleOfPermissions(permissions) : "admin";
  }
  if (token.installations && !installationOf(token, repository)) return undefined;
  if (token.grant || token.repositoryIds !== "account" || !isOfOwner(token, repository)) return undefined;
  return roleOfUser(world, token.userId, repository);
}

/** Whether the repository was given to the token itself, apart from its account's rights. */
export function wasGiven(token: Token, repository: Repository): boolean {
  if (token.grant) return granted(token.grant, repository);
  const { repositoryIds, installations } = token;
  if (repositoryIds === "account" || installations || !isOfOwner(token, repository)) return false;
  return repositoryIds === "all" || repositoryIds.has(repository.id);
}

/** A fine-grained token has one resource owner: what is transferred from it is out of sight. */
function isOfOwner({ ownerId }: Token, repository: Repository): boolean {
  return ownerId === null || repository.ownerId === ownerId;
}

/** Whether the token's installation, and the token itself, were given the repository. */
function granted({ installation, repositoryIds }: Grant, repository: Repository): boolean {
  return covers(installation, repository) && (repositoryIds === null || repositoryIds.has(repository.id));
}

/** How the permissions of an App look in the words of roles. */
function roleOfPermissions(permissions: Permissions): RepositoryRole {
  if (has(permissions, "administration", "write")) return "admin";
  if (has(permissions, "contents", "write")) return "push";
  return has(permissions, "issues", "write") || has(permissions, "pull_requests", "write") ? "triage" : "pull";
}

function roleOfUser(world: World, userId: number, repository: Repository): RepositoryRole | undefined {
  if (repository.ownerId === userId) return "admin";
  if (world.user(repository.ownerId).memberIds.includes(userId)) return "admin";
  const roles = [repository.collaborators.get(userId)];
  for (const team of world.teams.values()) {
    const role = team.repositories.get(repository.id);
    if (role && peopleOfTeam(world, team).some(({ user }) => user.id === userId)) roles.push(role);
  }
  return RANK.findLast((role) => roles.includes(role));
}

/** GitHub docs, "List repository collaborators": it takes the right to push, and to be a member of the organisation. */
export function seesCollaborators(world: World, token: Token | null, repository: Repository): boolean {
  if (token === null || !mayPush(roleOf(world, token, repository))) return false;
  const owner = world.user(repository.ownerId);
  return owner.type === "User" || wasGiven(token, repository) || actsForMember(token, owner);
}

// GitHub docs: "Scopes for OAuth apps". No scope reads public data alone.
function writesByScope(token: Token, { visibility }: Repository, needed: Needed): boolean {
  const { scopes } = token;
  if (scopes.includes("repo") || (visibility === "public" && scopes.includes("public_repo"))) return true;
  return hasNarrowScope(token, needed);
}

/**
 * GitHub docs: `repo_deployment` is for deployments in public and private repositories, "without granting access to the
 * code".
 */
function hasNarrowScope({ scopes }: Token, needed: Needed): boolean {
  return scopes.includes("repo_deployment") && needed.some(({ permission }) => permission === "deployments");
}

export function kindOf(issue: Issue): Kind {
  return issue.pull ? "pull_requests" : "issues";
}
