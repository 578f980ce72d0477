import type { Right, Sight } from "../../mirror/read/repositories.ts";

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
  "checks:read",
  "statuses:read",
  "contents:read",
  "hooks:write",
] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** What a token may do with each kind of resource. Null: nothing. A token that may write may also read. */
export interface Kinds {
  issues: Level | null;
  pulls: Level | null;
  /** Whether it reads check runs and suites, commit statuses, or code and what is published of it. */
  checks: boolean;
  statuses: boolean;
  contents: boolean;
  /**
   * Whether the token may register hooks here, which hear of all that happens. It may only if the permission is named.
   */
  hooks: boolean;
}

/** What a token may do. `permissions` null: it reads every kind, and writes them all if `canWrite`. Pure. */
export function kindsOf(permissions: readonly string[] | null, canWrite: boolean): Kinds {
  const all = canWrite ? "write" : "read";
  if (permissions === null)
    return { issues: all, pulls: all, checks: true, statuses: true, contents: true, hooks: false };
  const given = (name: string) => LEVELS.findLast((level) => permissions.includes(`${name}:${level}`)) ?? null;
  return {
    issues: given("issues"),
    pulls: given("pull_requests"),
    checks: permissions.includes("checks:read"),
    statuses: permissions.includes("statuses:read"),
    contents: permissions.includes("contents:read"),
    hooks: permissions.includes("hooks:write"),
  };
}

/** Whether a token may write where this right is needed. If the right names two kinds, either suffices. Pure. */
export function mayWriteKind({ issues, pulls }: Kinds, right: Right): boolean {
  switch (right) {
    case "issues":
      return issues === "write";
    case "pulls":
      return pulls === "write";
    case "issues or pulls":
      return issues === "write" || pulls === "write";
    case "metadata":
    case "checks":
    case "statuses":
    case "contents":
      return false;
    default:
      throw new Error(`There is no right ${right satisfies never}`);
  }
}

/** Whether a token reads everything besides issues and pull requests. Pure. */
export function readsRest({ checks, statuses, contents }: Kinds): boolean {
  return checks && statuses && contents;
}

/** Whether a token may write everything that can be written here. Pure. */
export function writesAll({ issues, pulls }: Kinds): boolean {
  return issues === "write" && pulls === "write";
}

/** The sight of a caller who reads every kind in these repositories. Pure. */
export function wholeSight(ids: Sight[Right]): Sight {
  return sightIn(ids, kindsOf(null, false));
}

const NO_REPOSITORIES: readonly number[] = [];

/** The sight of a caller who reads the same kinds in each of these repositories. Pure. */
export function sightIn(ids: Sight[Right], { issues, pulls, checks, statuses, contents }: Kinds): Sight {
  return {
    metadata: ids,
    issues: issues !== null ? ids : NO_REPOSITORIES,
    pulls: pulls !== null ? ids : NO_REPOSITORIES,
    "issues or pulls": issues !== null || pulls !== null ? ids : NO_REPOSITORIES,
    checks: checks ? ids : NO_REPOSITORIES,
    statuses: statuses ? ids : NO_REPOSITORIES,
    contents: contents ? ids : NO_REPOSITORIES,
  };
}

/**
 * Sight from the issues and pull requests that are given in each repository, and the rights about commits that are
 * given in all. Pure.
 */
export function sightByKind(
  given: ReadonlyMap<number, { issues: boolean; pulls: boolean }>,
  { code }: { code: boolean },
): Sight {
  const lists = new Map<string, number[]>();
  // Equal lists are one list, so comparing them costs nothing.
  const where = (test: (kinds: { issues: boolean; pulls: boolean }) => boolean) => {
    const ids = [...given].filter(([, kinds]) => test(kinds)).map(([id]) => id);
    return lists.getOrInsertComputed(ids.join(), () => ids);
  };
  return {
    metadata: where(() => true),
    issues: where(({ issues }) => issues),
    pulls: where(({ pulls }) => pulls),
    "issues or pulls": where(({ issues, pulls }) => issues || pulls),
    checks: code ? where(() => true) : NO_REPOSITORIES,
    statuses: code ? where(() => true) : NO_REPOSITORIES,
    contents: code ? where(() => true) : NO_REPOSITORIES,
  };
}
