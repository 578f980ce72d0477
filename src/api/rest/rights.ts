import { isRead } from "../../http/exchange.ts";
import { type Right, sees } from "../../mirror/read/sight.ts";
import { type RepositoryCall, requireUser } from "../call.ts";
import type { User } from "../callers/caller.ts";
import { mayWrite, notAccessible } from "../callers/permissions.ts";
import { ApiFault } from "../dialect/fault.ts";

/**
 * The service's permissions for each right (GitHub docs, "Permissions required for fine-grained personal access
 * tokens"). One of them suffices.
 */
const PERMISSIONS: Record<Right, readonly string[]> = {
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
  if (!sees(call.sight, call.repository, right)) throw refusal(call);
}

function refusal({ caller, takes, method }: RepositoryCall): ApiFault {
  const level = isRead(method) ? "read" : "write";
  const accepted = PERMISSIONS[takes].map((permission) => `${permission}=${level}`).join("; ");
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
  if (!may(call.takes)) throw refusal(call);
  if (call.takes !== "issues or pulls" || (may("issues") && may("pulls"))) return user;
  const right = await subject();
  if (right === null || !may(right)) throw refusal(call);
  return user;
}

/**
 * What the caller sees in lists that hold issues and pull requests. Upstream was seen to refuse a pull request to a token
 * that was given issues alone. Whether its lists show one to such a token is not known; ours leave it out.
 */
export function seenIn({ sight, repository }: RepositoryCall): "issues" | "pulls" | "both" {
  if (!sees(sight, repository, "pulls")) return "issues";
  return sees(sight, repository, "issues") ? "both" : "pulls";
}
