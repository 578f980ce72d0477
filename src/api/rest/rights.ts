import { type Right, sees } from "../../mirror/read/sight.ts";
import { isRead, type RepositoryCall } from "../call.ts";
import { notAccessible } from "../callers/permissions.ts";
import { ApiFault } from "../dialect/fault.ts";

/** The service's permissions. GitHub docs, "Permissions required for fine-grained personal access tokens": any one will do. */
const PERMISSIONS: Record<Right, readonly string[]> = {
  metadata: ["metadata"],
  issues: ["issues"],
  pulls: ["pull_requests"],
  "issues or pulls": ["issues", "pull_requests"],
};

/** @throws ApiFault 403 that names the permissions that the operation takes */
export function requireRight({ sight, repository, caller, takes, method }: RepositoryCall, right: Right): void {
  if (sees(sight, repository, right)) return;
  const level = isRead(method) ? "read" : "write";
  const accepted = PERMISSIONS[takes].map((permission) => `${permission}=${level}`).join("; ");
  throw new ApiFault(403, notAccessible(caller), { headers: { "X-Accepted-GitHub-Permissions": accepted } });
}

/**
 * What the caller sees in lists that hold issues and pull requests. Upstream was seen to refuse a pull request to a token
 * that was given issues alone. Whether its lists show one to such a token is not known; ours leave it out.
 */
export function seenIn({ sight, repository }: RepositoryCall): "issues" | "pulls" | "both" {
  if (!sees(sight, repository, "pulls")) return "issues";
  return sees(sight, repository, "issues") ? "both" : "pulls";
}
