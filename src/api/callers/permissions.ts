import { isRead } from "../../http/reply.ts";
import type { HeldReleases } from "../../mirror/read/releases.ts";
import { type Right, type Sight, sees } from "../../mirror/read/repositories.ts";
import type { Closeness } from "../../mirror/render/public-keys.ts";
import type { Searcher } from "../../mirror/search/names.ts";
import { type RepositoryCall, requireUser } from "../call.ts";
import { ApiFault } from "../dialect/fault.ts";
import type { ApiToken, Caller, User } from "./caller.ts";
import { mayWriteKind, writesAll } from "./kinds.ts";
import { PERMISSION_LEVELS, type RepositoryPermission } from "./upstream-rights.ts";

/**
 * Whether a caller's write to this repository is sent to upstream, if it takes this right. Upstream itself judges callers with a
 * token of its own.
 */
export function mayWrite(caller: User, repositoryId: number, right: Right): boolean {
  if (caller.by.of === "upstream") return true;
  const { token } = caller.by;
  return mayWriteKind(token.kinds, right) && isTokenFor(token, repositoryId);
}

/** Whether one of our own tokens may register hooks of a repository; null: of a whole organization. */
export function mayHook(token: ApiToken, repositoryId: number | null): boolean {
  return token.kinds.hooks && (repositoryId === null ? token.repositories === "all" : isTokenFor(token, repositoryId));
}

function isTokenFor({ repositories }: ApiToken, repositoryId: number): boolean {
  return repositories === "all" || repositories.includes(repositoryId);
}

/** A right to resources that belong to commits. */
export type CodeRight = "checks" | "statuses" | "contents";

/** Whether upstream is known to show the caller this resource of a repository's commits. */
export function readsCode(
  caller: Caller,
  sight: Sight,
  repository: { id: number; isPrivate: boolean },
  right: CodeRight,
): boolean {
  return isCodeSightKnown(caller) && sees(sight, repository, right);
}

/** Whether it is known which resources of commits upstream shows the caller. */
function isCodeSightKnown(caller: Caller): boolean {
  return caller.kind === "anonymous" || caller.by.of === "own" || caller.by.known.code !== "unknown";
}

/** The caller as a search takes them. */
export function searcherOf({ sight, caller }: { sight: Sight; caller: Caller }): Searcher {
  return { sight, userId: caller.kind === "user" ? caller.userId : null, readsCode: isCodeSightKnown(caller) };
}

/** Upstream's message for a token that lacks a permission which the request needs. */
export function notAccessible(caller: Caller): string {
  const isApps = caller.kind === "user" && caller.by.of === "upstream" && caller.by.known.isApps;
  return `Resource not accessible by ${isApps ? "integration" : "personal access token"}`;
}

/** Whether the caller may do in every repository what the mirror's own token may. */
export function hasMirrorsRights(caller: Caller): boolean {
  return (
    caller.kind === "user" &&
    caller.by.of === "own" &&
    writesAll(caller.by.token.kinds) &&
    caller.by.token.repositories === "all"
  );
}

/**
 * The rights that upstream gives a caller in public repositories, as far as it was asked: see `learnPublicRights`. An answer that
 * rests on one is shown to those alone who have the same right there.
 */
export type PublicRightsLearnt = ReadonlyMap<number, RepositoryPermission>;

/** Learns what upstream permits the caller in the public ones of these repositories, if their own token can ask. */
export async function learnPublicRights(
  { caller, publicRights }: { caller: Caller; publicRights: Map<number, RepositoryPermission> },
  repositories: readonly { id: number; nodeId: string | null; isPrivate: boolean }[],
): Promise<void> {
  if (caller.kind === "anonymous" || caller.by.of === "own") return;
  const asked = repositories.flatMap(({ id, nodeId, isPrivate }) =>
    isPrivate || nodeId === null || publicRights.has(id) ? [] : [{ id, nodeId }],
  );
  if (asked.length === 0) return;
  for (const [id, level] of await caller.by.publicRights(asked)) publicRights.set(id, level);
}

/** How close a caller is to a repository. To a public one they are a stranger, unless `learnt` says more. */
export function closenessOf(caller: Caller, repositoryId: number, learnt?: PublicRightsLearnt): Closeness {
  if (caller.kind === "anonymous") return "stranger";
  if (caller.by.of === "own") {
    const { token } = caller.by;
    if (repositoryId === 0 || !isTokenFor(token, repositoryId)) return "stranger";
    return writesAll(token.kinds) ? "mirror" : "reader";
  }
  const known = caller.by.known.rights.get(repositoryId);
  if (known) return permissions(known.permission).push ? "writer" : "reader";
  const { push, triage } = permissions(learnt?.get(repositoryId) ?? "READ");
  return push ? "writer" : triage ? "reader" : "stranger";
}

/**
 * Whether a caller is shown drafts of releases, as those who may push are. Null: only upstream can say, or it has
 * drafts that the mirror is not shown. Our own tokens change no release, so they see only published ones.
 */
export function seesDrafts(
  caller: Caller,
  { id, isPrivate }: { id: number; isPrivate: boolean },
  { showsDrafts, hasDrafts }: HeldReleases,
): boolean | null {
  if (caller.kind === "anonymous" || caller.by.of === "own") return false;
  // Upstream is not asked here who may push to a public repository.
  if (!isPrivate) return showsDrafts && !hasDrafts ? false : null;
  if (closenessOf(caller, id) !== "writer") return false;
  return showsDrafts ? true : null;
}

/** A caller's rights in a repository, as REST has them. */
export interface Permissions {
  admin: boolean;
  maintain: boolean;
  push: boolean;
  triage: boolean;
  pull: boolean;
}

/**
 * The caller's permissions in a repository through this mirror; null if unknown. `mirrors` is what upstream permits the
 * mirror's own token. Callers with our own tokens act through that token, if they may write all kinds.
 */
export function permissionsOf<Mirrors extends object>(
  caller: Caller,
  repositoryId: number,
  mirrors: Mirrors | null,
  learnt?: PublicRightsLearnt,
): Mirrors | Permissions | null {
  if (caller.kind === "anonymous") return null;
  if (caller.by.of === "own") {
    const { token } = caller.by;
    return writesAll(token.kinds) && isTokenFor(token, repositoryId) ? mirrors : permissions("READ");
  }
  const level = caller.by.known.rights.get(repositoryId)?.permission ?? learnt?.get(repositoryId);
  return level === undefined ? null : permissions(level);
}

function permissions(level: RepositoryPermission): Permissions {
  const rank = PERMISSION_LEVELS.indexOf(level);
  return { admin: rank >= 4, maintain: rank >= 3, push: rank >= 2, triage: rank >= 1, pull: true };
}

/**
 * The service's permissions for each right (GitHub docs, "Permissions required for fine-grained personal access
 * tokens"). One of them suffices.
 */
const PERMISSIONS_OF_RIGHT: Readonly<Record<Right, readonly string[]>> = {
  metadata: ["metadata"],
  issues: ["issues"],
  pulls: ["pull_requests"],
  "issues or pulls": ["issues", "pull_requests"],
  checks: ["checks"],
  statuses: ["statuses"],
  contents: ["contents"],
};

/** Requires the right. @throws ApiFault 403 that names the permissions that the operation takes */
export function requireRight(call: RepositoryCall, right: Right): void {
  if (!sees(call.sight, call.repository, right)) throw missingRight(call);
}

function missingRight({ caller, takes, method }: RepositoryCall): ApiFault {
  const level = isRead(method) ? "read" : "write";
  const accepted = PERMISSIONS_OF_RIGHT[takes].map((permission) => `${permission}=${level}`).join("; ");
  return new ApiFault(403, notAccessible(caller), { headers: { "X-Accepted-GitHub-Permissions": accepted } });
}

/**
 * The caller, if what they write may be sent to upstream. If the operation takes one of two rights, `subject` tells
 * which one. Null: that is not known, so the write takes both.
 * @throws ApiFault 401 for anonymous callers, 403 as `requireRight`
 */
export async function requireWriter(call: RepositoryCall, subject: () => Promise<Right | null>): Promise<User> {
  const user = requireUser(call);
  const may = (right: Right) => mayWrite(user, call.repository.id, right);
  if (!may(call.takes)) throw missingRight(call);
  if (call.takes !== "issues or pulls" || (may("issues") && may("pulls"))) return user;
  const right = await subject();
  if (right === null || !may(right)) throw missingRight(call);
  return user;
}

/**
 * What the caller sees in lists that hold issues and pull requests. Upstream was seen to refuse a pull request to a token
 * that was given issues alone. Whether its lists show one to such a token is not known; ours leave it out.
 */
export function seenInLists({ sight, repository }: RepositoryCall): "issues" | "pulls" | "both" {
  if (!sees(sight, repository, "pulls")) return "issues";
  return sees(sight, repository, "issues") ? "both" : "pulls";
}
