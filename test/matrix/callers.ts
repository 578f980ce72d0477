import { apiTokenId, createApiToken, revokeApiTokens } from "../../src/api/callers/tokens.ts";
import { type Access, NO_ACCESS } from "../../src/simulator/world/access.ts";
import type { Permissions } from "../../src/simulator/world/permissions.ts";
import type { TokenInput } from "../../src/simulator/world/tokens.ts";
import type { ApiWorld } from "../api/api-world.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import type { MarkKind, Place } from "./places.ts";

export interface Caller {
  name: string;
  /** Null: the caller shows no token. */
  token: string | null;
  /**
   * A token of upstream's. Upstream shows to it what the mirror shows to this caller. Null: there is none. A token of
   * ours sees what is public, and what the mirror's token sees in the repositories that it is for.
   */
  standsFor(place: Place | null): string | null;
  /** The caller's token is not, or no longer, valid: every answer is a refusal. */
  isRefused: boolean;
  isOurs: boolean;
  mayWrite: boolean;
}

/** The access to the repository that upstream's rules give the caller. */
export function accessOf({ upstream }: Pick<ApiWorld, "upstream">, caller: Caller, place: Place): Access {
  if (caller.isRefused) return NO_ACCESS;
  const access = upstream.accessOf(caller.standsFor(place), place.repository);
  // Tokens of ours may not change a release, so they see no drafts.
  return caller.isOurs ? { ...access, drafts: false } : access;
}

/** Whether the caller may be shown marks of this kind. */
export function maySee(access: Access, kind: MarkKind): boolean {
  const { metadata, issues, pulls, checks, statuses, contents, deployments, actions, drafts } = access;
  const [sees, seesPulls] = [issues !== "none", pulls !== "none"];
  switch (kind) {
    case "home":
      return metadata;
    case "case":
      return sees;
    case "patch":
      return seesPulls;
    case "tag":
      return sees || seesPulls;
    case "run":
      return checks !== "none";
    case "state":
      return statuses !== "none";
    case "news":
      return contents !== "none";
    case "ship":
      return deployments !== "none";
    case "work":
      return actions !== "none";
    case "draft":
      return drafts;
    default:
      return kind satisfies never;
  }
}

/**
 * @param acme the account whose member is `octo`
 * @param secret the repository that tokens for one repository are for
 */
export async function makeCallers(
  world: ApiWorld,
  { secret, acme }: { secret: Place; acme: string },
): Promise<Caller[]> {
  const { ctx, upstream, userId } = world;
  const scope = { repositoryIds: [secret.repository.id], ownerIds: [] };
  const own = async (
    name: string,
    options: Partial<Parameters<typeof createApiToken>[1]>,
    more: Partial<Caller> = {},
  ): Promise<Caller> => ({
    name: `Tain's token ${name}`,
    token: await createApiToken(ctx, { userId, canWrite: true, ...options }),
    standsFor: (place) => (options.scope && place?.repository.id !== secret.repository.id ? null : UPSTREAM_TOKEN),
    isRefused: false,
    isOurs: true,
    mayWrite: options.canWrite ?? true,
    ...more,
  });
  const theirs = (name: string, token: string, more: Partial<Caller> = {}): Caller => ({
    name,
    token,
    standsFor: () => token,
    isRefused: false,
    isOurs: false,
    mayWrite: true,
    ...more,
  });
  const made = (name: string, input: TokenInput, more?: Partial<Caller>) =>
    theirs(name, upstream.tokens.create(input).value, more);
  const fine = (permissions: Permissions): TokenInput => ({
    kind: "fine-grained",
    login: "octo",
    owner: acme,
    repositories: "all",
    permissions,
  });
  const installed = (slug: string, permissions: Permissions) => {
    const { app } = upstream.apps.create({ slug, permissions, installations: [{ account: acme }] });
    const [installation] = upstream.apps.of(app);
    if (!installation) throw new Error("The App is not installed");
    const token = upstream.tokens.mint({ installation, repositoryIds: null, permissions, bonus: () => 0 }, false);
    return { app, installation, token: token.value };
  };

  const revoked = await own("that was revoked", {}, { isRefused: true });
  await revokeApiTokens(ctx, [apiTokenId(revoked.token ?? "")]);
  const suspended = installed("sleeper", { metadata: "read", issues: "read", pull_requests: "read" });
  upstream.apps.suspend(suspended.installation, upstream.world.user(secret.repository.ownerId).id, true);
  const left = made("an upstream token that was revoked", { login: "octo" }, { isRefused: true });
  upstream.tokens.delete(left.token ?? "");
  const over = made("an upstream token that has expired", { login: "octo" }, { isRefused: true });
  upstream.tokens.expire(over.token ?? "");
  const both = installed("worker", { metadata: "read", issues: "write", pull_requests: "read" });
  const ofUser: TokenInput = { kind: "app-user", login: "octo", app: both.app.id };
  return [
    { ...theirs("nobody", ""), token: null, standsFor: () => null },
    await own("for all", {}),
    await own("for all that reads", { canWrite: false }),
    await own("for one", { scope }),
    await own("for one that reads", { scope, canWrite: false }),
    await own("that has expired", { expiresAt: new Date(0) }, { isRefused: true }),
    revoked,
    made("a member's classic token", { login: "octo" }),
    made("a member's classic token for public repositories", { login: "octo", scopes: ["public_repo"] }),
    made("an outsider's classic token", { login: "outsider" }),
    made("an outsider's token without a scope", { login: "outsider-too", kind: "oauth", scopes: [] }),
    made("a fine-grained token for metadata", fine({})),
    made("a fine-grained token for issues", fine({ issues: "read" })),
    made("a fine-grained token for pull requests", fine({ pull_requests: "read" })),
    made("a fine-grained token that writes issues", fine({ issues: "write" })),
    theirs("an App with metadata alone", installed("reader", { metadata: "read" }).token),
    theirs("an App with issues and pull requests", both.token),
    theirs("an App that is suspended", suspended.token, { isRefused: true }),
    made("an App's token of a member", ofUser),
    left,
    over,
  ];
}
