import type { Config } from "../../config.ts";
import { objectOf } from "../../json.ts";
import { parseGraphql } from "../../upstream/client/graphql.ts";
import type { OnBehalf } from "../../upstream/client/on-behalf.ts";
import { ApiFault } from "../dialect/fault.ts";
import { unusable } from "./upstream-rights.ts";

interface Rule {
  config: Pick<Config, "allowedUsers" | "allowedOrganizations">;
  upstream: Pick<OnBehalf["identity"], "graphql">;
}

/**
 * Admits the users that the operator has named, and the members of named organizations. Without names it admits everybody.
 * @param login of the token's owner; an App's with its `[bot]`
 * @throws ApiFault 403 for all others
 * @throws UpstreamUnavailableError when the answer says nothing of the token
 */
export async function requireAllowed({ config, upstream }: Rule, token: string, login: string): Promise<void> {
  const { allowedUsers: users, allowedOrganizations: organizations } = config;
  if (users.length === 0 && organizations.length === 0) return;
  if (users.includes(login.toLowerCase())) return;
  if (organizations.length > 0 && (await isMember(upstream, token, organizations))) return;
  throw new ApiFault(
    403,
    `${login} may not use this mirror: its operator allows certain users and organizations only.`,
  );
}

/**
 * Whether the token's user is a member. A token without `read:org` may be refused here, or hear that it is no member;
 * then it is not let in. This is not confirmed of GitHub.
 */
async function isMember(upstream: Rule["upstream"], token: string, organizations: readonly string[]): Promise<boolean> {
  const names = organizations.map((_, at) => `$o${at}: String!`);
  const fields = organizations.map((_, at) => `o${at}: organization(login: $o${at}) { viewerIsAMember }`);
  const variables = Object.fromEntries(organizations.map((login, at) => [`o${at}`, login]));
  const answer = await upstream.graphql({
    token,
    query: `query (${names.join(", ")}) { ${fields.join(" ")} }`,
    variables,
  });
  const body = answer.status === 200 ? parseGraphql(answer.text) : null;
  const isOfCaller = (type: string | null) =>
    type === "NOT_FOUND" || type === "FORBIDDEN" || type === "INSUFFICIENT_SCOPES";
  if (!body || body.errors.some(({ type }) => !isOfCaller(type))) throw unusable(answer);
  return Object.values(objectOf(body.data)).some((one) => objectOf(one).viewerIsAMember === true);
}
