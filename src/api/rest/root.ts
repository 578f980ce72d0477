import { pagesOf } from "../../upstream/protocol/address.ts";
import { type Answer, type Call, ok } from "../call/call.ts";
import type { QuotaFigures } from "../callers/quota.ts";
import { ApiFault } from "../dialect/fault.ts";
import { API_VERSIONS, ENTERPRISE_PREFIX } from "../dialect/protocol.ts";

// GitHub's OpenAPI, x-github-breaking-changes of 2026-03-10.
const DROPPED_FROM_ROOT: readonly string[] = ["authorizations_url", "hub_url"];

/**
 * The addresses that the service's root names, in its order. They are part of the answer even where the mirror has nothing behind
 * them.
 */
export async function getRoot({ ctx, api, version }: Call): Promise<Answer> {
  const paths: [string, string][] = [
    ["current_user_url", "/user"],
    ["authorizations_url", "/authorizations"],
    ["code_search_url", "/search/code?q={query}{&page,per_page,sort,order}"],
    ["commit_search_url", "/search/commits?q={query}{&page,per_page,sort,order}"],
    ["emails_url", "/user/emails"],
    ["emojis_url", "/emojis"],
    ["events_url", "/events"],
    ["feeds_url", "/feeds"],
    ["followers_url", "/user/followers"],
    ["following_url", "/user/following{/target}"],
    ["gists_url", "/gists{/gist_id}"],
    ["hub_url", "/hub"],
    ["issue_search_url", "/search/issues?q={query}{&page,per_page,sort,order}"],
    ["issues_url", "/issues"],
    ["keys_url", "/user/keys"],
    ["label_search_url", "/search/labels?q={query}&repository_id={repository_id}{&page,per_page}"],
    ["notifications_url", "/notifications"],
    ["organization_url", "/orgs/{org}"],
    ["organization_repositories_url", "/orgs/{org}/repos{?type,page,per_page,sort}"],
    ["organization_teams_url", "/orgs/{org}/teams"],
    ["public_gists_url", "/gists/public"],
    ["rate_limit_url", "/rate_limit"],
    ["repository_url", "/repos/{owner}/{repo}"],
    ["repository_search_url", "/search/repositories?q={query}{&page,per_page,sort,order}"],
    ["current_user_repositories_url", "/user/repos{?type,page,per_page,sort}"],
    ["starred_url", "/user/starred{/owner}{/repo}"],
    ["starred_gists_url", "/gists/starred"],
    ["topic_search_url", "/search/topics?q={query}{&page,per_page}"],
    ["user_url", "/users/{user}"],
    ["user_organizations_url", "/user/orgs"],
    ["user_repositories_url", "/users/{user}/repos{?type,page,per_page,sort}"],
    ["user_search_url", "/search/users?q={query}{&page,per_page,sort,order}"],
  ];
  const isShown = ([key]: [string, string]) => version === "2022-11-28" || !DROPPED_FROM_ROOT.includes(key);
  const addresses = paths.filter(isShown).map(([key, path]) => [key, api + path]);
  const applications = `${pagesOf(ctx.config.upstreamUrl)}/settings/connections/applications{/client_id}`;
  addresses.splice(1, 0, ["current_user_authorizations_html_url", applications]);
  return ok(JSON.stringify(Object.fromEntries(addresses)));
}

export async function getVersions(): Promise<Answer> {
  return ok(JSON.stringify(API_VERSIONS));
}

/** A maxim of ours, since the service's own are its own. */
export const ZEN = "A mirror shows what is there.";

export async function getZen(): Promise<Answer> {
  return ok(ZEN, { contentType: "text/plain;charset=utf-8" });
}

export async function getMeta({ ctx, api }: Call): Promise<Answer> {
  const isEnterprise = api.endsWith(ENTERPRISE_PREFIX);
  const installed = isEnterprise ? { installed_version: ctx.config.enterpriseVersion } : {};
  return ok(JSON.stringify({ verifiable_password_authentication: false, ...installed }));
}

/**
 * The caller's figures, which cost nothing. Without a limit it answers as an enterprise server without rate limits
 * does.
 */
export async function getRateLimit({ ctx, quota, caller, version }: Call): Promise<Answer> {
  const [core, search, graphql] = await Promise.all([
    quota.figures(caller, "core"),
    quota.figures(caller, "search"),
    quota.figures(caller, "graphql"),
  ]);
  if (!core) throw new ApiFault(404, "Rate limiting is not enabled.");
  const none = { limit: 0, used: 0, remaining: 0, reset: Math.ceil(ctx.clock.now().getTime() / 1_000) + 3_600 };
  const resources = {
    core: quotaView(core),
    ...(search ? { search: quotaView(search) } : {}),
    ...(graphql ? { graphql: caller.kind === "user" ? quotaView(graphql) : none } : {}),
  };
  const rate = version === "2022-11-28" ? { rate: resources.core } : {};
  return ok(JSON.stringify({ resources, ...rate }), { isUncached: true });
}

function quotaView({ limit, used, remaining, reset }: QuotaFigures) {
  return { limit, used, remaining, reset };
}
