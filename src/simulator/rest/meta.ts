import type { Bucket } from "../quota/quota.ts";
import { type Answer, type Call, ok } from "./call.ts";

const BUCKETS: readonly Bucket[] = ["core", "search", "graphql", "integration_manifest"];

/** Free for the primary limit; `rate` (a copy of core) is gone in 2026-03-10. */
export function getRateLimit(call: Call): Answer {
  const resources = Object.fromEntries(
    BUCKETS.map((bucket) => {
      const { limit, used, remaining, reset } = call.quota.state(call.caller, bucket);
      return [bucket, { limit, used, remaining, reset }];
    }),
  );
  return ok({ resources, ...(call.view.version === "2022-11-28" ? { rate: resources.core } : {}) }, { uncached: true });
}

export function getVersions(): Answer {
  return ok(["2022-11-28", "2026-03-10"]);
}

export function getMeta(): Answer {
  return ok({
    verifiable_password_authentication: false,
    hooks: ["127.0.0.0/8", "::1/128"],
    api: ["127.0.0.0/8", "::1/128"],
    domains: {},
  });
}

export function getZen(): Answer {
  return { status: 200, text: { type: "text/plain; charset=utf-8", content: "Speak like a human." } };
}

export function getRoot(call: Call): Answer {
  const url = call.view.apiUrl;
  const old = call.view.version === "2022-11-28";
  return ok({
    current_user_url: `${url}/user`,
    ...(old ? { authorizations_url: `${url}/authorizations`, hub_url: `${url}/hub` } : {}),
    rate_limit_url: `${url}/rate_limit`,
    repository_url: `${url}/repos/{owner}/{repo}`,
    organization_url: `${url}/orgs/{org}`,
    organization_repositories_url: `${url}/orgs/{org}/repos{?type,page,per_page,sort}`,
    current_user_repositories_url: `${url}/user/repos{?type,page,per_page,sort}`,
    user_url: `${url}/users/{user}`,
    user_repositories_url: `${url}/users/{user}/repos{?type,page,per_page,sort}`,
  });
}
