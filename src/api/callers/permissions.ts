import type { Config } from "../../config.ts";
import { isRead } from "../../http/reply.ts";
import type { Fields } from "../../json.ts";
import { CODE_RIGHTS, type CodeRight, forCode, type Right } from "../../kinds/contract/rights.ts";
import type { AccessLevel } from "../../mirror/documents/documents.ts";
import type { HeldReleases } from "../../mirror/read/releases.ts";
import { type AccessScope, sees } from "../../mirror/read/repositories.ts";
import type { Searcher } from "../../mirror/search/names.ts";
import type { Forward } from "../../upstream/client/as-caller.ts";
import type { Opened } from "../../upstream/protocol/opened.ts";
import type { Received } from "../../upstream/protocol/transport.ts";
import type { ReadAnswer, Upstream } from "../../upstream/protocol/upstream.ts";
import type { AuditActor } from "../../work/audit-log.ts";
import { ApiFault } from "../dialect/fault.ts";
import type { PeopleQuestion, PeopleShown } from "./people-rights.ts";
import type { Recognised, Stranger } from "./quota.ts";
import type { UpstreamCaller } from "./upstream-callers.ts";
import { type AskedRepository, PERMISSION_LEVELS, type RepositoryPermission } from "./upstream-rights.ts";

export type Caller = User | Stranger;

/** A caller with a token. */
export interface User extends Recognised {
  /** The account that they answer as. */
  userId: number;
  /** The token that they showed, and what it allows. */
  by:
    | { of: "own"; token: ApiToken }
    | {
        of: "upstream";
        /** Names the token without revealing it. */
        fingerprint: string;
        known: UpstreamCaller;
        write: Upstream["write"];
        /**
         * Forwards one request with the caller's own token, at the cost of their own quota. The answer is upstream's.
         */
        forward: ForwardOwn;
        /** Reads one page with the caller's own token. Upstream may show it to them alone, so it must not be kept. */
        get: (path: string) => Promise<ReadAnswer>;
        mutate: (query: string, variables: Fields) => Promise<Received>;
        /** What upstream permits the caller in public repositories, as far as upstream can be asked. */
        publicRights: (repositories: readonly AskedRepository[]) => Promise<ReadonlyMap<number, RepositoryPermission>>;
        /** Which people upstream shows the caller. Null: upstream does not say. */
        peopleShown: (question: PeopleQuestion) => Promise<PeopleShown | null>;
      };
}

/** Names a caller in the audit log. */
export function auditActor(caller: Caller): AuditActor {
  if (caller.kind !== "user") return { kind: "stranger", address: caller.address };
  const { by, userId } = caller;
  return by.of === "own"
    ? { kind: "own", name: by.token.id, userId }
    : { kind: "upstream", name: by.fingerprint, userId };
}

/** Forwards one request with a token that is already known here. The answer is upstream's. */
export type ForwardOwn = (request: Omit<Parameters<Forward>[0], "token">) => Promise<Opened>;

/** What one of our own tokens allows. */
export interface ApiToken {
  /** Names the token without revealing it. */
  id: string;
  userId: number;
  kinds: Kinds;
  /** The mirrored repositories that it is for; it sees the public ones beside them. */
  repositories: "all" | readonly number[];
  access: AccessScope;
  payer: Recognised;
}

const LEVELS = ["read", "write"] as const;
type Level = (typeof LEVELS)[number];

/**
 * What a token may be permitted besides the repositories themselves. The names are the service's fine-grained
 * permissions.
 */
export const PERMISSIONS = [
  "issues:read",
  "issues:write",
  "pull_requests:read",
  "pull_requests:write",
  ...CODE_RIGHTS.map((right) => `${right}:read` as const),
  "hooks:write",
] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** What a token may do with each kind of resource. Null: nothing. A token that may write may also read. */
export interface Kinds {
  issues: Level | null;
  pulls: Level | null;
  /** What of commits it reads. */
  code: readonly CodeRight[];
  /**
   * Whether the token may register hooks here, which hear of all that happens. It may only if the permission is named.
   */
  hooks: boolean;
}

/** What a token may do. `permissions` null: it reads every kind, and writes them all if `canWrite`. Pure. */
export function kindsOf(permissions: readonly string[] | null, canWrite: boolean): Kinds {
  const all = canWrite ? "write" : "read";
  if (permissions === null) return { issues: all, pulls: all, code: CODE_RIGHTS, hooks: false };
  const given = (name: string) => LEVELS.findLast((level) => permissions.includes(`${name}:${level}`)) ?? null;
  return {
    issues: given("issues"),
    pulls: given("pull_requests"),
    code: CODE_RIGHTS.filter((right) => permissions.includes(`${right}:read`)),
    hooks: permissions.includes("hooks:write"),
  };
}

/** The access of a caller who reads every kind in these repositories. Pure. */
export function wholeAccess(ids: AccessScope[Right]): AccessScope {
  return accessIn(ids, kindsOf(null, false));
}

const NO_REPOSITORIES: readonly number[] = [];

/** The access of a caller who reads the same kinds in each of these repositories. Pure. */
export function accessIn(ids: AccessScope[Right], { issues, pulls, code }: Kinds): AccessScope {
  return {
    metadata: ids,
    issues: issues !== null ? ids : NO_REPOSITORIES,
    pulls: pulls !== null ? ids : NO_REPOSITORIES,
    "issues or pulls": issues !== null || pulls !== null ? ids : NO_REPOSITORIES,
    ...forCode((right) => (code.includes(right) ? ids : NO_REPOSITORIES)),
  };
}

/** Whether a token reads every kind. Pure. */
export function readsAll({ issues, pulls, code }: Kinds): boolean {
  return issues !== null && pulls !== null && code.length === CODE_RIGHTS.length;
}

/** Whether a token may write everything that can be written here. Pure. */
export function writesAll({ issues, pulls }: Kinds): boolean {
  return issues === "write" && pulls === "write";
}

/** What of the mirror a caller sees beside what is public. */
export function accessOf(caller: Caller): AccessScope {
  if (caller.kind === "anonymous") return PUBLIC_SIGHT;
  return caller.by.of === "own" ? caller.by.token.access : caller.by.known.access;
}

const PUBLIC_SIGHT = wholeAccess([]);

/** Callers of one class are shown the same of every repository. */
export function classOf(caller: Caller): string {
  return caller.kind === "anonymous" ? "" : caller.class;
}

/** Whether upstream can be asked as the caller, with their own token. */
export function mayForwardAs(caller: Caller): boolean {
  return caller.kind === "user" && caller.by.of === "upstream";
}

/**
 * Whether this caller's documents may go to upstream. With one of Tain's tokens nobody could say what they may read.
 */
export function mayBeForwarded({ config }: { config: Pick<Config, "forwarding"> }, caller: User): boolean {
  return config.forwarding !== false && mayForwardAs(caller);
}

/** Whether a token may write where this right is needed. If the right names two kinds, either suffices. Pure. */
function mayWriteKind({ issues, pulls }: Kinds, right: Right): boolean {
  const [mayIssues, mayPulls] = [issues === "write", pulls === "write"];
  if (right === "issues or pulls") return mayIssues || mayPulls;
  return right === "issues" ? mayIssues : right === "pulls" && mayPulls;
}

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

/** Whether upstream is known to show the caller this resource of a repository's commits. */
export function readsCode(
  caller: Caller,
  access: AccessScope,
  repository: { id: number; isPrivate: boolean },
  right: CodeRight,
): boolean {
  return isCodeAccessKnown(caller) && sees(access, repository, right);
}

/** Whether it is known which resources of commits upstream shows the caller. */
function isCodeAccessKnown(caller: Caller): boolean {
  return caller.kind === "anonymous" || caller.by.of === "own" || caller.by.known.code !== "unknown";
}

/** The caller as a search takes them. */
export function searcherOf({ access, caller }: { access: AccessScope; caller: Caller }): Searcher {
  return { access, userId: caller.kind === "user" ? caller.userId : null, readsCode: isCodeAccessKnown(caller) };
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
export function accessLevelOf(caller: Caller, repositoryId: number, learnt?: PublicRightsLearnt): AccessLevel {
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
  if (accessLevelOf(caller, id) !== "writer") return false;
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
 * The service's permissions for a right (GitHub docs, "Permissions required for fine-grained personal access tokens").
 * One of them suffices.
 */
function permissionsOfRight(right: Right): readonly string[] {
  if (right === "issues or pulls") return ["issues", "pull_requests"];
  return [right === "pulls" ? "pull_requests" : right];
}

/** What a request asks of a repository. */
interface AskedOfRepository {
  caller: Caller;
  access: AccessScope;
  repository: { id: number; isPrivate: boolean };
  /** The right that the operation takes. */
  takes: Right;
  method: string;
}

/** @throws ApiFault 401 for anonymous callers */
export function requireUser({ caller }: { caller: Caller }): User {
  if (caller.kind === "user") return caller;
  throw new ApiFault(401, "Requires authentication");
}

/** Requires the right. @throws ApiFault 403 that names the permissions that the operation takes */
export function requireRight(call: AskedOfRepository, right: Right): void {
  if (!sees(call.access, call.repository, right)) throw missingRight(call);
}

/** Requires all of these rights. @throws ApiFault 403 that names the permissions of all */
export function requireRights(call: Omit<AskedOfRepository, "takes">, rights: readonly Right[]): void {
  if (!rights.every((right) => sees(call.access, call.repository, right))) throw missingRights(call, rights);
}

function missingRight(call: AskedOfRepository): ApiFault {
  return missingRights(call, [call.takes]);
}

function missingRights(
  { caller, method }: Pick<AskedOfRepository, "caller" | "method">,
  rights: readonly Right[],
): ApiFault {
  return new ApiFault(403, notAccessible(caller), { headers: acceptedPermissions(rights, method) });
}

/** The header that names the permissions which an operation takes. */
export function acceptedPermissions(rights: readonly Right[], method: string): Record<string, string> {
  const level = isRead(method) ? "read" : "write";
  // The service separates those that are all needed by a comma, and those of which one suffices by a semicolon.
  const accepted = rights
    .map((right) =>
      permissionsOfRight(right)
        .map((permission) => `${permission}=${level}`)
        .join("; "),
    )
    .join(", ");
  return { "X-Accepted-GitHub-Permissions": accepted };
}

/**
 * The caller, if what they write may be sent to upstream. If the operation takes one of two rights, `subject` tells
 * which one. Null: that is not known, so the write takes both.
 * @throws ApiFault 401 for anonymous callers, 403 as `requireRight`
 */
export async function requireWriter(call: AskedOfRepository, subject: () => Promise<Right | null>): Promise<User> {
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
export function seenInLists({ access, repository }: AskedOfRepository): "issues" | "pulls" | "both" {
  if (!sees(access, repository, "pulls")) return "issues";
  return sees(access, repository, "issues") ? "both" : "pulls";
}
