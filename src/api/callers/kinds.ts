import type { Right } from "../../mirror/read/sight.ts";

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
