/** Permissions of Apps: what each route and each webhook event takes. GitHub docs: "Permissions required for GitHub Apps". */
export type Level = "read" | "write" | "admin";
export type Permissions = Readonly<Record<string, Level>>;

/** Any one of them suffices. */
export type Needed = readonly { readonly permission: string; readonly level: Level }[];

const ORDER: readonly Level[] = ["read", "write", "admin"];

export function grants(permissions: Permissions, needed: Needed): boolean {
  return needed.some(({ permission, level }) => has(permissions, permission, level));
}

export function has(permissions: Permissions, permission: string, level: Level): boolean {
  const granted = permissions[permission];
  return granted !== undefined && ORDER.indexOf(granted) >= ORDER.indexOf(level);
}

/** As `X-Accepted-GitHub-Permissions` says it: a semicolon is "or". */
export function accepted(needed: Needed): string {
  return needed.map(({ permission, level }) => `${permission}=${level}`).join("; ");
}

/** What a repository route takes; `pattern` is the route's, from `/repos/:owner/:repo` on. */
export function neededFor(method: string, pattern: string): Needed {
  const level: Level = method === "GET" || method === "HEAD" ? "read" : "write";
  const path = pattern.slice("/repos/:owner/:repo".length);
  const names = namesFor(path, level);
  return names.map((permission) => ({ permission, level }));
}

function namesFor(path: string, level: Level): string[] {
  const [, first = "", second] = path.split("/");
  switch (first) {
    case "":
    case "topics":
      return [level === "read" ? "metadata" : "administration"];
    case "git":
      return ["contents"];
    case "hooks":
      return ["repository_hooks"];
    case "pulls":
      return [path.endsWith("/merge") && level === "write" ? "contents" : "pull_requests"];
    case "issues":
      // Issues themselves; what hangs on them may be a pull request's as well.
      return path === "/issues" || (second === ":number" && path === "/issues/:number" && level === "read")
        ? ["issues"]
        : ["issues", "pull_requests"];
    case "assignees":
    case "labels":
    case "milestones":
      return ["issues", "pull_requests"];
    default:
      throw new Error(`Nobody has said which permission ${path} takes`);
  }
}

/** Which permission (read) an event takes; "metadata" is everybody's. */
export function permissionOfEvent(event: string): readonly string[] {
  switch (event) {
    case "issues":
    case "issue_comment":
      return ["issues"];
    case "pull_request":
    case "pull_request_review":
    case "pull_request_review_comment":
      return ["pull_requests"];
    case "milestone":
      return ["issues", "pull_requests"];
    case "push":
      return ["contents"];
    default:
      return ["metadata"];
  }
}
