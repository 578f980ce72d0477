import type { Config } from "../../config.ts";
import type { Operation } from "../operation.ts";

/** Headers that say which server this is. Clients take it for an enterprise server. */
export function serverHeaders(
  { enterpriseVersion }: Pick<Config, "enterpriseVersion">,
  isEnterprise: boolean,
): Record<string, string> {
  return isEnterprise ? { "X-GitHub-Enterprise-Version": enterpriseVersion } : {};
}

/**
 * The scopes that a classic token or an OAuth App's has, and those that the operation takes.
 * @param scopes as upstream names them; null: the token is of another kind, which has none
 * @param operation null: it is not served here, and what it takes is not known
 */
export function scopeHeaders(scopes: string | null, operation: Operation | null): Record<string, string> {
  if (scopes === null) return {};
  return { "X-OAuth-Scopes": scopes, "X-Accepted-OAuth-Scopes": operation === null ? "" : acceptedScopes(operation) };
}

/** The scopes that an operation accepts, as recorded of the service. They inform, and refuse nobody. */
function acceptedScopes({ docs, run }: Operation): string {
  if (docs.endsWith("/orgs/orgs#get-an-organization")) return "admin:org, read:org, repo, user, write:org";
  return run.of === "service" || /\/rest\/(pulls\/|issues\/comments#)/.test(docs) ? "" : "repo";
}
