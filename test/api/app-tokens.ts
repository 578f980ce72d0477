import type { Permissions } from "../../src/simulator/world/permissions.ts";
import type { ApiWorld } from "./api-world.ts";

interface Grant {
  permissions: Permissions;
  /** Absent: every repository that the App is installed on. */
  repositoryIds?: ReadonlySet<number>;
}

/** Tokens of an App that is installed on this repository, each with what it is given there. */
export function mintTokens<Name extends string>(
  { upstream }: Pick<ApiWorld, "upstream">,
  fullName: string,
  grants: Record<Name, Grant>,
): Record<Name, string> {
  const [account = ""] = fullName.split("/");
  const { app } = upstream.apps.create({ slug: "reader", installations: [{ account, repositories: [fullName] }] });
  const [installation] = upstream.apps.of(app);
  if (!installation) throw new Error("The App is not installed");
  const entries = Object.entries<Grant>(grants).map(([name, { permissions, repositoryIds = null }]) => {
    const token = upstream.tokens.mint({ installation, repositoryIds, permissions, bonus: () => 0 }, false);
    return [name, token.value];
  });
  // No type can say that the entries have the names of the grants.
  return Object.fromEntries(entries) as Record<Name, string>;
}

/** The ways in which a token may be given a repository, by what comes with it. */
export const GIVEN = {
  "metadata alone": { permissions: { metadata: "read" } },
  "issues too": { permissions: { metadata: "read", issues: "read" } },
  "pull requests too": { permissions: { metadata: "read", pull_requests: "read" } },
  both: { permissions: { metadata: "read", issues: "read", pull_requests: "read" } },
} as const;
export type Given = keyof typeof GIVEN;
export const EACH_GIVEN = Object.keys(GIVEN).filter((name): name is Given => name in GIVEN);

export function isGiven(name: Given, permission: string): boolean {
  return permission in GIVEN[name].permissions;
}
