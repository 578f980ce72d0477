/**
 * Permissions of Apps, fine-grained tokens and Actions tokens: what each route and each webhook event takes. GitHub
 * docs:
 * "Permissions required for GitHub Apps" and "Permissions required for fine-grained personal access tokens".
 */
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

/** What both allow. */
export function within(granted: Permissions, bound: Permissions): Permissions {
  const common: Record<string, Level> = {};
  for (const level of ORDER)
    for (const permission of Object.keys(granted))
      if (has(granted, permission, level) && has(bound, permission, level)) common[permission] = level;
  return common;
}

export function levelOf(method: string): "read" | "write" {
  return method === "GET" || method === "HEAD" ? "read" : "write";
}

/** As `X-Accepted-GitHub-Permissions` says it: a semicolon is "or". */
export function accepted(needed: Needed): string {
  return needed.map(({ permission, level }) => `${permission}=${level}`).join("; ");
}

const IN_REPOSITORY = "/repos/:owner/:repo";

/** `X-Accepted-GitHub-Permissions` of a route that is not for Apps; null where the service's answer is not known. */
export function acceptedPermissions(method: string, pattern: string): string | null {
  if (pattern.startsWith(IN_REPOSITORY)) return accepted(neededFor(method, pattern));
  if (levelOf(method) === "write") return pattern.endsWith("/repos") ? "administration=write" : null;
  if (pattern.endsWith("/repos")) return "metadata=read";
  return PERMISSIONLESS.includes(pattern) ? "allows_permissionless_access=true" : null;
}

const PERMISSIONLESS = ["/user", "/orgs/:login", "/organizations/:id"];

/** `X-Accepted-OAuth-Scopes` of a route, as recorded: it informs, and refuses nobody. */
export function acceptedScopes(method: string, pattern: string): string {
  if (pattern === "/orgs/:login" || pattern === "/organizations/:id")
    return "admin:org, read:org, repo, user, write:org";
  if (!pattern.startsWith(IN_REPOSITORY)) return "";
  const path = pattern.slice(IN_REPOSITORY.length);
  if (path.startsWith("/hooks")) {
    const read = levelOf(method) === "read" ? ["read:repo_hook"] : [];
    const write = method === "DELETE" ? [] : ["write:repo_hook"];
    return ["admin:repo_hook", "public_repo", ...read, "repo", ...write].join(", ");
  }
  if (/^\/statuses|\/status(es)?$/.test(path)) return "repo, repo:status";
  // GitHub docs: "Create a deployment". That the header says the same is not recorded.
  if (path.startsWith("/deployments")) return "repo, repo_deployment";
  if (levelOf(method) === "write") return path.endsWith("/lock") ? "public_repo, repo" : "";
  return /^\/(pulls|git|commits)|^\/issues\/(:number\/)?comments/.test(path) ? "" : "repo";
}

/** What a repository route takes; `pattern` is the route's, from `/repos/:owner/:repo` on. */
export function neededFor(method: string, pattern: string): Needed {
  const level = levelOf(method);
  const path = pattern.slice(IN_REPOSITORY.length);
  const names = namesFor(path, level);
  return names.map((permission) => ({ permission, level }));
}

function namesFor(path: string, level: Level): string[] {
  const [, first = ""] = path.split("/");
  switch (first) {
    case "":
    case "topics":
      return [level === "read" ? "metadata" : "administration"];
    case "actions":
      return ["actions"];
    case "deployments":
      return ["deployments"];
    case "check-runs":
    case "check-suites":
      return ["checks"];
    case "statuses":
      return ["statuses"];
    case "commits":
      if (path.endsWith("/check-runs") || path.endsWith("/check-suites")) return ["checks"];
      return [/\/status(es)?$/.test(path) ? "statuses" : "contents"];
    case "git":
    case "compare":
    case "contents":
    case "branches":
    case "tags":
    case "releases":
      return ["contents"];
    case "collaborators":
      return ["metadata"];
    case "teams":
      return ["administration"];
    case "hooks":
      return ["repository_hooks"];
    case "pulls":
      return [path.endsWith("/merge") && level === "write" ? "contents" : "pull_requests"];
    case "issue-types":
      return ["metadata"];
    case "issues":
      // Issues themselves; what hangs on them may be a pull request's as well.
      return path === "/issues" ||
        (path === "/issues/:number" && level === "read") ||
        /^\/issues\/:number\/(sub_issue|dependencies|parent)/.test(path)
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
    case "pull_request_review_thread":
      return ["pull_requests"];
    case "milestone":
      return ["issues", "pull_requests"];
    case "push":
    case "create":
    case "delete":
    case "release":
      return ["contents"];
    case "deployment":
    case "deployment_status":
      return ["deployments"];
    case "workflow_run":
    case "workflow_job":
      return ["actions"];
    case "check_run":
    case "check_suite":
      return ["checks"];
    case "status":
      return ["statuses"];
    default:
      return ["metadata"];
  }
}
