import type { Right } from "../../mirror/read/sight.ts";

const LEVELS = ["read", "write"] as const;
type Level = (typeof LEVELS)[number];

/** What a token may be given beside the repositories themselves, in the words of the service's fine-grained permissions. */
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

/** What a token may do by kind. Null: nothing; who writes reads, too. */
export interface Kinds {
  issues: Level | null;
  pulls: Level | null;
  /** Whether it reads check runs and suites, commit statuses, or code and what is published of it. */
  checks: boolean;
  statuses: boolean;
  contents: boolean;
  /** Whether it registers hooks here, which hear of all that happens. Never without being named. */
  hooks: boolean;
}

/** `permissions` null: every kind, to write if `canWrite`. Pure. */
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

/** Whether they may write what takes this right. What may be either's takes one of the two. Pure. */
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

/** Whether they read what is neither an issue nor a pull request. Pure. */
export function readsRest({ checks, statuses, contents }: Kinds): boolean {
  return checks && statuses && contents;
}

/** Whether they may write all that can be written here. Pure. */
export function writesAll({ issues, pulls }: Kinds): boolean {
  return issues === "write" && pulls === "write";
}
