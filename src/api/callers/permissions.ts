import type { Caller, User } from "./caller.ts";
import { PERMISSION_LEVELS, type RepositoryPermission } from "./upstream-rights.ts";

/** Whether a caller's write to this repository is passed on. Upstream itself judges callers with a token of its own. */
export function mayWrite(caller: User, repositoryId: number): boolean {
  if (caller.by.of === "upstream") return true;
  const { canWrite, repositories } = caller.by.token;
  return canWrite && (repositories === "all" || repositories.includes(repositoryId));
}

/** What upstream says to a token that was not given what a request takes. */
export function notAccessible(caller: Caller): string {
  const isApps = caller.kind === "user" && caller.by.of === "upstream" && caller.by.known.isApps;
  return `Resource not accessible by ${isApps ? "integration" : "personal access token"}`;
}

/** Whether the caller may do in every repository what the mirror's own token may. */
export function hasMirrorsRights(caller: Caller): boolean {
  return (
    caller.kind === "user" &&
    caller.by.of === "own" &&
    caller.by.token.canWrite &&
    caller.by.token.repositories === "all"
  );
}

/** What a repository allows a caller, as REST has it. */
export interface Permissions {
  admin: boolean;
  maintain: boolean;
  push: boolean;
  triage: boolean;
  pull: boolean;
}

/**
 * The caller's permissions in a repository through this mirror; null if unknown. `mirrors` is what upstream permits the
 * mirror's own token. Callers with our own tokens act through that token.
 */
export function permissionsOf<Mirrors extends object>(
  caller: Caller,
  repositoryId: number,
  mirrors: Mirrors | null,
): Mirrors | Permissions | null {
  if (caller.kind === "anonymous") return null;
  if (caller.by.of === "own") return mayWrite(caller, repositoryId) ? mirrors : permissions("READ");
  const known = caller.by.known.rights.get(repositoryId);
  return known === undefined ? null : permissions(known.permission);
}

function permissions(level: RepositoryPermission): Permissions {
  const rank = PERMISSION_LEVELS.indexOf(level);
  return { admin: rank >= 4, maintain: rank >= 3, push: rank >= 2, triage: rank >= 1, pull: true };
}
